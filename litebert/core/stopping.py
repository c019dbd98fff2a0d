"""Being told to end: the signal is noted, and whoever is at work comes to a good place first."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_SENT = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stop:
    """Whether somebody has told this process to end."""

    asked_by: signal.Signals | None = None


@contextmanager
def noting_stops() -> Iterator[Stop]:
    """Within the block SIGINT and SIGTERM are only noted; a second SIGINT, from an impatient person, acts at once.

    A second SIGTERM does not: a scheduler sends it to all processes of a job, and so does the parent among them.
    """
    stop = Stop()
    before = {sent: signal.getsignal(sent) for sent in _SENT}
    heard = [sent for sent in _SENT if before[sent] != signal.SIG_IGN]  # what is ignored stays so

    def note(number: int, _: FrameType | None) -> None:
        if stop.asked_by and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.asked_by = stop.asked_by or signal.Signals(number)

    if threading.current_thread() is not threading.main_thread():  # others hear no signals
        yield stop
        return
    try:
        for sent in heard:
            signal.signal(sent, note)
        yield stop
    finally:
        for sent in heard:
            signal.signal(sent, before[sent])


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Within the block, whatever tells this process to end raises SystemExit, so that it can end what it started.

    SIGINT raises KeyboardInterrupt, as ever. What is ignored, as SIGHUP is under nohup, stays so.
    """

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {sent: signal.getsignal(sent) for sent in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
    heard = [sent for sent, action in before.items() if action != signal.SIG_IGN]
    try:
        for sent in heard:
            signal.signal(sent, leave)
        yield
    finally:
        for sent in heard:
            signal.signal(sent, before[sent])


def end_by(sent: signal.Signals) -> None:
    """End as the signal would have ended this process."""
    if sent == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + sent)
