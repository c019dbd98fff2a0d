"""Progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere; nothing for short work."""

import sys
import time
from html import escape
from types import TracebackType
from typing import IO, Any, Self

_FIRST_SECONDS = 2.0
_LINE_SECONDS = 10.0


class ProgressBar:
    """Shows how far `total` units of work have come, once the work has taken two seconds.

    with ProgressBar("encoding", total=size) as progress:
        progress.move_to(position, "3.1 MB/s of text")
    """

    def __init__(
        self, title: str, *, total: float, unit: str = "MB", scale: float = 1e6, is_quiet: bool = False
    ) -> None:
        self.title, self.total, self.unit, self.scale, self.is_quiet = title, total, unit, scale, is_quiet
        self._stream: IO[str] = sys.stderr
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._next_line = self._started + _FIRST_SECONDS
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def move_to(self, position: float, rate: str = "") -> None:
        """Update the bar to `position` of `total`; `rate` is a text that replaces the computed rate."""
        now = time.monotonic()
        if self.is_quiet or now - self._started < _FIRST_SECONDS:
            return
        elapsed = now - self._started
        share = min(1.0, position / self.total) if self.total else 1.0
        rate = rate or f"{position / self.scale / elapsed:.1f} {self.unit}/s"
        left = f"{elapsed * (1 - share) / share:.0f} s left" if share else "starting"
        if self._stream.isatty() or is_notebook():
            self._bar = self._bar or _Bar(self.title, self.total)
            self._bar.move_to(position, f"{rate}, {left}")
        elif now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            digits = 0 if self.scale == 1 else 1  # things are counted, bytes are measured
            amount = f"{position / self.scale:,.{digits}f} of {self.total / self.scale:,.{digits}f} {self.unit}"
            print(f"{self.title}: {share:.0%} ({amount}), {rate}, {left}", file=self._stream, flush=True)


def is_notebook() -> bool:
    """Whether a Jupyter kernel runs this process: it shows one output that is redrawn, in the place of a terminal."""
    return "ipykernel" in sys.modules and "IPython" in sys.modules


class NotebookLine:
    """A line of a notebook's output that is redrawn in place; needs nothing that a notebook does not have."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float) -> None:
        from IPython.display import HTML, display

        html = HTML(f"<progress max='1' value='{min(1.0, share):.4f}'></progress> {escape(text)}")
        if self._handle is None:
            self._handle = display(html, display_id=True)
        else:
            self._handle.update(html)


class _Bar:
    """The rich bar; its library is loaded only when there is something to show."""

    def __init__(self, title: str, total: float) -> None:
        self._title, self._total = title, total
        self._notebook = NotebookLine() if is_notebook() else None
        if self._notebook:
            return
        from rich import progress as rich
        from rich.console import Console

        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TaskProgressColumn(),
            rich.TextColumn("{task.fields[note]}"),
        )
        self._progress = rich.Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()
        self._task = self._progress.add_task(title, total=total, note="")

    def move_to(self, position: float, note: str) -> None:
        if self._notebook:
            self._notebook.show(f"{self._title}: {note}", position / self._total if self._total else 1.0)
        else:
            self._progress.update(self._task, completed=position, note=note)

    def stop(self) -> None:
        if not self._notebook:
            self._progress.stop()
