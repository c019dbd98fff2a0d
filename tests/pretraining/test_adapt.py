"""Continued pre-training in one command: what comes from the model, what is measured, and how it resumes."""

import json
from pathlib import Path

import pytest
from small_runs import assert_same_run, interrupted_before_step

import litebert
from litebert.cli.main import _run
from litebert.core.files import read_json
from litebert.pretraining.recipe import load_recipe
from tests.conftest import invent_documents

SMALL = {"train.steps": 12, "train.save_every": 4, "optim.learning_rate": 0.01, "batch.sequences": 8}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [" ".join(document) for document in invent_documents(120, seed=5)]


def test_shape_tokenizer_depth_and_length_come_from_the_model(
    tiny_checkpoint: Path, texts: list[str], tmp_path: Path
) -> None:
    model = litebert.load_checkpoint(tiny_checkpoint)
    adapted = litebert.adapt(tiny_checkpoint, texts, tmp_path / "run", SMALL)
    assert adapted.checkpoint is not None
    found = litebert.load_checkpoint(adapted)
    assert found.config == model.config
    assert found.load_tokenizer().fingerprint == model.load_tokenizer().fingerprint
    assert load_recipe(tmp_path / "run" / "recipe.toml").segments.max_length == model.config.max_positions
    assert adapted.report == read_json(tmp_path / "run" / "adaptation.json")


def test_held_out_text_is_measured_before_and_after_and_training_helps(
    tiny_checkpoint: Path, texts: list[str], tmp_path: Path
) -> None:
    adapted = litebert.adapt(tiny_checkpoint, texts, tmp_path / "run", {**SMALL, "train.steps": 40})
    before, after = adapted.report["before"], adapted.report["after"]
    assert before["num_masked"] == after["num_masked"] > 30
    assert after["mlm_loss"] < before["mlm_loss"] - 0.3
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert after["mlm_loss"] == pytest.approx(last["valid_mlm_loss"], rel=1e-5)  # by the run's own measurement


def test_without_a_step_that_learns_nothing_changes(tiny_checkpoint: Path, texts: list[str], tmp_path: Path) -> None:
    still = {**SMALL, "train.steps": 4, "optim.learning_rate": 1e-12, "optim.weight_decay": 0.0}
    report = litebert.adapt(tiny_checkpoint, texts, tmp_path / "run", still).report
    assert report["after"] == pytest.approx(report["before"], rel=1e-5)


def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tiny_checkpoint: Path, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = litebert.adapt(tiny_checkpoint, texts, tmp_path / "whole", SMALL)
    with interrupted_before_step(7, monkeypatch):
        litebert.adapt(tiny_checkpoint, texts, tmp_path / "cut", SMALL)
    again = litebert.adapt(tiny_checkpoint, texts, tmp_path / "cut", SMALL)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert again.metrics == whole.metrics


def test_the_command_reports_both_accuracies(
    tiny_checkpoint: Path, texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    words = ["--set", "train.steps=4", "--set", "optim.learning_rate=0.01", "--out", str(tmp_path / "run")]
    assert _run(["adapt", str(tiny_checkpoint), str(tmp_path / "texts.jsonl"), *words], debug=False) == 0
    said = capsys.readouterr().out
    assert "masked-token accuracy on" in said
    assert "before" in said
    assert "4 steps" in said.splitlines()[0]  # the recipe is announced in one line


def test_without_held_out_text_nothing_is_trained(tiny_checkpoint: Path, texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(litebert.DataError) as raised:
        litebert.adapt(tiny_checkpoint, texts, tmp_path / "run", SMALL, valid_share=0.0)
    assert (raised.value.code, raised.value.option) == ("no-validation", "valid_share")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_an_adapted_model_is_sound_and_can_be_verified(tiny_checkpoint: Path, texts: list[str], tmp_path: Path) -> None:
    litebert.adapt(tiny_checkpoint, texts, tmp_path / "run", {**SMALL, "train.steps": 4})
    assert _run(["verify", str(tmp_path / "run")], debug=False) == 0
    assert _run(["doctor", str(tmp_path / "run")], debug=False) == 0
