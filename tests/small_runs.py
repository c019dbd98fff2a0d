"""Pre-training runs of a few steps, interrupted where a test wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.pretraining import pretrain as story
from litebert.pretraining.recipe import Recipe, build_recipe


def make_recipe(corpus: Path, **changes: object) -> Recipe:
    values: dict[str, object] = {
        "seed": 3,
        "model": {
            "vocab_size": 100,
            "embedding_size": 8,
            "hidden_size": 16,
            "ffn_size": 24,
            "num_layers": 2,
            "num_heads": 2,
            "max_positions": 32,
        },  # dropout is on: the default is the paper's
        "data": {"corpora": [str(corpus)]},
        "segments": {"max_length": 32},
        "batch": {"sequences": 8},
        "train": {"steps": 12, "save_every": 4, "evaluate_batches": 2, "micro_batch": 4},
        "schedule": {"warmup_steps": 2},
        "optim": {"learning_rate": 0.01},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            values[section] = {**values.get(section, {}), name: value}  # type: ignore[dict-item]
        else:
            values[section] = value
    return build_recipe(values)


def all_tensors(checkpoint: Checkpoint) -> dict[str, Tensor]:
    return checkpoint.load_weights() | checkpoint.load_optimizer()


def assert_same_run(one: Path, other: Path) -> None:
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    ends = [load_checkpoint(list_checkpoints(run / "checkpoints")[-1]) for run in (one, other)]
    assert ends[0].step == ends[1].step
    tensors = [all_tensors(end) for end in ends]
    assert tensors[0].keys() == tensors[1].keys()
    for name, tensor in tensors[0].items():
        assert torch.equal(tensor, tensors[1][name]), name


class Interrupted(Exception):
    pass


@contextmanager
def interrupted_before_step(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The run dies when it is about to write this step's metrics."""
    write = story.RunLog.write

    def die(self: story.RunLog, number: int, **values: dict[str, float]) -> None:
        if number == step:
            raise Interrupted
        write(self, number, **values)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(story.RunLog, "write", die)
        yield
