"""The batch queue: inputs of many requests are computed in shared batches, and each request gets its own results.

Inputs that can be computed together (same model, function and settings, a `BatchKind`) are in one queue. One thread
computes: it picks the queue whose turn is next and takes as many of its inputs as the limits allow; the predictor then
groups them by length. During a batch, new inputs queue up. When the thread is idle, an input waits a bounded time for
others to share its batch, but only under load (the last batch was shared, or inputs arrived during it).

Turns are by cost (self-clocked fair queueing): an input's turn is the turn being served when its request arrives, plus
the cost of the request's inputs up to and including it. So a short request overtakes the later inputs of a long one,
and no input starves. A single input may be long, too: between two steps of its batch, a batch of short inputs is
computed, so short inputs wait for one step only, and the long one takes at most twice as long.
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

BATCH_COST = 16_384  # of one batch, so that a few long texts do not delay all other requests
SHORT_COST = 4_096  # of a batch that may be computed between two steps of a longer one
_STOP_SECONDS = 10.0  # how long `stop` waits for a batch that no request needs


class BatchKind(NamedTuple):
    """Inputs with the same model, function and settings can be computed together."""

    model: str
    function: str
    settings: Hashable


class QueueIsFull(Exception):
    """The queue has no room for the request's inputs."""


class IsStopping(Exception):
    """The server is shutting down and accepts no more requests."""


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
    serial: int  # unique among all inputs, so that no two jobs compare equal
    waiting: Waiting = field(compare=False)
    number: int = field(compare=False)  # index among the request's inputs
    input: Any = field(compare=False)
    cost: int = field(compare=False)
    arrived_at: float = field(compare=False)


Compute = Callable[[BatchKind, Sequence[Any]], Sequence[Any]]
Observe = Callable[[BatchKind, int, float], None]  # called after each batch with its size and seconds


@dataclass
class Batcher:
    """The queues and the thread that computes their inputs; `start` and `stop` control it."""

    compute: Compute
    limits: Limits
    observe: Observe = lambda *_: None
    clock: Callable[[], float] = time.monotonic
    _queues: dict[BatchKind, list[Job]] = field(default_factory=dict)  # heaps
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _num_waiting: int = 0
    _num_arrived: int = 0
    _turn: int = 0  # the one being served
    _computing: Sequence[Job] = ()
    _computing_since: float = 0.0
    _is_crowded: bool = False  # the last batch had several inputs, or inputs arrived while it was computed
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
        """Whether the current batch takes so long that a new request might time out."""
        is_computing = bool(self._computing)
        return is_computing and self.clock() - self._computing_since > self.limits.timeout_seconds / 2

    def is_wanted(self) -> bool:
        """Whether a request still waits for the current batch; True if there is no batch."""
        return not self._computing or any(not job.waiting.future.done() for job in self._computing)

    def begin_step(self) -> bool:
        """Called by the predictor before each step: compute short inputs during a long batch; return `is_wanted`."""
        if sum(job.cost for job in self._computing) > SHORT_COST and (taken := self._take_short()):
            self._answer(*taken)
        return self.is_wanted()

    @property
    def is_broken(self) -> bool:
        """Whether the thread died, so that no request would ever be answered."""
        return self._thread is not None and not self._thread.is_alive() and not self._is_stopping

    def start(self) -> None:
        """Start the thread. The first `ask` does so too, for apps without a startup event, such as mounted ones."""
        if self._thread is None or self._is_stopping:  # an app may be restarted after it was stopped
            self._is_stopping = False
            self._thread = threading.Thread(target=self._run, name="litebert-batches", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Accept no more inputs, compute those that requests still wait for, and return when done."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            while self._thread.is_alive() and self.is_wanted():
                self._thread.join(timeout=0.05)
            self._thread.join(_STOP_SECONDS)  # a daemon thread: a batch that hangs ends with the process

    async def ask(self, kind: BatchKind, inputs: Sequence[Any], costs: Sequence[int]) -> list[Any]:
        """The result for each input; an exception if the input could not be computed."""
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
                heapq.heappush(self._queues.setdefault(kind, []), job)
            self._num_waiting += len(inputs)
            self.start()
            self._changed.notify()
        try:
            return await waiting.future
        except asyncio.CancelledError:  # timed out, or the client disconnected: do not compute its inputs
            self._forget(waiting)
            raise

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            self._answer(*taken)

    def _answer(self, kind: BatchKind, jobs: Sequence[Job]) -> None:
        outer = self._computing, self._computing_since  # the longer batch that this one overtakes, if any
        self._computing, self._computing_since = jobs, self.clock()
        try:
            results = compute_apart(self.compute, kind, [job.input for job in jobs])
            self.observe(kind, len(jobs), self.clock() - self._computing_since)
            self._deliver(jobs, results)
            self._is_crowded = len(jobs) > 1 or self._num_waiting > 0
        except Interrupted:
            pass  # no request waits for it any more
        except Exception as error:  # our bug: these requests get the error, and the thread keeps running
            log("failed", level=logging.ERROR, error=error)
            with suppress(RuntimeError):  # the event loop is closed, so no request waits
                self._deliver(jobs, [error] * len(jobs))
        finally:
            self._computing, self._computing_since = outer

    def _take(self) -> tuple[BatchKind, list[Job]] | None:
        """The next batch; None if the batcher is stopping and the queue is empty."""
        with self._changed:
            while True:
                while not self._queues:
                    if self._is_stopping:
                        return None
                    self._changed.wait()
                kind = min(self._queues, key=lambda kind: self._queues[kind][0])
                remaining = self._queues[kind][0].arrived_at + self.limits.max_wait_seconds - self.clock()
                has_full_batch = len(self._queues[kind]) >= self.limits.max_batch
                if has_full_batch or not self._is_crowded or self._is_stopping or remaining <= 0:
                    return kind, self._cut_batch(kind, BATCH_COST)
                self._changed.wait(remaining)  # then choose again: the first request may have been cancelled

    def _take_short(self) -> tuple[BatchKind, list[Job]] | None:
        """The next batch of short inputs; None if no queue starts with one."""
        with self._changed:
            short = [kind for kind, queue in self._queues.items() if queue[0].cost <= SHORT_COST]
            if not short:
                return None
            kind = min(short, key=lambda kind: self._queues[kind][0])
            return kind, self._cut_batch(kind, SHORT_COST)

    def _forget(self, waiting: Waiting) -> None:
        """Remove a request's inputs from the queue to make room for others."""
        with self._changed:
            for kind in list(self._queues):
                kept = [job for job in self._queues[kind] if job.waiting is not waiting]
                self._num_waiting -= len(self._queues[kind]) - len(kept)
                heapq.heapify(kept)
                self._queues[kind] = kept
                if not kept:
                    del self._queues[kind]

    def _cut_batch(self, kind: BatchKind, most: int) -> list[Job]:
        queue = self._queues[kind]
        jobs = [heapq.heappop(queue)]
        self._turn = max(self._turn, jobs[0].turn)
        room = most - jobs[0].cost
        while queue and len(jobs) < self.limits.max_batch and (room := room - queue[0].cost) >= 0:
            jobs.append(heapq.heappop(queue))
        if not queue:
            del self._queues[kind]
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


def compute_apart(compute: Compute, kind: BatchKind, inputs: Sequence[Any]) -> list[Any]:
    """The results, computed together; if that fails, in halves, so that one bad input does not fail the others."""
    try:
        return list(compute(kind, inputs))
    except Interrupted:
        raise
    except Exception as error:
        if len(inputs) == 1:
            return [error]
    middle = len(inputs) // 2
    return [*compute_apart(compute, kind, inputs[:middle]), *compute_apart(compute, kind, inputs[middle:])]


def _finish(complete: Sequence[Waiting]) -> None:
    for waiting in complete:
        if not waiting.future.done():
            waiting.future.set_result(waiting.results)
