"""Continued pre-training of a model on a user's own text: a suitable recipe, and the gain on held-out text.

Tokenizer, shape, depth and length are taken from the model. The text is read in sequences of whole sentences, with
masked tokens as the only task, since short documents have too few sentence pairs.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from litebert.batches.stream import open_stream
from litebert.checkpoint import Checkpoint
from litebert.core.errors import DataError
from litebert.core.options import merge, parse_toml
from litebert.core.runtime import choose_device, choose_runtime
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.objectives.registry import build_objective
from litebert.pretraining.initialization import load_matching_weights
from litebert.pretraining.recipe import Recipe, build_recipe
from litebert.pretraining.stage import draw_validation
from litebert.training.distributed import TaskLoss
from litebert.training.loop import Engine, build_scaler, measure

EPOCHS = 3.0
MIN_STEPS = 100
MAX_CPU_STEPS = 2_000  # about an hour with a small model; for longer runs, set train.steps
WARMUP_SHARE = 0.06


def build_adaptation(source: Checkpoint, model: str, corpus: Path, changes: Mapping[str, Any]) -> Recipe:
    """The recipe to continue training a model on a corpus built with its tokenizer, updated with `changes`."""
    own = parse_toml(source.recipe_toml, where=f"the recipe of {source.path}") if source.recipe_toml else {}
    length = own.get("segments", {}).get("max_length", source.config.max_positions)
    lengths = [stage.get("segments", {}).get("max_length", length) for stage in own.get("stages", ())]
    values: dict[str, Any] = {
        "model": dataclasses.asdict(source.config),
        "init": {"from": model},
        "data": {"corpora": [str(corpus)], "workers": 1},
        "segments": {
            "format": "doc-sentences",
            "task": "none",
            "max_length": min(max(length, *lengths, 8), source.config.max_positions),
        },
        "batch": {"sequences": 32},
        "optim": {"name": "adamw", "learning_rate": choose_rate(source.config.hidden_size)},
        "train": {"steps": 1},
        "schedule": {"warmup_steps": 0},
    }
    draft = build_recipe(merge(values, changes))
    is_on_cpu = choose_device(draft.runtime.device).type == "cpu"
    stream, _ = open_stream(draft.data, draft.stream)
    steps = max(MIN_STEPS, round(EPOCHS * stream.steps_per_epoch))
    steps = min(steps, MAX_CPU_STEPS) if is_on_cpu else steps
    steps = changes.get("train", {}).get("steps", steps)
    length_of_run = {
        "train": {"steps": steps, "save_every": max(1, min(500, steps // 4))},
        "schedule": {"warmup_steps": round(WARMUP_SHARE * steps)},
    }
    return build_recipe(merge(merge(values, length_of_run), changes))


def choose_rate(hidden_size: int) -> float:
    """A learning rate for continued training: 1e-4, less for models wider than BERT-base."""
    return float(f"{min(1e-4, 1e-4 * 768 / hidden_size):.1e}")


def measure_adaptation(model: Path | str, recipe: Recipe) -> dict[str, float]:
    """Masked-token accuracy and loss on the validation split of the recipe's corpus; the same tokens for any model."""
    batches = draw_validation(recipe, recipe.data.corpora[0])
    if not batches:
        raise DataError(
            "no-validation",
            f"{recipe.data.corpora[0]} has no validation split to measure on: give more documents (a file of prose is "
            "one document), or hold out a larger share",
            option="valid_share",
        )
    source = load_checkpoint(model, FOR_TRAINING)
    objective, runtime = build_objective(recipe), choose_runtime(recipe.runtime)
    network = objective.build_model(recipe.model, seed=recipe.seed)
    load_matching_weights(network, source.load_weights(), recipe)
    network = network.to(runtime.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)  # an engine has one; measuring does not use it
    loss = TaskLoss(network, objective)
    engine = Engine(network, loss, optimizer, objective, runtime, build_scaler(runtime), 0.0, recipe.seed)
    metrics = measure(engine, batches)
    num_tokens = sum(len(batch.mlm_labels) for batch in batches)
    return {"mlm_accuracy": metrics["mlm_accuracy"], "mlm_loss": metrics["mlm_loss"], "num_masked": num_tokens}
