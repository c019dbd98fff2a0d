"""What stands before every page: size, time, token; and behind it: headers, counts and a line in the log."""

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

# Whoever has no token may see these, and nothing else: the page, its description, and whether the server lives.
_OPEN = ("/", "/docs", "/openapi.json", "/health", "/ready")
_OPEN_FOLDER = "/page/"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")  # another may be anything, and is not logged
# Of every body this much may be held in memory; the rest of all bodies together is bounded by so many full ones.
_FREE_BODY_BYTES = 65_536
_NUM_FULL_BODIES = 32
_LEFT = 499  # nobody is there to be told; the number is what other servers log
# The page loads nothing from elsewhere and may not be framed; a browser keeps it so.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class Exchange:
    """What is known of a request and its answer so far."""

    status: int = 0
    is_answered: bool = False  # to the last byte
    num_large_bytes: int = 0  # of its body, beyond what each may have


class Guard:
    """The layer around the whole application; only the headers for other sites are added outside of it."""

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
        if self.options.root_path:  # a proxy may have removed it from the path, or not
            scope["root_path"] = self.options.root_path
        started_at, exchange = self.clock(), Exchange()
        seconds = self.options.limits.timeout_seconds
        scope.setdefault("state", {})["give_up_at"] = asyncio.get_running_loop().time() + seconds
        try:
            # a refusal, too, may find nobody who reads it
            with self.metrics.open_requests.track_inprogress(), suppress(ClientLeft):
                await self._answer(scope, receive, _watch(send, exchange, seconds), exchange)
        finally:  # a request that is cut off is noted too
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
        num_bytes = read_whole_number(length)  # of very many digits there is no number, and no room either
        if length.isdecimal() and (num_bytes is None or num_bytes > self.options.limits.max_body_bytes):
            raise self._too_large()

    async def _read(self, scope: Scope, receive: Receive, exchange: Exchange) -> Receive:
        """The whole body, within the limits of size and time, and from then on what the server says."""
        if scope["method"] in ("GET", "HEAD"):
            return receive
        try:
            async with asyncio.timeout_at(scope["state"]["give_up_at"]):
                body = await self._gather(receive, exchange)
        except TimeoutError:
            raise Refused(
                408, f"the request took longer than {self.options.limits.timeout_seconds:g} s to arrive"
            ) from None
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def hand_on() -> Message:
            return whole.pop() if whole else await receive()

        return hand_on

    async def _gather(self, receive: Receive, exchange: Exchange) -> bytes:
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
            self._claim(max(0, size - _FREE_BODY_BYTES), exchange)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _claim(self, num_large_bytes: int, exchange: Exchange) -> None:
        """Room for a large body until its request is answered; unfinished ones of many clients must not fill memory."""
        added = num_large_bytes - exchange.num_large_bytes
        if self._num_large_bytes + added > _NUM_FULL_BODIES * self.options.limits.max_body_bytes:
            raise Refused(429, "too many large requests at once; retry in a second")
        self._num_large_bytes += added
        exchange.num_large_bytes = num_large_bytes

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
        """The path, if it is one of ours; another may be anything, and is not logged."""
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
            raise ClientLeft from None  # it does not read what it asked for
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            exchange.is_answered = True

    return sending


def _path(scope: Scope) -> str:
    """The path as our routes have it, without what an app was mounted under or a proxy has before it."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(root) :] or "/" if root and f"{path}/".startswith(f"{root}/") else path


def _host(headers: Headers) -> str:
    """The name that a request is addressed to, without a port; that of IPv6 without its brackets."""
    host = headers.get("host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].lower()
