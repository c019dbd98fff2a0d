"""`litebert demo`: tokenizer, corpus and pre-training on text that ships with Python; nothing to download."""

from pathlib import Path
from typing import Annotated

import typer


def run_demo(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Overrides of the nano recipe, such as train.steps=500."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("runs/demo"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete earlier results and start over.")] = False,
) -> None:
    """Pre-train a small ALBERT on Python's own documentation in minutes, and write a report.

    To resume an interrupted demo, repeat the command.
    """
    from litebert.demo.story import Demo
    from litebert.demo.story import run_demo as tell

    tell(Demo(out, overrides or ()), is_fresh=fresh)
