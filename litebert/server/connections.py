"""Limits on the number and duration of connections.

uvicorn times out connections that are idle between requests, but not new ones, or ones that send their headers byte by
byte. It refuses connections beyond its limit only after they have sent a request, and in plain text.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from litebert.server.refusals import Refused

MAX_CONNECTIONS = 1024
ACCEPTED_AT_ONCE = 32  # by the event loop, before it handles any of them
# File descriptors for the process's own files, and for connections that are accepted but not refused yet.
_RESERVED_FILES = 8 * ACCEPTED_AT_ONCE
_CLOSE = (b"connection", b"close")
_MAX_HEAD_BYTES = 65_536
# Parts of a body: chunks, or the data of one socket read. Each costs time, however small it is.
FREE_PARTS = 4_000
_MIN_PART_BYTES = 256  # on average, for the parts beyond FREE_PARTS

CountRefusal = Callable[[int], None]  # called with the status of each refusal outside the application


def choose_max_connections(max_files: int) -> int:
    """The maximum number of connections for a process that may open this many files."""
    return max(1, min(MAX_CONNECTIONS, max_files - _RESERVED_FILES))


class PartsLimited(h11.Connection):
    """An h11 connection that also refuses a body in very many small parts."""

    _num_parts = 0
    _num_bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._num_parts = self._num_bytes = 0
        elif isinstance(event, h11.Data):
            self._num_parts += 1
            self._num_bytes += len(event.data)
            if self._num_parts > FREE_PARTS + self._num_bytes // _MIN_PART_BYTES:
                raise h11.RemoteProtocolError("the body comes in too many small parts")
        return event


def build_protocol(
    seconds: float, *, max_connections: int = MAX_CONNECTIONS, count_refusal: CountRefusal = lambda _: None
) -> type[H11Protocol]:
    """The protocol for uvicorn: it closes connections whose request head takes longer than `seconds`.

    Connections beyond the limit and requests that are not HTTP get a refusal in the documented form.
    """

    class LimitedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _is_answered = False  # before the whole request arrived

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.conn = PartsLimited(h11.SERVER, _MAX_HEAD_BYTES)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > max_connections:
                self._refuse(Refused(503, "too many open connections; retry later", code="busy"))
            else:
                self._watch_head()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)
            self._watch_head()

        def on_response_complete(self) -> None:
            self._is_answered = self.conn.their_state is h11.SEND_BODY
            super().on_response_complete()
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_timer()

        def send_400_response(self, msg: str) -> None:
            del msg
            self._refuse(
                Refused(400, "the request is not valid HTTP, or its body has too many chunks", code="not_http")
            )

        def shutdown(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                # uvicorn then sends this header in the response, so that the client does not send another request.
                # Appending to self.headers would do nothing, because Starlette puts a copy of them into the scope.
                self.cycle.scope["headers"] = [*self.cycle.scope["headers"], _CLOSE]
            super().shutdown()

        def _refuse(self, refused: Refused) -> None:
            response = refused.to_response()
            head = h11.Response(status_code=refused.status, headers=[*response.raw_headers, _CLOSE])
            with suppress(h11.LocalProtocolError):  # another response has begun; it is cut off
                for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()
            count_refusal(refused.status)

        def _watch_head(self) -> None:
            """Run one timer from when a request head is expected until it has arrived; more bytes do not restart it.

            It also runs for the rest of a body whose request was answered before all of it had arrived.
            """
            is_idle = self.conn.their_state is h11.IDLE
            self._is_answered = self._is_answered and not is_idle
            if not (is_idle or self._is_answered):
                self._stop_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return LimitedProtocol
