"""`litebert score` gives a file of answers the scores that their model got; ensembles and seeds are models."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses
from small_tasks import ANIMALS, find, invent_rows, write_rows

import litebert
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import MultiLabel
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.leaderboard.answer_scores import read_answers, score_answers
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample

SHORT = ["train.steps=4", "train.evaluations=1", "train.batch_size=8"]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = _run([str(word) for word in words], debug=False)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def seeds(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of a task with a labelled test split, next to their data."""
    folder = tmp_path_factory.mktemp("seeds")
    data = write_rows(folder / "data", invent_rows())
    (data / "test.jsonl").write_text((data / "dev.jsonl").read_text())
    words = ["finetune", tiny_checkpoint, "--task", "classification", "--data", data, "--seeds", 2]
    assert _run([str(word) for word in [*words, "--out", folder / "runs", *SHORT]], debug=False) == 0
    return folder


def test_seeds_report_test_and_their_folder_is_the_best_run(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads((seeds / "runs" / "trials.json").read_text())
    [combination] = summary["combinations"]
    scores = [one["test"]["test"]["accuracy"] for one in summary["runs"]]
    assert combination["test"]["test"]["mean"] == pytest.approx(sum(scores) / 2)
    leads = [one["baselines"]["test"]["lead_interval"] for one in summary["runs"]]
    assert summary["baselines"]["test"]["num_above"] == sum(low > 0 for low, _ in leads)
    assert summary["baselines"].keys() == {"dev", "test"}
    texts = ["the cat ran", "a dog"]
    best = litebert.load(seeds / "runs" / summary["best_run"]).classify(texts)
    assert litebert.load(seeds / "runs").classify(texts) == best
    code, printed, errors = run(capsys, "evaluate", seeds / "runs", "--data", seeds / "data", "--split", "test")
    assert (code, printed.startswith("test, ")) == (0, True), errors


def test_an_ensemble_evaluates_and_answers_as_its_report_says(
    seeds: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    members = [seeds / "runs" / f"seed-{seed}" for seed in (1, 2)]
    own = ["--task", "classification", "--data", seeds / "data"]
    code, _, errors = run(capsys, "ensemble", *members, *own, "--all", "--out", seeds / "both")
    assert code == 0, errors
    report = json.loads((seeds / "both" / "report.json").read_text())
    code, printed, errors = run(capsys, "evaluate", seeds / "both", *own, "--json", "--out", tmp_path / "a.jsonl")
    assert code == 0, errors
    assert json.loads(printed)["scores"] == report["dev"]["dev"]["scores"]
    predictor = litebert.load(seeds / "both")
    alone = [litebert.load(member).classify(["the cat"])[0].probabilities["cat"] for member in members]
    assert predictor.classify(["the cat"])[0].probabilities["cat"] == pytest.approx(sum(alone) / 2, abs=1e-6)
    with refuses(ConfigError, "ensemble-has-no-weights"):
        predictor.embed(["the cat"])
    with refuses(DataError, "ensemble-has-no-weights"):
        litebert.interop.opening.load_checkpoint(seeds / "both")
    code, printed, errors = run(capsys, "score", tmp_path / "a.jsonl", *own, "--json")
    assert (code, json.loads(printed)["scores"]) == (0, report["dev"]["dev"]["scores"]), errors
    assert "baseline" in json.loads(printed)
    code, printed, errors = run(capsys, "score", tmp_path / "a.jsonl", *own, "--positive", "cat", "--json")
    assert (code, "f1" in json.loads(printed)["scores"]) == (0, True), errors


def test_the_rows_that_a_run_held_out_are_scored_as_its_dev_split(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "data", invent_rows()) / "train.jsonl"
    own = ["--task", "classification", "--data", data, "--dev-share", 0.3]
    code, _, errors = run(capsys, "finetune", tiny_checkpoint, *own, "--out", tmp_path / "run", *SHORT)
    assert code == 0, errors
    report = json.loads((tmp_path / "run" / "report.json").read_text())["dev"]["dev"]
    answers = tmp_path / "run" / "predictions" / "dev.jsonl"
    code, printed, errors = run(capsys, "score", answers, *own, "--split", "dev", "--json")
    assert code == 0, errors
    scored = json.loads(printed)
    assert (scored["scores"], scored["baseline"]) == (report["scores"], report["baseline"])


def test_numbers_are_drawn_against_the_right_ones(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "data", invent_rows(lambda words: float(len(find(words, ANIMALS)))))
    words = ["--task", "regression", "--data", data, "--out", tmp_path / "run", *SHORT]
    code, printed, errors = run(capsys, "finetune", tiny_checkpoint, *words)
    assert (code, "mae " in printed, "rmse " in printed) == (0, True, True), errors
    assert (tmp_path / "run" / "scatter.png").read_bytes()[:4] == b"\x89PNG"


CASES: dict[str, tuple[Any, Any, Any, Any]] = {  # task, example, a right answer, a wrong one
    "labels": (MultiLabel("m", ("a", "b")), TextExample("1", "x", label=("a",)), ["a"], ["b", "new"]),
    "tags": (TokenTags("t", ("O", "B-PER")), TaggedWords("1", ("Ann",), ("B-PER",)), ["B-PER"], ["O"]),
    "choices": (Choices("c"), ChoiceExample("1", "x", "?", ("a", "b"), 1), "B", 0),
    "spans": (SpanTask("s"), Question("1", "who?", "Ann ran", (Answer("Ann", 0),)), "Ann", "ran"),
    "no span": (SpanTask("s", "2.0"), Question("1", "who?", "it ran", ()), "", "it"),
}


@pytest.mark.parametrize("kind", CASES)
def test_answers_of_every_task_are_scored(kind: str) -> None:
    task, example, right, wrong = CASES[kind]
    for answer, expected in ((right, 1.0), (wrong, 0.0)):
        facts = score_answers(Dataset(task, [], {"dev": [example]}), [example], {"1": answer}, where="file")
        assert facts["scores"][task.metric] == expected
    with refuses(DataError, "bad-answers"):
        score_answers(Dataset(task, [], {}), [example], {"1": 7.5}, where="file")


def test_answers_to_other_examples_are_refused() -> None:
    task, example, right, _ = CASES["tags"]
    with refuses(DataError, "answers-mismatch"):
        score_answers(Dataset(task, [], {}), [example], {"2": right}, where="file")


def test_every_layout_of_answers_is_read_and_others_are_refused(tmp_path: Path) -> None:
    contents = {
        "a.jsonl": '{"id": 0, "answer": "x"}\n{"id": "1", "answer": "y"}\n',
        "a.json": '{"0": "x", "1": "y"}',
        "a.tsv": "index\tprediction\n0\tx\n1\ty\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert read_answers(tmp_path / name) == {"0": "x", "1": "y"}
    (tmp_path / "a.csv").write_text('id,answer\n0,"x\u2028 and ""y""\n"\n1,"a, b"\n')
    assert read_answers(tmp_path / "a.csv") == {"0": 'x\u2028 and "y"\n', "1": "a, b"}
    wrong = {"b.jsonl": '{"text": 1}', "b.json": "[1]", "b.tsv": "one\n", "c.tsv": "id\tanswer\n0\tx\ty\n"}
    for name, content in wrong.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(
            DataError, match=r"not an answers file|expected two columns|c\.tsv:2: expected an id and an answer"
        ):
            read_answers(tmp_path / name)
