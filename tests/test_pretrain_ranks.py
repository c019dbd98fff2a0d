"""Pre-training in several processes: they end together, keep only what they need, and refuse in one line."""

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_runs import all_tensors, make_recipe
from torch import Tensor

from litebert import checkpoint, pretrain_run
from litebert.checkpoint import load_checkpoint
from litebert.pretrain import pretrain
from litebert.recipe import Recipe


def join(rank: int, port: str) -> None:
    """Make this process one of two that torchrun might have started."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=port)


def spawn_two(train: Callable[..., None], corpus: Path, folder: Path, parallel: str) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        port = str(taken.getsockname()[1])
    torch.multiprocessing.spawn(train, args=(port, str(corpus), str(folder), parallel), nprocs=2)


def make_short(corpus: str, parallel: str) -> Recipe:
    """A run whose only checkpoint is its last."""
    return make_recipe(Path(corpus), train__steps=3, train__save_every=1000, train__parallel=parallel)


def train_saving_slowly(rank: int, port: str, corpus: str, folder: str, parallel: str) -> None:
    join(rank, port)
    written = checkpoint.write_tensors

    def write_slowly(tensors: dict[str, Tensor], path: Path) -> None:
        time.sleep(2)
        written(tensors, path)

    checkpoint.write_tensors = write_slowly
    last = pretrain(make_short(corpus, parallel), Path(folder) / "run")
    assert load_checkpoint(last).step == 3


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_every_process_waits_for_the_last_checkpoint_and_gives_it(
    parallel: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    spawn_two(train_saving_slowly, tiny_corpus, tmp_path, parallel)


def train_noting_what_is_kept(rank: int, port: str, corpus: str, folder: str, parallel: str) -> None:
    join(rank, port)
    kept: dict[str, int] = {}

    def noting(gather: Callable[..., dict[str, Tensor]]) -> Callable[..., dict[str, Tensor]]:
        def gather_and_note(*arguments: object) -> dict[str, Tensor]:
            tensors = gather(*arguments)
            kept[gather.__name__] = sum(tensor.numel() for tensor in tensors.values())
            return tensors

        return gather_and_note

    pretrain_run.model_tensors = noting(pretrain_run.model_tensors)
    pretrain_run.optimizer_tensors = noting(pretrain_run.optimizer_tensors)
    pretrain(make_short(corpus, parallel), Path(folder) / "run")
    (Path(folder) / f"kept-{rank}.json").write_text(json.dumps(kept))


@pytest.mark.slow
def test_of_shards_that_are_gathered_to_save_only_the_first_process_keeps_the_whole(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    spawn_two(train_noting_what_is_kept, tiny_corpus, tmp_path, "fsdp")
    first, second = (json.loads((tmp_path / f"kept-{rank}.json").read_text()) for rank in range(2))
    assert second == {"model_tensors": 0, "optimizer_tensors": 0}
    saved = load_checkpoint(tmp_path / "run" / "checkpoints" / "step-00000003")
    assert sum(tensor.numel() for tensor in all_tensors(saved).values()) >= sum(first.values()) > 0
