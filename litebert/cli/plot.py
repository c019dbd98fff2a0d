"""`litebert plot`: the curves of several runs in one picture."""

from pathlib import Path
from typing import Annotated

import typer


def plot_runs(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs (or their metrics.jsonl).", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="The PNG to write.")] = Path("curves.png"),
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Draw this metric; again for more. Default: all.")
    ] = None,
) -> None:
    """Draw the curves of one or more runs into one PNG."""
    from litebert.plots import curves

    drawn = curves.plot_runs(runs, output, metrics=metric or [])
    print(f"{output}: {', '.join(drawn)} of {len(runs)} run{'s' if len(runs) > 1 else ''}")
