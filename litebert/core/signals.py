"""Stop signals: remembered, so that work can end at a safe point, or turned into SystemExit."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stop:
    """The stop signal that this process has received, if any."""

    received: signal.Signals | None = None


@contextmanager
def catch_stop_signals() -> Iterator[Stop]:
    """Within the block, SIGINT and SIGTERM are only remembered. A second SIGINT interrupts at once.

    A second SIGTERM does not: a scheduler sends it to all processes of a job, and the parent passes it on to its own.
    """
    stop = Stop()
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    caught = [number for number, action in before.items() if action != signal.SIG_IGN]  # ignored signals stay ignored

    def remember(number: int, _: FrameType | None) -> None:
        if stop.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.received = stop.received or signal.Signals(number)

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield stop
        return
    try:
        for number in caught:
            signal.signal(number, remember)
        yield stop
    finally:
        for number in caught:
            signal.signal(number, before[number])


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within the block, SIGTERM, SIGHUP and SIGQUIT raise SystemExit, so that `finally` can end child processes.

    SIGINT raises KeyboardInterrupt, as always. A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    """

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
    caught = [number for number, action in before.items() if action != signal.SIG_IGN]
    try:
        for number in caught:
            signal.signal(number, leave)
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])


def exit_by_signal(received: signal.Signals) -> None:
    """Exit with the code that the signal would have caused."""
    if received == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + received)
