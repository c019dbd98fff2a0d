"""`litebert plot`: plot the training curves of several runs together."""

from pathlib import Path
from typing import Annotated

import typer


def plot_runs(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or their metrics.jsonl files.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="PNG file to write.")] = Path("curves.png"),
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Metric to plot; repeat for more. Default: all.")
    ] = None,
) -> None:
    """Plot the training curves of one or more runs as one PNG.

    Example: litebert plot runs/a runs/b --metric loss
    """
    from litebert.plots import curves

    drawn = curves.plot_runs(runs, output, metrics=metric or [])
    print(f"{output}: {', '.join(drawn)} of {len(runs)} run{'s' if len(runs) > 1 else ''}")
