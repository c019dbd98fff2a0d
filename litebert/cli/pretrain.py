"""`litebert pretrain`: pre-train a model from a recipe."""

from pathlib import Path
from typing import Annotated

import typer

from litebert import api
from litebert.cli.words import Overrides, RecipeName
from litebert.core.errors import WorkersError


def run_pretraining(
    recipe: RecipeName,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Run folder; an interrupted run is resumed. Default: runs/RECIPE."),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Number of processes on this machine. For several machines, use torchrun.")
    ] = 1,
    restarts: Annotated[
        int, typer.Option(min=0, help="With --processes: how often to restart a process that died.")
    ] = 3,
) -> None:
    """Pre-train a model from a recipe. To resume an interrupted run, repeat the command.

    Examples:
      litebert pretrain nano data.corpora=corpora/en
      litebert pretrain cpu-small data.corpora=corpora/en train.hours=8 --out runs/overnight
      litebert pretrain cpu-small data.corpora=corpora/en --processes 2
    """
    from litebert.core.runtime import read_ranks

    try:
        result = api.pretrain(recipe, overrides or [], out=out, processes=processes, restarts=restarts)
    except WorkersError as error:  # the workers have printed why
        raise typer.Exit(error.exit_code) from None
    if processes == 1 and read_ranks().is_main:  # otherwise the first worker prints it
        print(f"done: {result.checkpoint}")
