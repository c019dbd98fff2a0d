"""`litebert demo`: tokenizer, corpus and pre-training on text that ships with Python; nothing to download."""

from pathlib import Path
from typing import Annotated

import typer


def run_demo(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Overrides of the nano recipe, such as train.steps=500."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write; an interrupted demo is resumed.")
    ] = Path("runs/demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")] = False,
) -> None:
    """Pre-train a small ALBERT on Python's own documentation, and write a report.

    This takes about five minutes. To resume an interrupted demo, repeat the command.

    Examples:
      litebert demo
      litebert demo train.steps=100 --out runs/short-demo
    """
    from litebert.demo.story import Demo
    from litebert.demo.story import run_demo as tell

    tell(Demo(out, overrides or ()), is_fresh=overwrite)
