"""Pre-training in several processes: they end together, keep only what they need, and fail with one line."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from refusals import refuses
from small_runs import all_tensors, interrupted_before_step, make_recipe
from torch import Tensor

from litebert import checkpoint
from litebert.checkpoint import load_checkpoint
from litebert.core.errors import BusyError, ConfigError, DataError, LitebertError
from litebert.core.files import exclusive_lock
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.pretraining import run_folder
from litebert.pretraining.pretrain import check_before_launch, pretrain
from litebert.pretraining.recipe import Recipe
from litebert.text.tokenizer import Tokenizer


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
@pytest.mark.ranks
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_every_process_waits_for_the_last_checkpoint_and_gives_it(
    parallel: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    spawn_two(train_saving_slowly, tiny_corpus, tmp_path, parallel)


def train_longer(rank: int, port: str, corpus: str, folder: str, parallel: str) -> None:
    join(rank, port)
    pretrain(make_longer(Path(corpus), parallel), Path(folder) / parallel)


def make_longer(corpus: Path, parallel: str) -> Recipe:
    """A run whose text grows once, to positions that are continued."""
    stages = [{"at": 2, "segments": {"max_length": 32}}]
    changes = {"train__steps": 3, "train__parallel": parallel, "init__new_positions": "continued"}
    return make_recipe(corpus, segments__max_length=16, stages=stages, **changes)


@pytest.mark.slow
@pytest.mark.ranks
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_positions_are_continued_in_shards_as_in_one(parallel: str, tiny_corpus: Path, tmp_path: Path) -> None:
    spawn_two(train_longer, tiny_corpus, tmp_path, parallel)
    pretrain(make_longer(tiny_corpus, "ddp"), tmp_path / "one")
    for step in (2, 3):
        many, one = (load_checkpoint(tmp_path / run / f"checkpoints/step-{step:08}") for run in (parallel, "one"))
        theirs, ours = many.load_weights(), one.load_weights()
        for name in ours:
            assert torch.allclose(theirs[name], ours[name], atol=1e-5), (step, name)


def train_noting_what_is_kept(rank: int, port: str, corpus: str, folder: str, parallel: str) -> None:
    join(rank, port)
    kept: dict[str, int] = {}

    def noting(gather: Callable[..., dict[str, Tensor]]) -> Callable[..., dict[str, Tensor]]:
        def gather_and_note(*arguments: object) -> dict[str, Tensor]:
            tensors = gather(*arguments)
            kept[gather.__name__] = sum(tensor.numel() for tensor in tensors.values())
            return tensors

        return gather_and_note

    run_folder.model_tensors = noting(run_folder.model_tensors)
    run_folder.optimizer_tensors = noting(run_folder.optimizer_tensors)
    pretrain(make_short(corpus, parallel), Path(folder) / "run")
    (Path(folder) / f"kept-{rank}.json").write_text(json.dumps(kept))


@pytest.mark.slow
@pytest.mark.ranks
def test_only_the_first_process_keeps_the_gathered_shards(tiny_corpus: Path, tmp_path: Path) -> None:
    spawn_two(train_noting_what_is_kept, tiny_corpus, tmp_path, "fsdp")
    first, second = (json.loads((tmp_path / f"kept-{rank}.json").read_text()) for rank in range(2))
    assert second == {"model_tensors": 0, "optimizer_tensors": 0}
    saved = load_checkpoint(tmp_path / "run" / "checkpoints" / "step-00000003")
    assert sum(tensor.numel() for tensor in all_tensors(saved).values()) >= sum(first.values()) > 0


def test_a_folder_that_is_busy_is_refused_before_the_launch(tiny_corpus: Path, tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "run", purpose="training"), refuses(BusyError, "busy"):
        check_before_launch(make_recipe(tiny_corpus), tmp_path / "run", 2)
    check_before_launch(make_recipe(tiny_corpus), tmp_path / "run", 2)
    with exclusive_lock(tmp_path / "run", purpose="training"):  # it was let go
        pass


@pytest.mark.parametrize(
    ("changes", "error", "code", "place"),
    [
        ({"stages": [{"at": 2, "data": {"corpora": ["nowhere"]}}]}, DataError, "not-a-corpus", "nowhere"),
        ({"stages": [{"at": 2, "batch": {"sequences": 1}}]}, ConfigError, "too-few-sequences", "batch.sequences"),
        ({"batch__sequences": 1}, ConfigError, "too-few-sequences", "batch.sequences"),
        ({"init": {"from": "nowhere"}}, DataError, "missing-file", "nowhere"),
        ({"init": {"from": "other sizes"}}, ConfigError, "weights-mismatch", "encoder."),
        ({"model__vocab_size": 200}, ConfigError, "vocabulary-mismatch", "model.vocab_size"),
        ({"runtime": {"device": "mps"}}, ConfigError, "unsupported-device", "runtime.device"),
    ],
    ids=["stage-corpus", "stage-rows", "rows", "init", "init-sizes", "vocabulary", "mps"],
)
def test_what_each_process_would_refuse_is_refused_before_the_launch(
    changes: dict[str, object], error: type[LitebertError], code: str, place: str, tiny_corpus: Path, tmp_path: Path
) -> None:
    if changes.get("init") == {"from": "other sizes"}:
        wider = make_recipe(tiny_corpus, train__steps=2, model__ffn_size=48)
        changes = {"init": {"from": str(pretrain(wider, tmp_path / "wider"))}}
    with refuses(error, code, at=place):
        check_before_launch(make_recipe(tiny_corpus, **changes), tmp_path / "run", 2)
    assert not (tmp_path / "run").exists()


def test_a_changed_text_is_refused_before_the_launch(
    tiny_corpus: Path, tiny_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(tiny_corpus, corpus)
    recipe = make_recipe(corpus, train__steps=4, train__save_every=2)
    pretrain(recipe, tmp_path / "finished")
    with interrupted_before_step(4, monkeypatch):
        pretrain(recipe, tmp_path / "run")
    check_before_launch(recipe, tmp_path / "run", 2)
    (tmp_path / "more.txt").write_text("The small bird sees a new tree.\nA dog follows.\n")
    build_corpus([tmp_path / "more.txt"], tiny_tokenizer, corpus, BuildOptions(valid_share=0.1, is_quiet=True))
    with refuses(ConfigError, "corpus-changed"):
        check_before_launch(recipe, tmp_path / "run", 2)
    check_before_launch(recipe, tmp_path / "finished", 2)  # reads no text any more


def run_two(recipe: Recipe, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    file = folder.with_suffix(".toml")
    file.write_text(recipe.to_toml())
    command = [sys.executable, "-m", "litebert", "pretrain", str(file), *words, "--out", str(folder)]
    command += ["--processes", "2", "--restarts", "3"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.ranks
def test_a_busy_folder_has_its_own_exit_code_also_with_several_processes(tiny_corpus: Path, tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "run", purpose="training"):
        done = run_two(make_recipe(tiny_corpus), tmp_path / "run")
    assert (done.returncode, done.stdout) == (os.EX_TEMPFAIL, "")
    assert done.stderr == f"error[busy]: another process is training in {tmp_path / 'run'}; wait for it, or stop it\n"


@pytest.mark.slow
@pytest.mark.ranks
def test_a_loss_that_is_not_a_number_ends_several_processes_once_and_in_one_line(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    done = run_two(make_recipe(tiny_corpus, model__initializer_range=1e30), tmp_path / "run")
    assert done.returncode == 2, done.stderr
    refused = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert refused == ["error[loss-not-finite]: the loss of step 1 is nan; no checkpoint was saved yet"]
    assert "Traceback" not in done.stderr
    assert "restarts left" not in done.stderr


@pytest.mark.slow
@pytest.mark.ranks
def test_what_the_first_process_alone_finds_ends_all_in_one_line(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").touch()
    (tmp_path / "run" / "timing.jsonl").mkdir()  # only the first process writes logs
    done = run_two(make_recipe(tiny_corpus), tmp_path / "run")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("timing.jsonl: Is a directory") == 1
    assert "Traceback" not in done.stderr


def test_the_shown_ways_to_start_torchrun_survive_a_restart_and_slurm_takes_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pretraining.md").read_text("utf-8")
    shown = [block for block in page.split("```")[1::2] if "--max-restarts" in block]
    assert len(shown) == 2
    for block in shown:
        assert 0 < block.find("export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1") < block.find("torchrun")
        assert "#SBATCH" not in block or block.startswith("\n#!/bin/bash\n")
