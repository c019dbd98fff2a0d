"""`litebert recipes`, `check` and `pretrain`: a recipe is found, looked at, and becomes a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litebert import api
from litebert.cli.words import Overrides, RecipeName
from litebert.core.errors import WorkersError

if TYPE_CHECKING:
    from litebert.plan.summary import Summary


def run_pretraining(
    recipe: RecipeName,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/RECIPE without it.")] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes on this machine. Over several machines, start with torchrun instead.")
    ] = 1,
    restarts: Annotated[int, typer.Option(min=0, help="With processes: how often a dead one is replaced.")] = 3,
) -> None:
    """Pre-train by a recipe, or go on where an interrupted run stopped."""
    from litebert.core.runtime import read_ranks

    try:
        result = api.pretrain(recipe, overrides or [], out=out, processes=processes, restarts=restarts)
    except WorkersError as error:  # they have said why
        raise typer.Exit(error.exit_code) from None
    if processes == 1 and read_ranks().is_main:  # else the first of them has said it
        print(f"done: {result.checkpoint}")


def show_recipes() -> None:
    """List the recipes that come with litebert; `litebert check NAME` shows one in full."""
    from litebert.pretraining.recipe import list_recipes

    recipes = list_recipes()
    width = max(map(len, recipes))
    for name, line in recipes.items():
        print(f"{name:{width}}  {line.removeprefix(f'{name}: ')}")


def check_recipe(recipe: RecipeName, overrides: Overrides = None) -> None:
    """Show a recipe in full and what it comes to: parameters, memory, tokens, steps, first batch. Trains nothing."""
    from litebert.plan.summary import summarize
    from litebert.pretraining.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    summary = summarize(resolved)
    print(resolved.to_toml())
    for name, value in _list_facts(summary, hours=resolved.train.hours).items():
        print(f"{name:13} {value}")


def _list_facts(summary: "Summary", *, hours: float) -> dict[str, str]:
    """What a recipe comes to, in words."""
    parameters, memory = summary.parameters, summary.memory
    return {
        "parameters": f"{parameters.total:,} stored, {parameters.unrolled:,} computed with",
        "memory": f"{memory.total / 1e6:,.0f} MB for a micro-batch of {summary.micro_batch} x {summary.length}, "
        f"of which {memory.activations / 1e6:,.0f} MB activations",
        "run": _tell_length(summary, hours),
        **_tell_text(summary),
    }


def _tell_length(summary: "Summary", hours: float) -> str:
    size = summary.size
    if size is None:
        return f"by the clock, train.hours = {hours:g}: `litebert plan` estimates how many steps that is on a machine"
    text = f"{size.epochs:.1f} epochs, about" if summary.text else "at most"
    return f"{size.steps:,} steps, {text} {size.tokens:,} tokens, {size.flops:.3g} FLOPs"


def _tell_text(summary: "Summary") -> dict[str, str]:
    text = summary.text
    if text is None:
        missing = ", ".join(summary.missing_corpora)
        none = f"none at {missing}" if missing else "none is named"
        return {"corpus": f"{none}, so its tokens, epochs and first batch are not shown (data.corpora=...)"}
    batch = text.first_batch
    return {
        "corpus": f"{text.num_tokens:,} tokens, {text.steps_per_epoch:,} steps an epoch",
        "first batch": f"{batch.num_sequences} sequences in rows {tuple(batch.token_ids.shape)}, "
        f"{int(batch.mask.sum()) / batch.mask.numel():.1%} text, "
        f"{len(batch.mlm_labels) / int(batch.mask.sum()):.1%} masked",
        **({"start": "; ".join(text.notes)} if text.notes else {}),
    }
