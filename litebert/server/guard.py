"""Middleware that checks host, token, body size and time before a route, and adds headers, metrics and a log line."""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from litebert.core.ranges import read_whole_number
from litebert.server.logs import log
from litebert.server.metrics import Metrics
from litebert.server.options import ServeOptions
from litebert.server.refusals import ClientLeft, Refused

# Accessible without a token: the pages, the OpenAPI description, and the health and readiness checks.
_OPEN = ("/", "/docs", "/openapi.json", "/health", "/ready")
_OPEN_FOLDER = "/page/"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")  # others are arbitrary text and not logged
# Each body may use this much memory. Beyond it, all bodies together may use as much as `_NUM_FULL_BODIES` full ones.
_FREE_BODY_BYTES = 65_536
_NUM_FULL_BODIES = 32
_LEFT = 499  # client disconnected; only logged, as nginx does
# With these, browsers load nothing from other origins into the page and do not frame it.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class Exchange:
    """The state of a request and its response."""

    status: int = 0
    is_answered: bool = False  # completely
    num_large_bytes: int = 0  # of its body, beyond _FREE_BODY_BYTES


class Guard:
    """ASGI middleware around the whole application; only the CORS middleware is outside of it."""

    def __init__(
        self, app: ASGIApp, *, options: ServeOptions, metrics: Metrics, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.app, self.options, self.metrics, self.clock = app, options, metrics, clock
        self._routes: frozenset[str] = frozenset()
        self._num_large_bytes = 0  # of all requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.options.root_path:  # a proxy may or may not have removed it from the path
            scope["root_path"] = self.options.root_path
        started_at, exchange = self.clock(), Exchange()
        seconds = self.options.limits.timeout_seconds
        scope.setdefault("state", {})["give_up_at"] = asyncio.get_running_loop().time() + seconds
        try:
            # the client may also disconnect while a refusal is sent
            with self.metrics.open_requests.track_inprogress(), suppress(ClientLeft):
                await self._answer(scope, receive, _watch(send, exchange, seconds), exchange)
        finally:  # cancelled requests are logged too
            self._num_large_bytes -= exchange.num_large_bytes
            self._note(scope, exchange, self.clock() - started_at)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        try:
            self._check(scope)
            await self.app(scope, await self._read(scope, receive, exchange), send)
        except Refused as refused:
            await refused.to_response()(scope, receive, send)
        except ClientLeft:
            raise
        except Exception as error:
            log("failed", level=logging.ERROR, error=error, route=self._route(scope))
            if not exchange.status:
                await Refused(500, "internal error; see the server's log").to_response()(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers, path, token = Headers(scope=scope), _path(scope), self.options.token
        if self.options.hosts and _host(headers) not in self.options.hosts:
            raise Refused(421, "the server does not accept this Host header: add the name to its allowed hosts")
        if token and path not in _OPEN and not path.startswith(_OPEN_FOLDER):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.encode("latin-1"), token.encode())
            if scheme.lower() != "bearer" or not is_right:
                raise Refused(401, "a token is required: send the header `Authorization: Bearer ...`")
        length = headers.get("content-length", "")
        num_bytes = read_whole_number(length)  # None if it has very many digits: too large as well
        if length.isdecimal() and (num_bytes is None or num_bytes > self.options.limits.max_body_bytes):
            raise self._too_large()

    async def _read(self, scope: Scope, receive: Receive, exchange: Exchange) -> Receive:
        """Read the whole body within the limits of size and time; return a `receive` that starts with it."""
        if scope["method"] in ("GET", "HEAD"):
            return receive
        try:
            async with asyncio.timeout_at(scope["state"]["give_up_at"]):
                body = await self._read_body(receive, exchange)
        except TimeoutError:
            raise Refused(
                408, f"the request took longer than {self.options.limits.timeout_seconds:g} s to arrive"
            ) from None
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def hand_on() -> Message:
            return whole.pop() if whole else await receive()

        return hand_on

    async def _read_body(self, receive: Receive, exchange: Exchange) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.options.limits.max_body_bytes:
                raise self._too_large()
            # memory is reserved until the request is answered, so that many large uploads cannot exhaust it
            added = max(0, size - _FREE_BODY_BYTES) - exchange.num_large_bytes
            if self._num_large_bytes + added > _NUM_FULL_BODIES * self.options.limits.max_body_bytes:
                raise Refused(429, "too many large requests at once; retry in a second")
            self._num_large_bytes += added
            exchange.num_large_bytes += added
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Refused:
        return Refused(
            413,
            f"the request body exceeds {self.options.limits.max_body_bytes:,} bytes: split it into smaller requests",
        )

    def _note(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        route, status = self._route(scope), exchange.status or _LEFT
        self.metrics.observe_request(route, status, seconds)
        values: dict[str, Any] = scope.get("state", {}).get("noted", {})
        log(
            "request",
            method=scope["method"] if scope["method"] in _METHODS else "other",
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 2),
            is_answered=exchange.is_answered,
            **values,
        )

    def _route(self, scope: Scope) -> str:
        """The path if we have such a route; others are arbitrary text and not logged."""
        self._routes = self._routes or frozenset(getattr(route, "path", "") for route in scope["app"].routes)
        path = _path(scope)
        return path if path in self._routes else "unknown"


def _watch(send: Send, exchange: Exchange, seconds: float) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise ClientLeft from None  # the client does not read the response
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            exchange.is_answered = True

    return sending


def _path(scope: Scope) -> str:
    """The path as our routes define it, without the prefix of a mount or a proxy."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(root) :] or "/" if root and f"{path}/".startswith(f"{root}/") else path


def _host(headers: Headers) -> str:
    """The host in the Host header, without the port; an IPv6 address without brackets."""
    host = headers.get("host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].lower()
