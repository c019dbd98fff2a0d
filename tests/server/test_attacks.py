"""Requests made to hurt: each is refused at once, and nobody else waits for it."""

import asyncio
import http.client
import json
import socket
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tiny_server import Gate, ServeTiny, listen, wait_until

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import DataError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.predictor import Predictor
from litebert.inference.session import Interrupted
from litebert.model.model import build_model
from litebert.server import guard as guarding
from litebert.server.app import build_app
from litebert.server.batching import BATCH_COST, SHORT_COST, Batcher, BatchKind
from litebert.server.costs import count_characters, estimate_cost
from litebert.server.functions import FUNCTIONS
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions
from litebert.server.schemas import MARKS, MAX_MARKS
from litebert.tasks.catalog import task_facts
from litebert.tasks.squad.task import SpanTask
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

AS_JSON = {"content-type": "application/json"}
SECONDS = 5.0  # far more than any refusal takes here, far less than the attacks took


def refuse(client: TestClient, function: str, body: str) -> tuple[int, str, str]:
    began_at = time.monotonic()
    response = client.post(f"/v1/{function}", content=body, headers=AS_JSON)
    assert time.monotonic() - began_at < SECONDS
    assert len(response.content) < 1000
    error = response.json()["error"]
    return response.status_code, error["code"], error["where"]


def test_half_a_million_inputs_of_the_wrong_kind_are_counted_and_not_described(client: TestClient) -> None:
    assert refuse(client, "embed", f'{{"inputs":[{"1," * 489_999}1]}}') == (422, "too_many", "inputs")


@pytest.mark.parametrize(
    ("function", "body", "where"),
    [
        ("tokens", f'{{"inputs":[[{"1," * 400_000}1]]}}', "inputs.0"),
        ("embed", f'{{"inputs":[[{"1," * 400_000}1]]}}', "inputs.0"),
        ("choose", f'{{"inputs":[{{"choices":[{"1," * 400_000}1]}}]}}', "inputs.0.choices"),
        ("embed", json.dumps({f"key-{n}": 1 for n in range(60_000)}), ""),
        ("answer", json.dumps({"inputs": [{f"key-{n}": 1 for n in range(60_000)}]}), "inputs.0"),
    ],
)
def test_a_repeated_error_is_reported_once(client: TestClient, function: str, body: str, where: str) -> None:
    status, code, place = refuse(client, function, body)
    assert (status, code) == (422, "invalid")
    assert place.startswith(where)


def test_an_unknown_key_is_not_repeated_at_length(client: TestClient) -> None:
    _, _, where = refuse(client, "embed", json.dumps({"inputs": ["a"], "k" * 100_000: 1}))
    assert where == "k" * 40 + "…"


@pytest.mark.parametrize("marks", ["\u0300\u0327", "\u0f73", "\u0323\uff9e"])
def test_a_letter_with_a_tower_of_marks_is_refused_before_they_are_sorted(client: TestClient, marks: str) -> None:
    body = json.dumps({"inputs": ["the cat", "a" + marks * 150_000]}, ensure_ascii=False)
    assert refuse(client, "embed", body) == (422, "invalid", "inputs.1")
    body = json.dumps({"inputs": [["a" + marks * 5_000] * 2] * 10}, ensure_ascii=False)
    assert refuse(client, "tokens", body) == (422, "invalid", "inputs.0.0")
    few = "a" + marks * (MAX_MARKS // len(marks))
    assert client.post("/v1/embed", json={"inputs": [few * 20]}).status_code == 200


def test_every_character_that_normalization_may_move_counts_as_a_mark() -> None:
    begins_with_mark = [
        one
        for one in map(chr, range(0x300, sys.maxunicode + 1))
        if not "\ud800" <= one <= "\udfff" and unicodedata.combining(unicodedata.normalize("NFKD", one)[0])
    ]
    assert set(begins_with_mark) == set(MARKS)


@pytest.mark.parametrize("body", ["[" * 900_000, '{"inputs":' * 90_000, f'{{"inputs":[{"9" * 900_000}]}}'])
def test_what_no_parser_likes_is_no_mistake_of_ours(client: TestClient, body: str) -> None:
    assert refuse(client, "embed", body)[:2] == (400, "not_json")


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        ("fill-mask", {"top_k": "5"}),
        ("fill-mask", {"top_k": True}),
        ("classify", {"patience": "0"}),
        ("classify", {"patience": False}),
        ("read", {"head": "0"}),
        ("read", {"head": 0.5}),
        ("embed", {"normalize": 1}),
        ("embed", {"normalize": "yes"}),
    ],
)
def test_types_are_not_guessed(client: TestClient, function: str, settings: dict[str, Any]) -> None:
    body = {"inputs": ["the [MASK] cat"], **settings}
    assert refuse(client, function, json.dumps(body))[0] == 422


def test_a_whole_number_may_be_written_as_json_schema_allows(client: TestClient) -> None:
    assert client.post("/v1/read", content='{"inputs": ["a"], "head": 1.0}', headers=AS_JSON).status_code == 200


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Any) -> NamedModel:
    """A model that answers questions, with a vocabulary that normalizes by NFKC."""
    sentences = ["the old cat sees a small bird near the river"] * 20 + ["صلى الله عليه وسلم"] * 20
    tokenizer = train_tokenizer(sentences, VocabularyOptions(kind="unigram", vocab_size=45))
    task = SpanTask("squad-v1", max_question_length=16, stride=16)
    folder = tmp_path_factory.mktemp("reader") / "model"
    config = replace(load_checkpoint(tiny_checkpoint).config, vocab_size=tokenizer.vocab_size)
    content = CheckpointContent(step=1, task=task_facts(task, max_length=48))
    save_checkpoint(folder, build_model(config, task.heads), tokenizer, content)
    return NamedModel.of("reader", Predictor(load_checkpoint(folder), choose_runtime(RuntimeOptions(device="cpu"))))


def test_characters_count_as_the_tokenizer_sees_them(reader: NamedModel) -> None:
    tokenizer = reader.predictor.tokenizer
    assert count_characters("\ufdfa" * 1000, tokenizer, 20_000) >= 18_000
    assert count_characters("\ufdfa" * 1000, tokenizer, 500) == 1000  # it is too long, whatever it becomes
    assert count_characters(["cat", "", "dog"], tokenizer, 20_000) == 8
    with TestClient(build_app([reader], ServeOptions())) as client:
        body = {"inputs": [{"question": "who", "context": "\ufdfa" * 19_000}]}
        assert refuse(client, "answer", json.dumps(body)) == (422, "too_long", "inputs.0")


def test_a_passage_of_too_many_windows_is_refused(serve_tiny: ServeTiny) -> None:
    passage = {"question": "who", "context": "the cat sees a bird. " * 200}
    with serve_tiny(Limits(max_tokens=2000)) as client:
        for function, one in (("answer", passage), ("tokens", "the cat sees a bird " * 600)):
            short = {"question": "who", "context": "the cat"} if function == "answer" else "the cat"
            refused = client.post(f"/v1/{function}", json={"inputs": [short, one]})
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["where"]) == (422, "too_long", "inputs.1")
            assert "limit of 2,000" in error["message"]
            assert client.post(f"/v1/{function}", json={"inputs": [short]}).status_code == 200
    with serve_tiny() as client:
        assert client.post("/v1/answer", json={"inputs": [passage]}).status_code == 200


LONG, SHORT = BatchKind("model", "long", ()), BatchKind("model", "short", ())


def test_a_short_request_passes_the_later_inputs_of_a_long_one() -> None:
    order: list[str] = []
    is_open, has_come = threading.Event(), threading.Event()

    def compute(kind: BatchKind, inputs: Any) -> Any:
        has_come.set()
        assert is_open.wait(60)
        order.append(kind.function)
        return inputs

    batcher = Batcher(compute, Limits())

    async def story() -> None:
        long = asyncio.ensure_future(batcher.ask(LONG, ["x"] * 60, [BATCH_COST] * 60))
        await asyncio.to_thread(has_come.wait, 60)
        shorts = [asyncio.ensure_future(batcher.ask(SHORT, ["a"], [10])) for _ in range(5)]
        await asyncio.sleep(0)
        is_open.set()
        await asyncio.gather(long, *shorts)

    asyncio.run(story())
    batcher.stop()
    assert order.index("short") == 1  # after the one that was being computed
    assert order.count("long") == 60


def test_short_inputs_pass_a_long_one_between_its_steps_and_no_faster() -> None:
    order: list[str] = []
    has_come = threading.Event()

    def compute(kind: BatchKind, inputs: Any) -> Any:
        for step in range(5 if kind is LONG else 1):
            assert batcher.begin_step()
            order.append(f"{kind.function} {step}")
            has_come.set()
            time.sleep(0.05)
        return inputs

    batcher = Batcher(compute, Limits(max_batch=1))

    async def story() -> None:
        long = asyncio.ensure_future(batcher.ask(LONG, ["x"], [BATCH_COST]))
        await asyncio.to_thread(has_come.wait, 60)
        other_long = asyncio.ensure_future(batcher.ask(LONG, ["y"], [SHORT_COST + 1]))
        await asyncio.gather(*[batcher.ask(SHORT, ["a"], [10]) for _ in range(3)])
        assert not long.done()
        await asyncio.gather(long, other_long)

    asyncio.run(story())
    batcher.stop()
    between = ["long 0", "short 0", "long 1", "short 0", "long 2", "short 0", "long 3", "long 4"]
    assert order == between + [f"long {step}" for step in range(5)]


def test_each_choice_is_paid_for(models: list[NamedModel]) -> None:
    predictor = next(model.predictor for model in models if model.name == "choices")
    function = FUNCTIONS["choose"]
    two, eight = (
        function.request.model_validate({"inputs": [{"context": "c" * 500, "choices": ["a"] * count}]}).inputs[0]  # type: ignore[attr-defined]
        for count in (2, 8)
    )
    assert estimate_cost(function, predictor, eight, 500) == 4 * estimate_cost(function, predictor, two, 500)


def test_a_long_request_has_its_turn_though_short_ones_keep_coming() -> None:
    order: list[str] = []
    batcher = Batcher(lambda kind, inputs: order.append(kind.function) or inputs, Limits(max_wait_seconds=0.0))

    async def story() -> None:
        long = asyncio.ensure_future(batcher.ask(LONG, ["x"], [1000]))
        while not long.done():
            await asyncio.gather(*[batcher.ask(SHORT._replace(settings=n), ["a"], [10]) for n in range(3)])
            assert len(order) < 1000
        await long

    asyncio.run(story())
    batcher.stop()


def test_work_is_interrupted_when_nobody_waits_for_it_any_more(
    models: list[NamedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passage of many windows is read in slices: after each it is asked whether somebody still waits."""
    predictor = next(model.predictor for model in models if model.name == "answers")
    slow = Predictor(predictor.checkpoint, predictor.runtime, replace(predictor.engine, batch_tokens=48))
    app = build_app([NamedModel.of("answers", slow)], ServeOptions(limits=Limits(timeout_seconds=0.5)))
    slices, engine = [], type(slow.engine)
    run = engine.run

    def run_slowly(self: Any, *arguments: Any) -> Any:
        slices.append(1)
        time.sleep(0.2)
        return run(self, *arguments)

    monkeypatch.setattr(engine, "run", run_slowly)
    body = {"inputs": [{"question": "who", "context": "the cat sees a bird. " * 100}]}
    began_at = time.monotonic()
    with TestClient(app) as client:
        assert client.post("/v1/answer", json=body).status_code == 503
    assert time.monotonic() - began_at < SECONDS  # the end waited for it neither
    assert len(slices) < 10


def test_a_server_whose_model_is_held_is_not_ready(serve_tiny: ServeTiny, gate: Gate) -> None:
    with serve_tiny(Limits(timeout_seconds=1.0)) as client:
        late = threading.Thread(target=lambda: client.post("/v1/embed", json={"inputs": ["a"]}))
        late.start()
        wait_until(lambda: client.get("/ready").json() == {"status": "busy"})
        gate.is_open.set()
        late.join()
        wait_until(lambda: client.get("/ready").json() == {"status": "ready"})


@pytest.fixture
def small_bodies(models: list[NamedModel], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(guarding, "_NUM_FULL_BODIES", 2)
    with listen(build_app(models[:1], ServeOptions())) as address:
        yield int(address.rpartition(":")[2])


def test_unfinished_bodies_take_little_memory_and_do_not_delay_small_requests(small_bodies: int) -> None:
    head = b"POST /v1/embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: 990000\r\n\r\n"
    held = [socket.create_connection(("127.0.0.1", small_bodies), timeout=60) for _ in range(4)]
    for connection in held[:2]:
        connection.sendall(head + b"x" * 980_000)
    time.sleep(0.5)
    held[2].sendall(head + b"x" * 500_000)
    assert held[2].recv(65536).startswith(b"HTTP/1.1 429")
    client = http.client.HTTPConnection("127.0.0.1", small_bodies, timeout=60)
    client.request("POST", "/v1/embed", '{"inputs": ["a"]}', AS_JSON)
    assert client.getresponse().status == 200
    client.close()
    for connection in held:
        connection.close()


def test_a_missing_model_file_is_an_internal_error_without_a_path(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("missing-file", "/srv/models/secret/model.safetensors: no such file")

    monkeypatch.setattr(Predictor, "embed", fail)
    response = client.post("/v1/embed", json={"inputs": ["a"]})
    assert response.status_code == 500
    assert "secret" not in response.text


def test_interrupted_work_is_not_tried_again_in_halves() -> None:
    calls = []

    def compute(kind: BatchKind, _: Any) -> Any:
        calls.append(kind)
        raise Interrupted

    batcher = Batcher(compute, Limits())

    async def story() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.ask(LONG, ["a", "b"], [1, 1]), timeout=0.2)

    asyncio.run(story())
    batcher.stop()
    assert len(calls) == 1
