"""The progress display of a run: a live view on a terminal or in a notebook, plain lines in a file or a pipe."""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self, TextIO

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from litebert.core.progress import NotebookLine, is_notebook

LIVE_SECONDS = 0.2  # between two updates on a terminal
NOTEBOOK_SECONDS = 1.0  # between two updates in a notebook, which are sent over a socket


@dataclass(frozen=True)
class Status:
    """The progress of a run."""

    step: int
    total_steps: int
    progress: float  # 0 to 1: of the steps, or of the hours if the run is limited by hours
    values: Mapping[str, float] = field(default_factory=dict)  # loss, mlm_accuracy, sentence_accuracy, ...
    tokens_per_second: float | None = None
    share_of_peak: float | None = None  # FLOPs per second, relative to the machine's fastest matrix multiply
    seconds_left: float | None = None


class View(Protocol):
    """Shows statuses; `say` adds a line that stays."""

    def is_due(self, progress: float) -> bool:
        """Whether `show` would display a status of this progress (0 to 1) now; check it before computing a status."""
        ...

    def show(self, status: Status) -> None: ...

    def say(self, message: str) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_view(title: str, *, stream: TextIO | None = None, plain_seconds: float = 10.0) -> View:
    """The live view if `stream` (stdout) is a terminal, one for notebooks, else a plain line every `plain_seconds`."""
    if stream is None and is_notebook():
        return NotebookView(title)
    console = Console(file=stream or sys.stdout, highlight=False)
    return LiveView(title, console) if console.is_terminal else PlainView(title, stream or sys.stdout, plain_seconds)


class LiveView:
    """A bar and a table of numbers that are redrawn in place."""

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._live = Live(console=console, auto_refresh=False)
        self._shown_at = -LIVE_SECONDS

    def is_due(self, progress: float) -> bool:
        return time.monotonic() - self._shown_at >= LIVE_SECONDS or progress >= 1

    def show(self, status: Status) -> None:
        if self.is_due(status.progress):
            self._shown_at = time.monotonic()
            self._live.update(draw_status(self._title, status), refresh=True)

    def say(self, message: str) -> None:
        self._live.console.print(Text(message))

    def close(self) -> None:
        self._live.stop()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NotebookView:
    """A bar with numbers below a notebook cell, redrawn in place; messages are lines of the cell's output."""

    def __init__(self, title: str) -> None:
        self._title, self._line = title, NotebookLine()
        self._shown_at = -float("inf")

    def is_due(self, progress: float) -> bool:
        return time.monotonic() - self._shown_at >= NOTEBOOK_SECONDS or progress >= 1

    def show(self, status: Status) -> None:
        if self.is_due(status.progress):
            self._shown_at = time.monotonic()
            numbers = ", ".join(f"{name} {value}" for name, value in list_values(status))
            self._line.show(f"{self._title}: {numbers}", status.progress)

    def say(self, message: str) -> None:
        print(message, flush=True)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PlainView:
    """One line every few seconds, for logs."""

    def __init__(self, title: str, stream: TextIO, seconds: float) -> None:
        self._title, self._stream, self._seconds = title, stream, seconds
        self._shown_at = -float("inf")

    def is_due(self, progress: float) -> bool:
        return time.monotonic() - self._shown_at >= self._seconds or progress >= 1

    def show(self, status: Status) -> None:
        if self.is_due(status.progress):
            self._shown_at = time.monotonic()
            self.say(f"{self._title}: " + ", ".join(f"{name} {value}" for name, value in list_values(status)))

    def say(self, message: str) -> None:
        try:
            print(message, file=self._stream, flush=True)
        except BrokenPipeError:  # `| head`, or a `tee` that was killed, must not end a run
            discard_output(self._stream)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoView:
    """Shows nothing: the view of all processes but the first."""

    def is_due(self, progress: float) -> bool:  # noqa: ARG002
        return False

    def show(self, status: Status) -> None:
        pass

    def say(self, message: str) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def discard_output(stream: TextIO) -> None:
    """Discard the stream's buffer and everything written to it from now on: its reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def draw_status(title: str, status: Status) -> Group:
    """The content of the live view: title and bar, and below them the values with their names."""
    head = Table.grid(padding=(0, 2), expand=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    head.add_column(no_wrap=True, justify="right")
    head.add_row(
        Text(title, style="bold"),
        ProgressBar(total=1.0, completed=min(status.progress, 1.0)),
        f"{min(status.progress, 1.0):.0%}",
    )
    values = [Text.assemble((name, "dim"), "\n", value) for name, value in list_values(status)]
    return Group(head, Columns(values, padding=(0, 2)))  # as many columns as fit on the terminal


def list_values(status: Status) -> list[tuple[str, str]]:
    """The known values to show, as (name, formatted value)."""
    shown = [("step", f"{status.step:,}/{status.total_steps:,}")]
    for name, value in status.values.items():
        is_share = name.endswith("_accuracy")
        short_name = name.replace("_accuracy", " acc.").replace("_", " ")  # all of them fit on 80 columns
        shown.append((short_name, f"{value:.1%}" if is_share else f"{value:.4g}"))
    if status.tokens_per_second is not None:
        shown.append(("tokens/s", f"{status.tokens_per_second:,.0f}"))
    if status.share_of_peak is not None:
        shown.append(("of peak", f"{status.share_of_peak:.0%}"))
    if status.seconds_left is not None:
        shown.append(("left", format_seconds(status.seconds_left)))
    return shown


def format_seconds(seconds: float) -> str:
    """A duration as 42 s, 7 min 05 s or 3 h 07 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
