"""`litebert pretrain` and `litebert check`: a recipe becomes a run, or is looked at before it does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from litebert.recipe import Recipe

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, such as nano, or a .toml file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Changes: train.steps=50 data.corpora=corpus/ model.sharing=ffn."),
]


def run_pretraining(
    recipe: RecipeName,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/RECIPE without it.")] = None,
) -> None:
    """Pre-train by a recipe, or go on where an interrupted run stopped."""
    from litebert.pretrain import pretrain
    from litebert.recipe import load_recipe

    folder = out or Path("runs") / Path(recipe).stem
    last = pretrain(load_recipe(recipe, overrides or []), folder)
    print(f"done: {last}")


def check_recipe(recipe: RecipeName, overrides: Overrides = None) -> None:
    """Show what a recipe comes to: parameters, memory, tokens, steps and its first batch. Trains nothing."""
    from litebert.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    facts = describe(resolved)
    print(resolved.to_toml())
    print("\n".join(facts))


def describe(recipe: "Recipe") -> list[str]:
    """The facts of a recipe, one a line."""
    from litebert.data.stream import open_stream
    from litebert.model.cost import count_parameters, training_flops_per_token, training_memory
    from litebert.tasks.pretraining import Pretraining

    task = Pretraining(recipe.segments.num_labels)
    length, micro_batch = recipe.segments.max_length, recipe.train.micro_batch or recipe.batch.sequences
    count = count_parameters(recipe.model, task.heads)
    memory = training_memory(recipe.model, task.heads, batch_size=micro_batch, length=length)
    stream, corpora = open_stream(recipe.data, recipe.stream)
    batch = stream.batch(0)
    tokens = int(batch.mask.sum())
    flops = training_flops_per_token(recipe.model, length, mlm_rate=recipe.masking.rate)
    return [
        f"parameters    {count.total:,} stored, {count.unrolled:,} computed with",
        f"memory        {memory.total / 1e6:,.0f} MB for a micro-batch of {micro_batch} x {length}, "
        f"of which {memory.activations / 1e6:,.0f} MB activations",
        f"corpus        {sum(c.num_tokens for c in corpora):,} tokens, {stream.steps_per_epoch:,} steps an epoch",
        f"run           {recipe.train.steps:,} steps, {recipe.train.steps / stream.steps_per_epoch:.1f} epochs, "
        f"about {recipe.train.steps * tokens:,} tokens, {recipe.train.steps * tokens * flops:.3g} FLOPs",
        f"first batch   {batch.num_sequences} sequences in rows {tuple(batch.token_ids.shape)}, "
        f"{tokens / batch.mask.numel():.1%} text, {len(batch.mlm_labels) / tokens:.1%} masked",
    ]
