"""Prometheus metrics, in a registry of their own so that two servers in one process do not conflict."""

import logging
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from litebert.server.batching import BatchKind
from litebert.server.logs import log

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters of requests and batches."""

    def __init__(self, num_waiting: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "litebert_requests", "Requests answered, refusals included.", ["route", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "litebert_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "litebert_batch_size",
            "Inputs computed at once.",
            ["model", "function"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "litebert_batch_seconds",
            "The model's time for a batch.",
            ["model", "function"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.open_requests = Gauge("litebert_open_requests", "Requests not answered yet.", registry=self.registry)
        waiting = Gauge("litebert_waiting_inputs", "Inputs that wait for the model.", registry=self.registry)
        waiting.set_function(num_waiting)
        ProcessCollector(registry=self.registry)

    def observe_batch(self, kind: BatchKind, size: int, seconds: float) -> None:
        self.batch_size.labels(kind.model, kind.function).observe(size)
        self.batch_seconds.labels(kind.model, kind.function).observe(seconds)

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)

    def count_refusal(self, status: int) -> None:
        """Count and log a connection or request refused before it reached a route."""
        self.requests.labels("unknown", str(status)).inc()
        log("refused", level=logging.WARNING, status=status)

    def to_text(self) -> bytes:
        return generate_latest(self.registry)
