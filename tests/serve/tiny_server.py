"""What tests of the server hold in their hands."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from fastapi.testclient import TestClient

ServeTiny = Callable[..., AbstractContextManager[TestClient]]


class Gate:
    """Lets a model compute only while it is open; tells when a batch has come to it."""

    def __init__(self) -> None:
        self.is_open, self.has_come = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.has_come.set()
        assert self.is_open.wait(timeout=60)
