"""`litebert recipes`, `check` and `pretrain`: list recipes, inspect one, and pre-train."""

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
    out: Annotated[Path | None, typer.Option(help="Run folder. Default: runs/RECIPE.")] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Number of processes on this machine. For several machines, use torchrun.")
    ] = 1,
    restarts: Annotated[
        int, typer.Option(min=0, help="With --processes: how often to restart a process that died.")
    ] = 3,
) -> None:
    """Pre-train a model from a recipe. To resume an interrupted run, repeat the command.

    Example: litebert pretrain nano data.corpora=corpora/en
    """
    from litebert.core.runtime import read_ranks

    try:
        result = api.pretrain(recipe, overrides or [], out=out, processes=processes, restarts=restarts)
    except WorkersError as error:  # the workers have printed why
        raise typer.Exit(error.exit_code) from None
    if processes == 1 and read_ranks().is_main:  # otherwise the first worker prints it
        print(f"done: {result.checkpoint}")


def show_recipes() -> None:
    """List the recipes that come with litebert; `litebert check NAME` shows one in full."""
    from litebert.pretraining.recipe import list_recipes

    recipes = list_recipes()
    width = max(map(len, recipes))
    for name, line in recipes.items():
        print(f"{name:{width}}  {line.removeprefix(f'{name}: ')}")


def check_recipe(recipe: RecipeName, overrides: Overrides = None) -> None:
    """Show a recipe in full, with its parameters, memory, tokens, steps and first batch. Trains nothing."""
    from litebert.plan.summary import summarize
    from litebert.pretraining.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    summary = summarize(resolved)
    print(resolved.to_toml())
    for name, value in _list_facts(summary, hours=resolved.train.hours).items():
        print(f"{name:13} {value}")


def _list_facts(summary: "Summary", *, hours: float) -> dict[str, str]:
    """Facts about the run, as text."""
    parameters, memory = summary.parameters, summary.memory
    return {
        "parameters": f"{parameters.total:,} stored, {parameters.unrolled:,} if layers were not shared",
        "memory": f"{memory.total / 1e6:,.0f} MB for a micro-batch of {summary.micro_batch} x {summary.length}, "
        f"of which {memory.activations / 1e6:,.0f} MB activations",
        "run": _tell_length(summary, hours),
        **_tell_text(summary),
    }


def _tell_length(summary: "Summary", hours: float) -> str:
    size = summary.size
    if size is None:
        return f"limited by train.hours = {hours:g}; `litebert plan` estimates the number of steps"
    text = f"{size.epochs:.1f} epochs, about" if summary.text else "at most"
    return f"{size.steps:,} steps, {text} {size.tokens:,} tokens, {size.flops:.3g} FLOPs"


def _tell_text(summary: "Summary") -> dict[str, str]:
    text = summary.text
    if text is None:
        missing = ", ".join(summary.missing_corpora)
        none = f"{missing} does not exist" if missing else "none set"
        return {"corpus": f"{none}; set data.corpora=... to see its tokens, epochs and first batch"}
    batch = text.first_batch
    return {
        "corpus": f"{text.num_tokens:,} tokens, {text.steps_per_epoch:,} steps per epoch",
        "first batch": f"{batch.num_sequences} sequences in rows {tuple(batch.token_ids.shape)}, "
        f"{int(batch.mask.sum()) / batch.mask.numel():.1%} text, "
        f"{len(batch.mlm_labels) / int(batch.mask.sum()):.1%} masked",
        **({"start": "; ".join(text.notes)} if text.notes else {}),
    }
