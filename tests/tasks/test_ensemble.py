"""Ensembles and submissions: members that help are chosen, and what the leaderboard rejects is said."""

import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import task_facts
from litebert.tasks.classification import Classification, Regression
from litebert.tasks.ensemble import average, make_ensemble, select_greedily
from litebert.tasks.finetuning import Dataset
from litebert.tasks.predictions import (
    Prediction,
    predict_answers,
    predictions_file,
    read_predictions,
    write_predictions,
)
from litebert.tasks.report import write_report
from litebert.tasks.submission import RANKED, SHEETS, check_zip, gather_sheets, rank_within, write_sheet, write_zip
from litebert.tasks.texts import TextExample

TASK = Classification("sst-2", ("0", "1"))


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    members = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]]]
    assert np.allclose(average(TASK, members), np.mean(members, axis=0))
    assert average(Regression("sts-b", 0.0, 5.0), [[1.0], [2.0]]) == [1.5]


def test_members_are_added_while_they_help_the_best_first() -> None:
    truths = [0, 0, 0, 1, 1, 1]
    members = {
        "poor": [[0.4, 0.6]] * 6,
        "good": [[0.9, 0.1]] * 3 + [[0.6, 0.4], [0.1, 0.9], [0.1, 0.9]],  # one error, unsure
        "helper": [[0.45, 0.55]] * 3 + [[0.1, 0.9], [0.45, 0.55], [0.45, 0.55]],  # sure where the other errs
        "copy": [[0.9, 0.1]] * 3 + [[0.6, 0.4], [0.1, 0.9], [0.1, 0.9]],
    }
    chosen = select_greedily(members, lambda values: float(np.mean(np.argmax(values, 1) == truths)), TASK)
    assert chosen.members == ("good", "helper")
    assert chosen.scores == (pytest.approx(5 / 6), 1.0)


def make_run(folder: Path, task: Classification, outputs: list[list[float]], examples: list[TextExample]) -> Path:
    write_report(folder, {"task": task.name, "facts": task_facts(task, max_length=8)})
    write_predictions(predictions_file(folder, "dev"), predict_answers(task, outputs, examples))
    return folder


def test_an_ensemble_of_runs_is_written_as_a_run(tmp_path: Path) -> None:
    examples = [TextExample(str(n), "text", label=str(n % 2)) for n in range(4)]
    right, wrong = [[0.9, 0.1], [0.1, 0.9]] * 2, [[0.1, 0.9], [0.9, 0.1]] * 2
    runs = [make_run(tmp_path / "a", TASK, right, examples), make_run(tmp_path / "b", TASK, wrong, examples)]
    dataset = Dataset(TASK, [], {"dev": examples})
    report = make_ensemble(runs, dataset, tmp_path / "out", selects=True)
    assert report["members"] == [str(tmp_path / "a")]
    assert report["dev"]["dev"]["scores"] == {"accuracy": 1.0}
    assert [one.answer for one in read_predictions(predictions_file(tmp_path / "out", "dev"))] == ["0", "1"] * 2
    assert len(make_ensemble(runs, dataset, tmp_path / "all", selects=False)["members"]) == 2
    with pytest.raises(ConfigError, match="twice"):
        make_ensemble([runs[0], runs[0]], dataset, tmp_path / "no", selects=True)
    with pytest.raises(DataError, match="other examples"):
        make_ensemble(runs, Dataset(TASK, [], {"dev": examples[1:]}), tmp_path / "no", selects=True)


def make_answers(name: str) -> list[Prediction]:
    sheet, rng = SHEETS[name], random.Random(1)
    answers = [rng.choice(sheet.labels) if sheet.labels else rng.random() * 5 for _ in range(sheet.num_rows)]
    return [Prediction(str(n), answer, None) for n, answer in enumerate(answers)]


@pytest.fixture(scope="module")
def sheets() -> dict[str, str]:
    return {name: write_sheet(make_answers(name)) for name in SHEETS}


def test_eleven_right_tables_are_accepted(sheets: dict[str, str], tmp_path: Path) -> None:
    write_zip(tmp_path / "s.zip", sheets)
    assert check_zip(tmp_path / "s.zip") == []
    assert len(zipfile.ZipFile(tmp_path / "s.zip").namelist()) == 11
    before = (tmp_path / "s.zip").read_bytes()
    write_zip(tmp_path / "s.zip", sheets)
    assert (tmp_path / "s.zip").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("RTE", lambda text: text.replace("not_entailment", "no", 1), "'no' is not one of entailment"),
        ("CoLA", lambda text: text.replace("index\tprediction", "id\tlabel"), "line 1 is"),
        ("WNLI", lambda text: text.rsplit("\n", 2)[0] + "\n", "145 rows, but the test set has 146"),
        ("STS-B", lambda text: text.replace("\n7\t", "\n7\t9"), "no number between 0 and 5"),
        ("MRPC", lambda text: text.replace("\n5\t", "\n6\t", 1), "index '6' where 5 comes next"),
        ("SST-2", lambda text: text.replace("\n5\t", "\n5 ", 1), "1 cells instead of 2"),
    ],
)
def test_what_the_leaderboard_rejects_is_said(
    name: str, change: object, problem: str, sheets: dict[str, str], tmp_path: Path
) -> None:
    changed = change(sheets[name])  # type: ignore[operator]
    assert changed != sheets[name]
    write_zip(tmp_path / "s.zip", sheets | {name: changed})
    problems = check_zip(tmp_path / "s.zip")
    assert len(problems) == 1
    assert problems[0].startswith(f"{name}.tsv: ")
    assert problem in problems[0]


def test_missing_and_unknown_tables_are_said(sheets: dict[str, str], tmp_path: Path) -> None:
    rest = {name: text for name, text in sheets.items() if name != "AX"}
    write_zip(tmp_path / "s.zip", rest | {"glue/AX": sheets["AX"]})
    assert check_zip(tmp_path / "s.zip") == [
        "AX.tsv is missing",
        "glue/AX.tsv is no table of GLUE (tables lie at the top, in no folder)",
    ]


def test_of_rows_with_one_question_the_likeliest_wins() -> None:
    rows = [Prediction(str(n), "not_entailment", [p, 1 - p]) for n, p in enumerate([0.1, 0.3, 0.2, 0.9])]
    ranked = rank_within(rows, ["q1", "q1", "q2", "q2"], RANKED["qnli"])
    assert [one.answer for one in ranked] == ["not_entailment", "entailment", "not_entailment", "entailment"]


def test_two_runs_of_one_task_cannot_be_submitted(tmp_path: Path) -> None:
    for name in "ab":
        write_report(tmp_path / name, {"task": "cola"})
    with pytest.raises(ConfigError, match="make an ensemble"):
        gather_sheets([tmp_path / "a", tmp_path / "b"])
