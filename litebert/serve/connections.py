"""Connections that are too slow: who does not finish saying what is wanted is cut off, and holds no place for long.

uvicorn times connections that are idle between requests. One that was just made, or that drips its headers byte by
byte, it would let stand for ever.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def time_heads(seconds: float) -> type[H11Protocol]:
    """The protocol for uvicorn that closes connections on which the head of a request takes longer than that."""

    class TimedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _is_answered = False  # before all of the request was there

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head()

        def on_response_complete(self) -> None:
            self._is_answered = self.conn.their_state is h11.SEND_BODY
            super().on_response_complete()
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_timer()

        def _watch_head(self) -> None:
            """From when a head is expected until it is there, one timer runs; more bytes do not start it anew.

            So it does for the rest of a body whose request was answered before it had come.
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

    return TimedProtocol
