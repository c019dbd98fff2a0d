"""`litebert evaluate --task` and `ensemble`: any labelled file is scored, what was guessed is told."""

import json
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

from litebert.cli.main import _run

SHORT = ["train.steps=4", "train.evaluations=1", "train.batch_size=8"]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = _run([str(word) for word in words], debug=False)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def regression(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regression")
    data = write_rows(folder / "data", invent_rows(lambda words: float(len(words))))
    words = ["finetune", tiny_checkpoint, "--task", "regression", "--data", data, "--out", folder / "run", *SHORT]
    assert _run([str(word) for word in words], debug=False) == 0
    return folder / "run"


@pytest.mark.parametrize("rows", ["a cat,3\n", "a cat,3\na dog,3\n"], ids=["one row", "equal numbers"])
def test_a_finished_regression_is_scored_on_numbers_that_nobody_could_learn_from(
    rows: str, regression: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text(f"text,score\n{rows}")
    words = ["evaluate", regression, "--task", "regression", "--data", tmp_path / "mine.csv"]
    code, printed, errors = run(capsys, *words)
    assert (code, f"{rows.count(chr(10))} examples: pearson 0.0000" in printed) == (0, True), errors
    assert "mine.csv:2: every number from here on is 3: no correlation with it can be told" in errors


def test_an_unlabelled_test_file_alone_is_answered_by_a_regression(
    regression: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "test.csv").write_text("text\na cat\na dog\n")
    words = ["evaluate", regression, "--task", "regression", "--data", tmp_path / "mine"]
    code, _, errors = run(capsys, *words)
    assert (code, "it has no labels to score by; write its answers with --out FILE" in errors) == (2, True), errors
    code, _, errors = run(capsys, *words, "--out", tmp_path / "answers.jsonl")
    assert (code, len((tmp_path / "answers.jsonl").read_text().splitlines())) == (0, 2), errors


def test_what_was_guessed_is_told_beside_the_scores(
    regression: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text("review,length\na cat,3\nthe old dog,5\n")
    words = ["evaluate", regression, "--task", "regression", "--data", tmp_path / "mine.csv", "--json"]
    code, printed, errors = run(capsys, *words)
    assert (code, json.loads(printed)["num_examples"]) == (0, 2), errors
    assert "columns of mine.csv: text = 'review', label = 'length'" in errors
    assert "numbers between" not in errors  # the model has its own
    data = regression.parent / "data"
    words = ["--task", "regression", "--data", data, "--out", tmp_path / "both"]
    code, printed, errors = run(capsys, "ensemble", regression, *words)
    assert (code, "columns of train.jsonl: text = 'text', label = 'label'" in errors) == (0, True), errors
    assert "columns of" not in printed


def test_a_split_of_a_file_is_refused(regression: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = regression.parent / "data" / "dev.jsonl"
    words = ["evaluate", regression, "--task", "regression", "--data", file, "--split", "test"]
    code, printed, errors = run(capsys, *words)
    assert (code, printed) == (2, "")
    assert f"--split test: {file} is a file, all of which is read; leave --split out, or name a folder" in errors
