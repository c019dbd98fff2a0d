"""`litebert evaluate --task` and `ensemble`: any labelled file is scored, what was guessed is told."""

import json
import shutil
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

from litebert.cli.main import _run
from litebert.cli.scores import describe_scores

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
    assert "mine.csv:2: every target in this split is 3, so the correlation is undefined" in errors


def test_an_unlabelled_test_file_alone_is_answered_by_a_regression(
    regression: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "test.csv").write_text("text\na cat\na dog\n")
    words = ["evaluate", regression, "--task", "regression", "--data", tmp_path / "mine", "--split", "test"]
    code, _, errors = run(capsys, *words)
    assert (code, "test has no labels to score by; its answers can be written to a file (--out)" in errors) == (
        2,
        True,
    ), errors
    code, _, errors = run(capsys, *words, "--out", tmp_path / "answers.jsonl")
    assert (code, len((tmp_path / "answers.jsonl").read_text().splitlines())) == (0, 2), errors


def test_guessed_settings_are_shown_with_the_scores(
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


def test_a_split_that_a_file_does_not_have_is_refused(regression: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = regression.parent / "data" / "dev.jsonl"
    code, printed, errors = run(capsys, "evaluate", regression, "--data", file, "--split", "test")
    assert (code, printed) == (2, "")
    assert f"{file} has no 'test' split; it has all" in errors


@pytest.fixture(scope="module")
def held_out(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose dev split was held out of its training file, rows.jsonl."""
    folder = tmp_path_factory.mktemp("held-out")
    write_lines(folder / "rows.jsonl", invent_rows(count=60, seed=5))
    words = ["finetune", tiny_checkpoint, "--task", "classification", "--data", folder / "rows.jsonl"]
    assert _run([str(word) for word in (*words, "--out", folder / "run", *SHORT)], debug=False) == 0
    return folder / "run"


def write_lines(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_of_the_training_file_the_held_out_rows_are_scored(
    held_out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads((held_out / "report.json").read_text())["dev"]["dev"]
    rows = [json.loads(line) for line in (held_out.parent / "rows.jsonl").read_text().splitlines()]
    moved = write_lines(tmp_path / "moved.jsonl", rows[::-1])  # known by its content, not by its place
    code, printed, errors = run(capsys, "evaluate", held_out, "--data", moved)
    scores = describe_scores(report)
    number = report["num_examples"]
    assert (code, f"dev, {number} examples: {scores}" in printed) == (0, True), errors + printed
    assert f"only the {number} rows of its dev split are scored" in errors
    assert "first row: text = " in errors  # and not of train: a file that is scored has no splits
    code, printed, _ = run(capsys, "evaluate", held_out, "--data", moved, "--json")
    facts = json.loads(printed)
    assert (facts["split"], facts["num_trained_on"], facts["num_examples"]) == ("dev", 0, number)
    assert facts["scores"] == report["scores"]


@pytest.mark.parametrize("split", ["all", "train"])
def test_training_rows_are_scored_only_on_request_and_marked(
    split: str, held_out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = held_out.parent / "rows.jsonl"
    num_trained = json.loads((held_out / "report.json").read_text())["num_train_examples"]
    number = 60 if split == "all" else num_trained
    code, printed, errors = run(capsys, "evaluate", held_out / "model", "--data", data, "--split", split)
    assert (code, f"{split}, {number} examples: " in printed) == (0, True), errors
    assert f"the model was trained on {num_trained} of these {number} texts" in errors
    assert "bag of words" not in printed  # it would have learned from other rows than those that the model has learned


def test_texts_of_training_in_another_file_are_counted(
    held_out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = invent_rows(count=60, seed=5)
    file = write_lines(tmp_path / "mixed.jsonl", [*rows[:5], *invent_rows(count=5, seed=99)])
    code, printed, errors = run(capsys, "evaluate", held_out, "--data", file)
    assert (code, "all, 10 examples: " in printed) == (0, True), errors
    assert " of these 10 texts: expect less on new text" in errors


def test_a_folder_without_dev_is_never_scored_on_test_unasked(
    held_out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "mine" / "test.jsonl", invent_rows(count=8, seed=7))
    words = ["evaluate", held_out, "--data", tmp_path / "mine"]
    code, printed, errors = run(capsys, *words)
    assert (code, printed) == (2, "")
    assert "has no 'dev' split; it has test" in errors
    code, printed, errors = run(capsys, *words, "--split", "test")
    assert (code, "test, 8 examples: " in printed) == (0, True), errors
    write_lines(tmp_path / "mine" / "train.jsonl", invent_rows(count=60, seed=5))
    code, printed, errors = run(capsys, *words)  # its dev rows are those that were held out of train
    assert (code, printed.startswith("dev, ")) == (0, True), errors
    _, printed, _ = run(capsys, *words, "--split", "test", "--json")
    num_trained = json.loads((held_out / "report.json").read_text())["num_train_examples"]
    assert json.loads(printed)["baseline"]["num_train_examples"] == num_trained, "held-out rows are not trained on"


def test_a_model_that_does_not_record_its_training_says_so(
    held_out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(held_out / "model", tmp_path / "alone" / "far" / "model")
    data = held_out.parent / "rows.jsonl"
    code, printed, errors = run(capsys, "evaluate", tmp_path / "alone" / "far" / "model", "--data", data, "--json")
    assert (code, json.loads(printed)["num_trained_on"]) == (0, None), errors
    assert "the model has no record of its training texts" in errors
