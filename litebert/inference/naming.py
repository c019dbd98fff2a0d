"""A model's name, and the facts that clients need to use it: language, task and shape."""

from pathlib import Path
from typing import Any, Literal

from litebert.checkpoint import Checkpoint
from litebert.model.cost import count_parameters
from litebert.tasks.catalog import restore_task
from litebert.text.tokenizer import Tokenizer

_NAMELESS = ("model", "checkpoints", "checkpoint")  # folder names that do not identify a model
_IS_CHINESE = 0.2  # share of the vocabulary's pieces


def name_model(path: Path) -> str:
    """The last folder with a meaningful name: a checkpoint inside a run is named after the run."""
    parts = [part for part in path.absolute().parts if part not in _NAMELESS and not part.startswith("step-")]
    return parts[-1] if parts else "model"


def describe_model(checkpoint: Checkpoint, tokenizer: Tokenizer, *, max_length: int, has_exits: bool) -> dict[str, Any]:
    """The facts that a client needs to query a model and to show its answers."""
    config = checkpoint.config
    task = None if checkpoint.task is None else restore_task(checkpoint.task, where=str(checkpoint.path))
    return {
        "task": None if task is None else task.name,
        "labels": list(getattr(task, "labels", ())),
        "num_texts": getattr(task, "num_texts", 0),
        "has_spans": getattr(task, "has_spans", False),
        "has_exits": has_exits,
        "language": tell_language(tokenizer),
        "mask": tokenizer.pieces([tokenizer.mask_id])[0],
        "num_parameters": count_parameters(config, checkpoint.heads).total,
        "num_layers": len(config.layer_plan.rows),
        "num_heads": config.num_heads,
        "hidden_size": config.hidden_size,
        "max_length": max_length,
    }


def tell_language(tokenizer: Tokenizer) -> Literal["en", "zh"]:
    """The main language of the vocabulary."""
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    count = sum(any("\u4e00" <= letter <= "\u9fff" for letter in piece) for piece in pieces)
    return "zh" if count > _IS_CHINESE * len(pieces) else "en"
