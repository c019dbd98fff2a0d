"""`litebert recipes`, `check` and `pretrain`: a recipe is found, looked at, and becomes a run."""

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import typer

if TYPE_CHECKING:
    from litebert.recipe import Recipe

RecipeName = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, such as nano, or a .toml file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Changes: train.steps=500 data.corpora=corpus/ model.sharing=ffn."),
]


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
    from litebert.pretrain import pretrain
    from litebert.recipe import load_recipe

    folder = out or Path("runs") / Path(recipe).stem
    resolved = load_recipe(recipe, overrides or [])  # a mistake is found before processes are started
    if processes > 1:
        _launch(processes, restarts, ["pretrain", recipe, *(overrides or []), "--out", str(folder)])
    last = pretrain(resolved, folder)
    if read_ranks().is_main:
        print(f"done: {last}")


def _launch(num_processes: int, num_restarts: int, words: list[str]) -> NoReturn:
    """Become torchrun, which starts the processes and replaces those that die."""
    from litebert.train.distributed import launch_environment

    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={num_processes}"]
    command += [f"--max-restarts={num_restarts}", "-m", "litebert", *words]
    os.execve(sys.executable, command, {**launch_environment(num_processes), **os.environ})


def show_recipes() -> None:
    """List the recipes that come with litebert; `litebert check NAME` shows one in full."""
    from litebert.recipe import list_recipes

    recipes = list_recipes()
    width = max(map(len, recipes))
    for name, line in recipes.items():
        print(f"{name:{width}}  {line.removeprefix(f'{name}: ')}")


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
    from litebert.model.cost import count_parameters, training_memory
    from litebert.pretrain_run import check_vocabulary
    from litebert.tasks.pretraining import Pretraining
    from litebert.text.tokenizer import load_tokenizer

    task = Pretraining(recipe.segments.num_labels)
    length, micro_batch = recipe.segments.max_length, recipe.train.micro_batch or recipe.batch.sequences
    count = count_parameters(recipe.model, task.heads)
    memory = training_memory(recipe.model, task.heads, batch_size=micro_batch, length=length)
    stream, corpora = open_stream(recipe.data, recipe.stream)
    check_vocabulary(recipe, load_tokenizer(corpora[0].tokenizer_path))
    batch = stream.batch(0)
    run = count_run(recipe)
    return [
        f"parameters    {count.total:,} stored, {count.unrolled:,} computed with",
        f"memory        {memory.total / 1e6:,.0f} MB for a micro-batch of {micro_batch} x {length}, "
        f"of which {memory.activations / 1e6:,.0f} MB activations",
        f"corpus        {sum(c.num_tokens for c in corpora):,} tokens, {stream.steps_per_epoch:,} steps an epoch",
        f"run           {recipe.train.steps:,} steps, {run.epochs:.1f} epochs, about {run.tokens:,} tokens, "
        f"{run.flops:.3g} FLOPs",
        f"first batch   {batch.num_sequences} sequences in rows {tuple(batch.token_ids.shape)}, "
        f"{int(batch.mask.sum()) / batch.mask.numel():.1%} text, "
        f"{len(batch.mlm_labels) / int(batch.mask.sum()):.1%} masked",
    ]


class RunSize(NamedTuple):
    """What a run comes to."""

    epochs: float
    tokens: int
    flops: float


def count_run(recipe: "Recipe") -> RunSize:
    """The sums over the stages, each measured by its first batch."""
    from litebert.data.stream import open_stream
    from litebert.model.cost import training_flops_per_token

    sizes: list[RunSize] = []
    for start, stop in pairwise([0, *(stage.at for stage in recipe.stages), recipe.train.steps]):
        stage = recipe.at(start)
        stream, _ = open_stream(stage.data, stage.stream)
        tokens = (stop - start) * int(stream.batch(start).mask.sum())
        flops = training_flops_per_token(stage.model, stage.segments.max_length, mlm_rate=stage.masking.rate_at(start))
        sizes.append(RunSize((stop - start) / stream.steps_per_epoch, tokens, tokens * flops))
    return RunSize(*map(sum, zip(*sizes, strict=True)))
