"""Studies made so small that each runs in seconds: the same arms, changes and measures, in shapes of a few numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from litebert.pretraining.recipe import build_recipe
from litebert.study.arms import build_arm_recipe
from litebert.study.spec import ArmAtScale, ArmSpec, Scale, ScaleSpec, Study, TaskSpec
from tests.small_tasks import find_animal, invent_rows, split_pairs, write_rows

STEPS = 4
LABELS = {"cat": "entailment", "dog": "neutral", "bird": "contradiction"}


def make_task_data(folder: Path) -> Path:
    """Rows in the places where the miniatures' tasks look for them."""
    write_rows(folder / "pairs" / "MNLI", split_pairs(invent_rows(lambda words: LABELS[find_animal(words)], count=16)))
    write_rows(folder / "glue" / "SST-2", invent_rows(lambda words: int(find_animal(words) == "cat"), count=16))
    return folder


def shrink(study: Study, scale: Scale) -> Study:
    """The study with every arm so small that it trains in a moment; what varies between its arms still does."""
    spec = study.at(scale)
    arms = {name: _shrink_arm(study, scale, name) for name in study.arms}
    small = replace(
        spec,
        recipe="laptop",
        change={},
        seeds=(1,),
        tasks=tuple(map(_shrink_task, spec.tasks)),
        pairs=48,
        length=32,
        speed_steps=1,
    )
    return replace(study, arms=arms, scales={scale: small})


def _shrink_task(task: TaskSpec) -> TaskSpec:
    is_pair = task.metric == "mnli"
    return replace(
        task,
        task="mnli" if is_pair else "sst-2",
        name=task.metric,
        data="pairs/MNLI" if is_pair else "glue",
        recipe="two-core",
        change=("train.steps=2", "train.evaluations=1", "train.batch_size=8", "train.max_length=24"),
        seeds=min(task.seeds, 2) if task.has_ensemble else 1,
    )


def _shrink_arm(study: Study, scale: Scale, name: str) -> ArmSpec:
    arm = study.arms[name]
    title = arm.at(scale).title
    if scale not in arm.scales:
        return arm
    values = build_arm_recipe(study, scale, name, seed=1).values
    at_scale = ArmAtScale(title=title, starts_at=STEPS // 2 if arm.at(scale).starts_at else 0)
    return replace(arm, change=shrink_recipe(values), paper=at_scale, laptop=at_scale)


def shrink_recipe(values: dict[str, Any]) -> dict[str, Any]:
    """The changes that make a small recipe of one, in proportion."""
    model = values["model"]
    hidden = _small(model["hidden_size"])
    steps = values["train"]["steps"]
    is_short = steps <= 1
    small = {
        "model": {
            **model,
            "vocab_size": 100,
            "hidden_size": hidden,
            "embedding_size": hidden if model["embedding_size"] == model["hidden_size"] else 8,
            "ffn_size": 2 * hidden,
            "num_heads": 2,
            "num_layers": min(4, model["num_layers"]),
            "num_groups": min(4, model["num_layers"], model["num_groups"]),
            "max_positions": 32,
            "initializer_range": 0.1,
        },
        "data": values["data"],
        "segments": {**values["segments"], "max_length": 32},
        "masking": values["masking"],
        "batch": {**values["batch"], "sequences": 8, "tokens": 0},
        "optim": values["optim"],
        "schedule": {"warmup_steps": 0},
        "train": {
            "steps": 1 if is_short else STEPS,
            "hours": 0.00002 if values["train"]["hours"] else 0.0,
            "micro_batch": 0,
            "save_every": 2,
            "evaluate_every": 0,
            "evaluate_batches": 2,
            "log_every": 1,
        },
        "stages": [{**stage, "at": 1 + number} for number, stage in enumerate(values["stages"])],
    }
    plain: dict[str, Any] = json.loads(json.dumps(_without_none(small)))
    build_recipe({**plain, "data": {"corpora": ["x"]}})  # a mistake of ours is found here
    return plain


def _small(size: int) -> int:
    """Widths in their order: 64 to 6,144 become 8 to 32."""
    return min(32, 8 + 4 * (max(0, size.bit_length() - 7)))


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_none(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }


def scale_of(study: Study) -> Scale:
    """The scale to make small: the laptop's, where there is one."""
    return "laptop" if "laptop" in study.scales else "paper"


def spec_of(study: Study) -> ScaleSpec:
    return study.at(scale_of(study))
