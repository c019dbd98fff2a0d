"""`litebert demo`: the whole main job on text that every Python carries, with nothing to download."""

from pathlib import Path
from typing import Annotated

import typer


def run_demo(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes to the nano recipe, such as train.steps=500."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to work in.")] = Path("runs/demo"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over.")] = False,
) -> None:
    """Pre-train a small ALBERT on Python's own documentation in minutes, and write a report. Run again, it goes on."""
    from litebert.demo.story import Demo
    from litebert.demo.story import run_demo as tell

    tell(Demo(out, overrides or ()), is_fresh=fresh)
