"""The queue before the model: inputs of many requests become batches, and each request gets its own answers back.

Inputs that can be computed together (same model, function and settings) stand in one lane. One thread computes: it
takes the lane whose turn it is, as many of its inputs as are allowed at once; the predictor then puts those of like
length together. While it computes, new inputs gather; when it is idle, an input waits for company a bounded time, and
only if there was company before.

Turns are by cost (self-clocked fair queueing): an input's turn is the turn that is served when its request arrives,
plus the cost of the request's inputs up to it. So a short request passes the later inputs of a long one, and each
input's turn comes, whatever arrives after it. One input may be long itself: between two steps of its batch, a batch of
short inputs is computed, so that the short ones wait for a step and the long one takes at most twice as long.
"""

import asyncio
import heapq
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litebert.inference.session import Interrupted
from litebert.server.logs import log
from litebert.server.options import Limits

BATCH_COST = 16_384  # in one batch: a few long texts must not keep everybody else waiting
SHORT_COST = 4_096  # of a batch that may be computed between two steps of a longer one
_STOP_SECONDS = 10.0  # that the end waits for a batch that nobody wants any more


class Lane(NamedTuple):
    """What inputs must have in common to be computed together."""

    model: str
    function: str
    settings: Hashable


class QueueIsFull(Exception):
    """More inputs wait than are allowed to."""


class IsStopping(Exception):
    """The server takes no more requests."""


@dataclass
class Waiting:
    """A request whose inputs are in the queue."""

    future: asyncio.Future[list[Any]]
    results: list[Any]
    num_missing: int


@dataclass(frozen=True, order=True)
class Job:
    """One input of a request; ordered by turn."""

    turn: int
    serial: int  # of all inputs that ever came, so that no two are equal
    waiting: Waiting = field(compare=False)
    number: int = field(compare=False)  # among the request's inputs
    input: Any = field(compare=False)
    cost: int = field(compare=False)
    arrived_at: float = field(compare=False)


Compute = Callable[[Lane, Sequence[Any]], Sequence[Any]]
Observe = Callable[[Lane, int, float], None]  # hears of each batch: its size and its seconds


@dataclass
class Batcher:
    """The lanes and the thread that empties them; `start` and `stop` it."""

    compute: Compute
    limits: Limits
    observe: Observe = lambda *_: None
    clock: Callable[[], float] = time.monotonic
    _lanes: dict[Lane, list[Job]] = field(default_factory=dict)  # heaps
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _num_waiting: int = 0
    _num_arrived: int = 0
    _turn: int = 0  # that is being served
    _computing: Sequence[Job] = ()
    _computing_since: float = 0.0
    _is_crowded: bool = False  # the last batch had company, or others came while it was computed
    _is_stopping: bool = False
    _thread: threading.Thread | None = None

    @property
    def num_waiting(self) -> int:
        return self._num_waiting

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    @property
    def is_late(self) -> bool:
        """Whether the batch that is computed takes so long that a request sent now might not be answered in time."""
        is_computing = bool(self._computing)
        return is_computing and self.clock() - self._computing_since > self.limits.timeout_seconds / 2

    def is_wanted(self) -> bool:
        """Whether somebody still waits for the batch that is computed, or nothing is."""
        return not self._computing or any(not job.waiting.future.done() for job in self._computing)

    def begin_step(self) -> bool:
        """Called by what computes before each step: lets short inputs pass a long batch, then tells `is_wanted`."""
        if sum(job.cost for job in self._computing) > SHORT_COST and (taken := self._take_short()):
            self._answer(*taken)
        return self.is_wanted()

    @property
    def is_broken(self) -> bool:
        """Whether the thread died: nobody would ever be answered."""
        return self._thread is not None and not self._thread.is_alive() and not self._is_stopping

    def start(self) -> None:
        """Begin to compute; the first `ask` does it too, for apps whose start nobody tells, such as mounted ones."""
        if self._thread is None or self._is_stopping:  # an app may be started again after its end
            self._is_stopping = False
            self._thread = threading.Thread(target=self._run, name="litebert-batches", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take nothing more, compute what waits and is wanted, and return when it is done."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            while self._thread.is_alive() and self.is_wanted():
                self._thread.join(timeout=0.05)
            self._thread.join(_STOP_SECONDS)  # a daemon: what hangs in the model dies with the process

    async def ask(self, lane: Lane, inputs: Sequence[Any], costs: Sequence[int]) -> list[Any]:
        """The result for each input; an input that could not be computed has an exception for its result."""
        waiting = Waiting(asyncio.get_running_loop().create_future(), [None] * len(inputs), len(inputs))
        with self._changed:
            if self._is_stopping:
                raise IsStopping
            if self._num_waiting + len(inputs) > self.limits.max_queue:
                raise QueueIsFull
            now, turn = self.clock(), self._turn
            for number, (one, cost) in enumerate(zip(inputs, costs, strict=True)):
                turn += cost
                self._num_arrived += 1
                job = Job(turn, self._num_arrived, waiting, number, one, cost, now)
                heapq.heappush(self._lanes.setdefault(lane, []), job)
            self._num_waiting += len(inputs)
            self.start()
            self._changed.notify()
        try:
            return await waiting.future
        except asyncio.CancelledError:  # whoever gave up (a time limit, a client that left) is not worked for
            self._forget(waiting)
            raise

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            self._answer(*taken)

    def _answer(self, lane: Lane, jobs: Sequence[Job]) -> None:
        outer = self._computing, self._computing_since  # the longer batch that this one passes, if any
        self._computing, self._computing_since = jobs, self.clock()
        try:
            results = compute_apart(self.compute, lane, [job.input for job in jobs])
            self.observe(lane, len(jobs), self.clock() - self._computing_since)
            self._deliver(jobs, results)
            self._is_crowded = len(jobs) > 1 or self._num_waiting > 0
        except Interrupted:
            pass  # nobody is there to be told
        except Exception as error:  # our own mistake: these are told, and the thread lives on for all others
            log("failed", level=logging.ERROR, error=error)
            with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
                self._deliver(jobs, [error] * len(jobs))
        finally:
            self._computing, self._computing_since = outer

    def _take(self) -> tuple[Lane, list[Job]] | None:
        """The next batch; None when the end has come and nothing waits."""
        with self._changed:
            while True:
                while not self._lanes:
                    if self._is_stopping:
                        return None
                    self._changed.wait()
                lane = min(self._lanes, key=lambda lane: self._lanes[lane][0])
                remaining = self._lanes[lane][0].arrived_at + self.limits.max_wait_seconds - self.clock()
                has_company = len(self._lanes[lane]) >= self.limits.max_batch
                if has_company or not self._is_crowded or self._is_stopping or remaining <= 0:
                    return lane, self._cut_batch(lane, BATCH_COST)
                self._changed.wait(remaining)  # then anew: whoever was first may have given up

    def _take_short(self) -> tuple[Lane, list[Job]] | None:
        """The next batch of short inputs; None where no lane begins with one."""
        with self._changed:
            short = [lane for lane, queue in self._lanes.items() if queue[0].cost <= SHORT_COST]
            if not short:
                return None
            lane = min(short, key=lambda lane: self._lanes[lane][0])
            return lane, self._cut_batch(lane, SHORT_COST)

    def _forget(self, waiting: Waiting) -> None:
        """Take a request's inputs out of the queue, where others want their places."""
        with self._changed:
            for lane in list(self._lanes):
                kept = [job for job in self._lanes[lane] if job.waiting is not waiting]
                self._num_waiting -= len(self._lanes[lane]) - len(kept)
                heapq.heapify(kept)
                self._lanes[lane] = kept
                if not kept:
                    del self._lanes[lane]

    def _cut_batch(self, lane: Lane, most: int) -> list[Job]:
        queue = self._lanes[lane]
        jobs = [heapq.heappop(queue)]
        self._turn = max(self._turn, jobs[0].turn)
        room = most - jobs[0].cost
        while queue and len(jobs) < self.limits.max_batch and (room := room - queue[0].cost) >= 0:
            jobs.append(heapq.heappop(queue))
        if not queue:
            del self._lanes[lane]
        self._num_waiting -= len(jobs)
        return jobs

    def _deliver(self, jobs: Sequence[Job], results: Sequence[Any]) -> None:
        complete: dict[int, Waiting] = {}
        for job, result in zip(jobs, results, strict=True):
            job.waiting.results[job.number] = result
            job.waiting.num_missing -= 1
            if not job.waiting.num_missing:
                complete[id(job.waiting)] = job.waiting
        if complete:
            loop = next(iter(complete.values())).future.get_loop()
            loop.call_soon_threadsafe(_finish, list(complete.values()))


def compute_apart(compute: Compute, lane: Lane, inputs: Sequence[Any]) -> list[Any]:
    """The results, computed together; if that fails in halves, so that one bad input spoils no other's answer."""
    try:
        return list(compute(lane, inputs))
    except Interrupted:
        raise
    except Exception as error:
        if len(inputs) == 1:
            return [error]
    middle = len(inputs) // 2
    return [*compute_apart(compute, lane, inputs[:middle]), *compute_apart(compute, lane, inputs[middle:])]


def _finish(complete: Sequence[Waiting]) -> None:
    for waiting in complete:
        if not waiting.future.done():
            waiting.future.set_result(waiting.results)
