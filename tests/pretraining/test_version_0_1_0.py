"""A corpus and a stopped run written by version 0.1.0 still load, and the run resumes to the numbers of that version.

The run has packed rows, micro-batches, dropout, LAMB, and a stage that changes length, task and dropout. It was stopped
after step 6, with its last checkpoint at step 4. `whole-metrics.jsonl` is what 0.1.0 logged without stopping.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from litebert.core.runlog import read_log
from litebert.finetuning.run_folder import hash_config
from litebert.model.config import ModelConfig
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import load_recipe

WRITTEN = Path(__file__).parent / "version-0.1.0"


def test_a_run_of_version_0_1_0_resumes_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    last = pretrain(load_recipe("stopped/recipe.toml"), Path("stopped"))
    assert last.name == "step-00000008"
    ours, theirs = (Path(file).read_bytes().splitlines() for file in ("stopped/metrics.jsonl", "whole-metrics.jsonl"))
    assert ours[:4] == theirs[:4]  # read, not computed
    assert len(ours) == len(theirs)
    for resumed, expected in zip(ours[4:], map(json.loads, theirs[4:]), strict=True):
        assert json.loads(resumed) == pytest.approx(expected, rel=1e-4)  # processors differ in the last bits


def test_a_recipe_of_version_0_1_0_gives_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    pretrain(load_recipe("stopped/recipe.toml"), Path("new"))
    for ours, theirs in zip(read_log(Path("new/metrics.jsonl")), read_log(Path("whole-metrics.jsonl")), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_a_fine_tuning_run_of_version_0_1_0_knows_its_model_again() -> None:
    config = ModelConfig(vocab_size=100, embedding_size=4, hidden_size=8, ffn_size=8, num_layers=2, num_heads=2)
    hashed = "5492ef2a1652eb7b9cb3c17a32b6e0fb4bb7e69a5d0ffd4cc327df3544fe229c"  # by 0.1.0
    assert hash_config(config) == hashed
    assert hash_config(replace(config, attention="window")) != hashed
    assert hash_config(replace(config, num_layers=1)) != hashed
