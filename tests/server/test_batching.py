"""The queue: each request gets its own answers, nobody is starved or forgotten."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.core.errors import DataError
from litebert.server.batching import BATCH_COST, Batcher, BatchKind, IsStopping, QueueIsFull, compute_apart
from litebert.server.options import Limits

KIND = BatchKind("model", "shout", ())


class Recorder:
    """A model that shouts, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[BatchKind, list[str]]] = []
        self.is_open = threading.Event()
        self.has_come = threading.Event()
        self.is_open.set()

    def __call__(self, kind: BatchKind, inputs: Sequence[Any]) -> Sequence[Any]:
        self.has_come.set()
        assert self.is_open.wait(timeout=60)
        self.batches.append((kind, list(inputs)))
        if "bad" in inputs:
            raise DataError("not-text", "this is no text")
        return [text.upper() for text in inputs]


def run(model: Recorder, limits: Limits, story: Callable[[Batcher], Awaitable[None]]) -> None:
    batcher = Batcher(model, limits)
    batcher.start()
    try:
        asyncio.run(story(batcher))  # type: ignore[arg-type]
    finally:
        model.is_open.set()
        batcher.stop()


def ask(batcher: Batcher, *texts: str, kind: BatchKind = KIND) -> "asyncio.Task[list[Any]]":
    return asyncio.ensure_future(batcher.ask(kind, texts, [len(text) for text in texts]))


async def occupy(batcher: Batcher, model: Recorder) -> "asyncio.Task[list[Any]]":
    """Let the model begin with something and hold it there, so that the rest gathers."""
    model.is_open.clear()
    first = ask(batcher, "first")
    await asyncio.to_thread(model.has_come.wait, 60)
    return first


@given(st.lists(st.lists(st.text(alphabet="abc", min_size=1), min_size=1, max_size=6), min_size=1, max_size=20))
def test_everybody_gets_their_own_answers_in_order(requests: list[list[str]]) -> None:
    async def story(batcher: Batcher) -> None:
        answers = await asyncio.gather(*[ask(batcher, *texts) for texts in requests])
        assert answers == [[text.upper() for text in texts] for texts in requests]

    run(Recorder(), Limits(max_batch=4), story)


def test_inputs_that_came_meanwhile_are_computed_together() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        others = [ask(batcher, text) for text in ("a", "b", "c")]
        await asyncio.sleep(0)
        model.is_open.set()
        await asyncio.gather(first, *others)

    run(model, Limits(), story)
    assert [inputs for _, inputs in model.batches] == [["first"], ["a", "b", "c"]]


def test_settings_have_batches_of_their_own_and_the_oldest_request_comes_first() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        others = [ask(batcher, "a"), ask(batcher, "b", kind=KIND._replace(settings=1)), ask(batcher, "c" * 300)]
        await asyncio.sleep(0)
        model.is_open.set()
        await asyncio.gather(first, *others)

    run(model, Limits(), story)
    assert [inputs for _, inputs in model.batches[1:]] == [["a", "c" * 300], ["b"]]


def test_a_batch_is_bounded_in_inputs_and_in_characters() -> None:
    model = Recorder()
    quarter = "x" * (BATCH_COST // 4)

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        others = [ask(batcher, *"abcdefg"), ask(batcher, *[quarter] * 6)]
        await asyncio.sleep(0)
        model.is_open.set()
        await asyncio.gather(first, *others)

    run(model, Limits(max_batch=5), story)
    assert [len(inputs) for _, inputs in model.batches[1:]] == [5, 5, 3]


def test_a_bad_input_spoils_only_its_own_answer() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        good, bad = ask(batcher, "good", "fine"), ask(batcher, "well", "bad")
        await asyncio.sleep(0)
        model.is_open.set()
        assert await good == ["GOOD", "FINE"]
        well, error = await bad
        assert well == "WELL"
        assert isinstance(error, DataError)
        await first

    run(model, Limits(), story)


def test_a_full_queue_refuses_and_takes_again_when_it_has_room() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        waiting = ask(batcher, "a", "b", "c")
        await asyncio.sleep(0)
        with pytest.raises(QueueIsFull):
            await ask(batcher, "d", "e")
        model.is_open.set()
        assert await waiting == ["A", "B", "C"]
        assert await ask(batcher, "d", "e") == ["D", "E"]
        await first

    run(model, Limits(max_queue=4, max_inputs=4), story)


def test_whoever_gave_up_is_not_worked_for() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        leaving, staying = ask(batcher, "leaving"), ask(batcher, "staying")
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        model.is_open.set()
        assert await staying == ["STAYING"]
        await first

    run(model, Limits(), story)
    assert [inputs for _, inputs in model.batches] == [["first"], ["staying"]]


def test_what_was_taken_is_finished_when_it_stops_and_nothing_more_is_taken() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        waiting = ask(batcher, "a", "b")
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(asyncio.to_thread(batcher.stop))
        while not batcher.is_stopping:
            await asyncio.sleep(0.001)
        with pytest.raises(IsStopping):
            await ask(batcher, "late")
        model.is_open.set()
        assert await waiting == ["A", "B"]
        await asyncio.gather(first, stopping)

    run(model, Limits(), story)


def test_a_full_batch_does_not_wait_for_company_and_a_lonely_one_waits_no_longer_than_allowed() -> None:
    """By a clock of our own: the real one decides only how long the test would hang if it were wrong."""
    model = Recorder()
    batcher = Batcher(model, Limits(max_batch=2, max_wait_seconds=3600.0))
    now = 0.0
    batcher.clock = lambda: now
    batcher._is_crowded = True
    batcher.start()

    async def story() -> None:
        nonlocal now
        assert await ask(batcher, "a", "b") == ["A", "B"]
        lonely = ask(batcher, "c")
        await asyncio.sleep(0.01)
        assert not lonely.done()
        now = 3600.0
        with batcher._changed:
            batcher._changed.notify()
        assert await lonely == ["C"]

    asyncio.run(story())
    batcher.stop()


def test_whoever_gave_up_leaves_room_in_the_queue() -> None:
    model = Recorder()

    async def story(batcher: Batcher) -> None:
        first = await occupy(batcher, model)
        leaving = ask(batcher, "a", "b" * 100, "c")
        await asyncio.sleep(0)
        assert batcher.num_waiting == 3
        leaving.cancel()
        await asyncio.wait([leaving])
        assert batcher.num_waiting == 0
        others = ask(batcher, *"defg")
        await asyncio.sleep(0)
        model.is_open.set()
        assert await others == ["D", "E", "F", "G"]
        await first

    run(model, Limits(max_queue=4, max_inputs=4), story)


def test_a_few_bad_inputs_cost_a_few_more_batches_and_not_one_for_each_input() -> None:
    model = Recorder()
    inputs = [*"abcdefghijklmno", "bad", *"qrstuvwxyzabcdef"]
    results = compute_apart(model, KIND, inputs)
    assert [one for one in results if not isinstance(one, DataError)] == [one.upper() for one in inputs if one != "bad"]
    assert len(model.batches) == 1 + 2 * 5  # 32 inputs are halved five times


def test_an_internal_error_is_reported_and_the_next_batch_is_computed() -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("cannot count")

    async def story(batcher: Batcher) -> None:
        batcher.observe = fail
        assert [type(result) for result in await ask(batcher, "a", "b")] == [RuntimeError, RuntimeError]
        batcher.observe = lambda *_: None
        assert await ask(batcher, "c") == ["C"]
        assert not batcher.is_broken

    run(Recorder(), Limits(), story)


def test_the_first_request_starts_what_nobody_started() -> None:
    batcher = Batcher(Recorder(), Limits())

    async def story() -> None:
        assert await ask(batcher, "a") == ["A"]

    asyncio.run(story())
    batcher.stop()
