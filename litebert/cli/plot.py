"""`litebert plot`: plot the training curves of several runs together."""

from pathlib import Path
from typing import Annotated

import typer


def plot_runs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS", help="Run folders, or their metrics.jsonl files.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="PNG file to write; replaced if it exists.")
    ] = Path("curves.png"),
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="Metric to plot, such as loss; repeat for more. Default: the four most informative.",
        ),
    ] = None,
) -> None:
    """Plot the learning curves of one or more runs as one PNG.

    A panel shows training and validation, next to chance and a unigram model where these are known.

    Examples:
      litebert plot runs/nano --out curves.png
      litebert plot runs/nano runs/adapted --metric loss
    """
    from litebert.plots import curves
    from litebert.pretraining.baselines import find_baselines

    found = [find_baselines(run) for run in runs]
    levels: dict[str, dict[str, float]] = {}
    for one in found:
        for name, (label, value) in one.levels.items():
            levels.setdefault(name, {})[label] = value  # of several corpora, the last
    stages = {step for one in found for step in one.stages}
    drawn = curves.plot_runs(runs, out, metrics=metric or [], levels=levels, stages=sorted(stages))
    print(f"{out}: {', '.join(drawn)} of {len(runs)} run{'s' if len(runs) > 1 else ''}")
