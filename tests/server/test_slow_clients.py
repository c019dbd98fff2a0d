"""Clients that dawdle, do not read, or leave: none of them holds a place for long, and each is noted."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tiny_server import Gate, listen

from litebert.server.app import build_app
from litebert.server.connections import FREE_PARTS
from litebert.server.guard import Guard
from litebert.server.metrics import Metrics
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions

HEAD = b"POST /v1/embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(models: list[NamedModel]) -> Iterator[int]:
    app = build_app(models[:1], ServeOptions(limits=Limits(timeout_seconds=1.0)))
    with listen(app, timeout_seconds=1.0) as address:
        yield int(address.rpartition(":")[2])


def talk(port: int, *parts: bytes) -> bytes:
    """All that the server says to that, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("said", [b"", b"G", HEAD])
def test_who_does_not_finish_the_head_of_a_request_is_cut_off(port: int, said: bytes) -> None:
    assert talk(port, said) == b""


def test_a_second_head_on_the_same_connection_is_timed_too(port: int) -> None:
    body = json.dumps({"inputs": ["a"]}).encode()
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    answer = talk(port, whole, HEAD)
    assert answer.count(b"HTTP/1.1") == answer.count(b"200 OK") == 1


def test_a_body_that_does_not_come_is_refused_with_408(port: int) -> None:
    answer = talk(port, HEAD + b"Connection: close\r\nContent-Length: 100\r\n\r\n{")
    assert b" 408 " in answer
    assert b"too_slow" in answer


@pytest.mark.parametrize("head", [b"GET /health HTTP/1.1\r\nHost: localhost\r\n", HEAD])
def test_who_is_answered_before_the_end_of_a_body_holds_no_place(port: int, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head + b"Content-Length: 2000000\r\n\r\n")
        assert connection.recv(65536).startswith((b"HTTP/1.1 200", b"HTTP/1.1 413"))
        connection.sendall(b"x")
        with suppress(ConnectionResetError):  # the rest is not waited for: what comes of it is thrown away
            while connection.recv(65536):
                pass


def test_a_body_in_very_many_chunks_is_cut_off(port: int) -> None:
    chunks = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * FREE_PARTS
    assert b"not_http" in talk(port, chunks + b"1\r\n \r\n" * 20)
    large = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b'{"inputs": ["a"]' + b" " * 900_000 + b"}"
    parts = [b"1f4\r\n" + body[at : at + 500].ljust(500) + b"\r\n" for at in range(0, len(body), 500)]
    assert b" 200 " in talk(port, large, *parts, b"0\r\n\r\n")


async def call(app: Any, receive: Receive, send: Send) -> None:
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/embed", "raw_path": b"/v1/embed",
        "root_path": "", "query_string": b"", "headers": [(b"content-type", b"application/json")], "scheme": "http",
        "server": ("localhost", 80), "client": ("localhost", 1), "app": app,
    }  # fmt: skip
    await app(scope, receive, send)


def test_who_leaves_is_not_worked_for(models: list[NamedModel], gate: Gate) -> None:
    app = build_app(models[:1], ServeOptions())
    bodies: list[Message] = [{"type": "http.request", "body": b'{"inputs": ["a"]}'}] * 2
    sent: list[Message] = []

    async def story() -> None:
        has_left = asyncio.Event()

        async def send(message: Message) -> None:
            sent.append(message)

        def client(*, leaves: bool) -> Receive:
            parts = [bodies[0]]

            async def receive() -> Message:
                if parts:
                    return parts.pop()
                await (has_left.wait() if leaves else asyncio.Event().wait())
                return {"type": "http.disconnect"}

            return receive

        first = asyncio.ensure_future(call(app, client(leaves=False), send))
        await asyncio.to_thread(gate.has_come.wait, 60)  # the model is busy with it
        second = asyncio.ensure_future(call(app, client(leaves=True), send))
        await asyncio.sleep(0.01)
        assert not second.done()
        has_left.set()
        await second  # though the gate is closed
        gate.is_open.set()
        await first

    asyncio.run(story())
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [200]


class Silent:
    """An application that never answers, or sends what nobody reads."""

    routes = ()

    def __init__(self, *, sends: bool) -> None:
        self.sends = sends

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        if self.sends:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()


def count_requests(metrics: Metrics) -> dict[str, str]:
    return dict(
        re.findall(r'litebert_requests_total\{route="unknown",status="(\d+)"\} ([\d.]+)', metrics.to_text().decode())
    )


async def receive_nothing() -> Message:
    return {"type": "http.request", "body": b""}


def test_a_request_that_is_cut_off_is_noted() -> None:
    metrics = Metrics(lambda: 0)
    guard = Guard(Silent(sends=False), options=ServeOptions(), metrics=metrics)

    async def story() -> None:
        async def send(_: Message) -> None:
            pass

        task = asyncio.ensure_future(guard(scope_of(guard), receive_nothing, send))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(story())
    assert count_requests(metrics) == {"499": "1.0"}


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    metrics = Metrics(lambda: 0)
    limits = Limits(timeout_seconds=0.01)
    guard = Guard(Silent(sends=True), options=ServeOptions(limits=limits), metrics=metrics)

    async def story() -> None:
        async def send(_: Message) -> None:
            await asyncio.Event().wait()

        await guard(scope_of(guard), receive_nothing, send)

    asyncio.run(story())
    assert count_requests(metrics) == {"200": "1.0"}


def scope_of(guard: Guard) -> Scope:
    return {"type": "http", "method": "POST", "path": "/", "headers": [], "app": guard.app}
