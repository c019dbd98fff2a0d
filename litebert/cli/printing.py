"""Tables and JSON on standard output."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 160  # columns in files and pipes, where nothing should be wrapped


def open_console() -> "Console":
    """A console for tables: as wide as the terminal, without colours if it is none or NO_COLOR is set."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def build_table(title: str, *columns: str, caption: str | None = None) -> "Table":
    """A table in the style of all commands: left titles, a line below the header, no frame."""
    from rich import box
    from rich.table import Table

    return Table(
        *columns,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )


@contextmanager
def stdout_left_to_json(as_json: bool) -> Iterator[None]:
    """Within the block, notes and progress go to standard error if standard output is for JSON alone."""
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def print_json(value: Any) -> None:
    """Print indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
