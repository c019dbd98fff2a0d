"""The progress display of a running study: one bar per running arm, and the total time left."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from litebert.core.view import format_seconds

_LINE_SECONDS = 60.0  # between lines in a file or pipe


@dataclass(frozen=True)
class GridStatus:
    """The progress of a study."""

    num_finished: int
    num_arms: int
    running: Mapping[str, float]  # running arm -> share done
    share: float  # of all the work
    seconds_left: float

    @property
    def words(self) -> str:
        at_work = ", ".join(f"{name} {share:.0%}" for name, share in self.running.items())
        return (
            f"{self.num_finished} of {self.num_arms} arms finished{f'; {at_work}' if at_work else ''}; "
            f"about {format_seconds(self.seconds_left)} left"
        )


class GridView:
    """Progress bars on a terminal; elsewhere one line per minute."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = title
        self._console = Console(file=stream or sys.stdout, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._shown_at = -_LINE_SECONDS

    def show(self, status: GridStatus) -> None:
        if self._live:
            self._live.update(draw_grid(self._title, status), refresh=True)
        elif time.monotonic() - self._shown_at >= _LINE_SECONDS:
            self._shown_at = time.monotonic()
            self.say(f"{self._title}: {status.words}")

    def say(self, message: str) -> None:
        self._console.print(Text(message), soft_wrap=True)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()


def draw_grid(title: str, status: GridStatus) -> Group:
    """One bar for the whole study, and one per running arm."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(no_wrap=True, justify="right")
    left = format_seconds(status.seconds_left)
    bar = ProgressBar(total=1.0, completed=status.share)
    table.add_row(Text(title, style="bold"), bar, f"{status.share:.0%}, about {left} left")
    for name, share in status.running.items():
        table.add_row(Text(name), ProgressBar(total=1.0, completed=share), f"{share:.0%}")
    return Group(table, Text(f"{status.num_finished} of {status.num_arms} arms finished", style="dim"))
