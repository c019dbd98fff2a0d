"""What tests of the server hold in their hands."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from litebert.server.connections import MAX_CONNECTIONS, build_protocol
from litebert.server.options import ServeOptions
from litebert.server.server import bind

ServeTiny = Callable[..., AbstractContextManager[TestClient]]


class Gate:
    """Lets a model compute only while it is open; tells when a batch has come to it."""

    def __init__(self) -> None:
        self.is_open, self.has_come = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.has_come.set()
        assert self.is_open.wait(timeout=60)


@contextmanager
def listen(app: FastAPI, timeout_seconds: float = 60.0, *, max_connections: int = MAX_CONNECTIONS) -> Iterator[str]:
    """The address of an app that listens in a thread."""
    listener = bind(ServeOptions(port=0))
    protocol = build_protocol(
        timeout_seconds, max_connections=max_connections, count_refusal=app.state.metrics.count_refusal
    )
    config = uvicorn.Config(app, log_config=None, access_log=False, http=protocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listener.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask again and again, but not for ever."""
    for _ in range(6000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass within a minute")
