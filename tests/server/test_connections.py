"""Connections beyond the limit, requests that are not HTTP, and what the log says of them."""

import http.client
import json
import logging
import re
import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tiny_server import Gate, listen, wait_until

from litebert.server.app import build_app
from litebert.server.connections import MAX_CONNECTIONS, choose_max_connections
from litebert.server.logs import JsonLines, RepeatLimit
from litebert.server.models import NamedModel
from litebert.server.options import ServeOptions
from litebert.server.server import bind


@pytest.fixture(scope="module")
def port(models: list[NamedModel]) -> Iterator[int]:
    with listen(build_app(models[:1], ServeOptions()), max_connections=5) as address:
        yield int(address.rpartition(":")[2])


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def read_all(connection: socket.socket) -> tuple[bytes, dict[str, dict[str, str]]]:
    head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return head, json.loads(body)


def count_unknown(port: int, status: int) -> float:
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    found = re.search(rf'litebert_requests_total{{route="unknown",status="{status}"}} ([\d.]+)', text)
    return float(found[1]) if found else 0.0


def test_a_connection_beyond_the_limit_is_refused_in_the_documented_form_and_counted(port: int) -> None:
    held = [connect(port) for _ in range(5)]
    with connect(port) as refused:
        head, body = read_all(refused)
    assert b" 503 " in head
    assert b"connection: close" in head.lower()
    assert body["error"]["code"] == "busy"
    for connection in held:
        connection.close()
    while (count := count_unknown(port, 503)) == 0:  # until their places are free
        pass
    assert count >= 1


def test_what_is_not_http_is_refused_in_the_documented_form_and_counted(port: int) -> None:
    before = count_unknown(port, 400)
    with connect(port) as connection:
        connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        head, body = read_all(connection)
    assert b" 400 " in head
    assert body["error"]["code"] == "not_http"
    assert count_unknown(port, 400) == before + 1


def test_the_limit_of_connections_leaves_files_for_everything_else() -> None:
    assert choose_max_connections(1_000_000) == MAX_CONNECTIONS
    assert 500 < choose_max_connections(1024) < 1024 - 128
    assert choose_max_connections(16) == 1


def test_answers_are_sent_without_delay() -> None:
    """asyncio sets TCP_NODELAY only on sockets whose protocol is said to be TCP."""
    with bind(ServeOptions(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_repeated_lines_are_left_out_and_counted() -> None:
    now = 0.0
    limit = RepeatLimit(max_lines=3, period_seconds=10.0, clock=lambda: now)

    def make(line: int) -> logging.LogRecord:
        return logging.LogRecord("asyncio", logging.ERROR, "selector_events.py", line, "out of resources", None, None)

    assert [limit(make(7)) for _ in range(5)] == [True, True, True, False, False]
    assert limit(make(8))  # another place in the code
    now = 10.0
    assert limit(following := make(7))
    assert json.loads(JsonLines().format(following))["left_out"] == 2


def test_what_is_answered_while_it_stops_says_that_the_connection_closes(models: list[NamedModel], gate: Gate) -> None:
    def ask(port: int) -> tuple[int, str | None]:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        client.request("POST", "/v1/embed", '{"inputs": ["a"]}', {"Content-Type": "application/json"})
        response = client.getresponse()
        client.close()
        return response.status, response.getheader("connection")

    def open_gate_when_it_stops(port: int) -> None:
        wait_until(lambda: not is_listening(port))
        gate.is_open.set()

    with ThreadPoolExecutor(2) as threads:
        with listen(build_app(models[:1], ServeOptions())) as address:
            port = int(address.rpartition(":")[2])
            asked = threads.submit(ask, port)
            assert gate.has_come.wait(60)
            threads.submit(open_gate_when_it_stops, port)
        assert asked.result() == (200, "close")


def is_listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
