"""What stands before every page: size, time, token; and behind it: headers, counts and a line in the log."""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from litebert.serve.logs import log
from litebert.serve.metrics import Metrics
from litebert.serve.options import ServeOptions
from litebert.serve.refusals import Refused

_PROTECTED = ("/v1/", "/metrics")
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


class Guard:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, *, options: ServeOptions, metrics: Metrics, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.app, self.options, self.metrics, self.clock = app, options, metrics, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started_at, exchange = self.clock(), Exchange()
        with self.metrics.open_requests.track_inprogress():
            await self._answer(scope, receive, _watch(send, exchange), exchange)
        self._note(scope, exchange, self.clock() - started_at)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        try:
            self._check(scope)
            await self.app(scope, await self._read(scope, receive), send)
        except Refused as refused:
            await refused.to_response()(scope, receive, send)
        except _ClientLeft:
            exchange.status = 499  # nobody is there to be told; the number is what other servers log
        except Exception as error:
            log("failed", level=logging.ERROR, error=error, route=_route(scope))
            if not exchange.status:
                await Refused(500, "the server made a mistake; its log says where").to_response()(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        token = self.options.token
        is_protected = scope["path"].startswith(_PROTECTED) and scope["method"] != "OPTIONS"
        if token and is_protected:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.encode("latin-1"), token.encode())
            if scheme.lower() != "bearer" or not is_right:
                raise Refused(401, "this server wants a token: send the header `Authorization: Bearer ...`")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self.options.limits.max_body_bytes:
            raise self._too_large()

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, within the limits of size and time, and from then on what the server says."""
        if scope["method"] in ("GET", "HEAD"):
            return receive
        try:
            async with asyncio.timeout(self.options.limits.timeout_seconds):
                body = await self._gather(receive)
        except TimeoutError:
            raise Refused(408, f"the request took over {self.options.limits.timeout_seconds:g} s to arrive") from None
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def hand_on() -> Message:
            return whole.pop() if whole else await receive()

        return hand_on

    async def _gather(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientLeft
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.options.limits.max_body_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Refused:
        return Refused(
            413, f"the request is larger than {self.options.limits.max_body_bytes:,} bytes; send less at once"
        )

    def _note(self, scope: Scope, exchange: Exchange, seconds: float) -> None:
        route, status = _route(scope), exchange.status
        self.metrics.observe_request(route, status, seconds)
        values: dict[str, Any] = scope.get("state", {}).get("noted", {})
        log(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 2),
            is_answered=exchange.is_answered,
            **values,
        )


class _ClientLeft(Exception):
    """The connection was closed before the request had arrived."""


def _watch(send: Send, exchange: Exchange) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            exchange.is_answered = True

    return sending


def _route(scope: Scope) -> str:
    """The page's pattern; a path that is none of ours may be anything, and is not logged."""
    return str(getattr(scope.get("route"), "path", "unknown"))
