"""Our side: the recipe cpu-small, with sentence order, as on the other side; the clock counts processor time."""

import time
from pathlib import Path

from learners.budget import Machine, Watch

from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import load_recipe

# Newer versions of the recipe use three-way segments and continue positions; docs/learning was measured without both
AS_MEASURED = ("segments.task=sop", "init.new_positions=drawn")


def train_ours(
    folder: Path, corpus: Path, *, seed: int, cpu_minutes: float, machine: Machine, changes: tuple[str, ...] = ()
) -> None:
    """Train, or resume training, until the budget is used up."""
    words = [f"data.corpora={corpus}", f"seed={seed}", f"train.hours={cpu_minutes / machine.processes / 60!r}"]
    keeping = "train.keep_last=1000"  # the curve needs all checkpoints
    recipe = load_recipe("cpu-small", [*AS_MEASURED, *words, keeping, *changes])
    facts = {
        "who": "litebert",
        "seed": seed,
        "cpu_minutes": cpu_minutes,
        "machine": vars(machine),
        "setting": {"recipe": "cpu-small", "changes": changes},
    }
    with Watch(folder, facts):
        pretrain(recipe, folder, clock=time.process_time)
