"""Ensembles and submissions: members that help are chosen, and what the leaderboard rejects is said."""

import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import read_dataset, task_facts
from litebert.tasks.ensemble import average, make_ensemble, select_greedily
from litebert.tasks.finetuning import Dataset, fingerprint
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.leaderboard.answer_sheets import to_sheet
from litebert.tasks.leaderboard.submission import (
    RANKED,
    SHEETS,
    check_zip,
    gather_sheets,
    group_rivals,
    rank_rivals,
    write_sheet,
    write_zip,
)
from litebert.tasks.predictions import (
    Prediction,
    predict_answers,
    predictions_file,
    read_predictions,
    write_predictions,
)
from litebert.tasks.report import write_report
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample

TASK = Classification("sst-2", ("0", "1"))


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    members = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]]]
    assert np.allclose(average(TASK, members), np.mean(members, axis=0))
    assert average(Regression("sts-b", 0.0, 5.0), [[1.0], [2.0]]) == [1.5]


def test_members_are_added_while_they_help_the_best_first() -> None:
    truths = [0, 0, 0, 1, 1, 1]
    members = {
        "poor": [[0.0, 1.0]] * 3 + [[1.0, 0.0]] * 3,
        "good": [[0.9, 0.1]] * 3 + [[0.6, 0.4], [0.1, 0.9], [0.1, 0.9]],  # one error, unsure
        "helper": [[0.45, 0.55]] * 3 + [[0.1, 0.9], [0.45, 0.55], [0.45, 0.55]],  # sure where the other errs
        "copy": [[0.9, 0.1]] * 3 + [[0.6, 0.4], [0.1, 0.9], [0.1, 0.9]],
    }
    chosen = select_greedily(members, lambda values: float(np.mean(np.argmax(values, 1) == truths)), TASK)
    assert chosen.members == ("good", "helper", "copy")
    assert chosen.scores == (pytest.approx(5 / 6), 1.0, 1.0)


def test_members_that_help_only_together_are_found() -> None:
    right, wrong = [0.7, 0.3], [0.2, 0.8]  # of two members the one that errs prevails, of three it does not
    members = {
        "first": [wrong, right, right, right],
        "second": [right, wrong, right, right],
        "third": [right, right, wrong, right],
    }
    chosen = select_greedily(members, lambda values: float(np.mean(np.argmax(values, 1) == 0)), TASK)
    assert chosen.members == ("first", "second", "third")
    assert chosen.scores == (0.75, 0.5, 1.0)


def test_of_ensembles_that_score_alike_the_larger_is_kept() -> None:
    members = {"one": [[0.9, 0.1]], "same": [[0.9, 0.1]], "wrong": [[0.0, 1.0]], "worse": [[0.0, 1.0]]}
    chosen = select_greedily(members, lambda values: float(np.mean(np.argmax(values, 1) == [0])), TASK)
    assert chosen.members == ("one", "same", "wrong")


def make_run(
    folder: Path, task: Any, outputs: list[Any], examples: list[Any], test: dict[str, list[TextExample]] | None = None
) -> Path:
    """A finished run, as far as ensembles and submissions see it; the rows of its test split get the first output."""
    values = {"job": {"test": fingerprint(list((test or {}).values()))}}
    facts = {"task": task.name, "metric": task.metric, "facts": task_facts(task, max_length=8)}
    write_report(folder, {**facts, "values": values, "dev": {}, "test": {}})
    write_predictions(predictions_file(folder, "dev"), predict_answers(task, outputs, examples))
    for name, rows in (test or {}).items():
        write_predictions(predictions_file(folder, name), predict_answers(task, outputs[:1] * len(rows), rows))
    return folder


def test_an_ensemble_never_writes_over_a_run_or_other_files(tmp_path: Path) -> None:
    examples = [TextExample(str(n), "text", label=str(n % 2)) for n in range(2)]
    runs = [make_run(tmp_path / name, TASK, [[0.9, 0.1], [0.1, 0.9]], examples) for name in "ab"]
    before = (runs[0] / "report.json").read_bytes()
    dataset = Dataset(TASK, [], {"dev": examples})
    with refuses(ConfigError, "output-exists"):
        make_ensemble(runs, dataset, runs[0], selects=True)
    assert (runs[0] / "report.json").read_bytes() == before
    make_ensemble(runs, dataset, tmp_path / "out", selects=True)
    make_ensemble(runs, dataset, tmp_path / "out", selects=False)  # an ensemble may be made again


def test_an_ensemble_that_is_made_again_has_no_answers_of_the_one_before(tmp_path: Path) -> None:
    examples = [TextExample(str(n), "text", label=str(n % 2)) for n in range(2)]
    test = {"test": [TextExample("9", "text")]}
    outputs = [[0.9, 0.1], [0.1, 0.9]]
    asked, not_asked = (
        make_run(tmp_path / name, TASK, outputs, examples, rows) for name, rows in (("a", test), ("b", {}))
    )
    for run in (asked, not_asked):
        make_ensemble([run], Dataset(TASK, [], {"dev": examples}, test), tmp_path / "out", selects=False)
        has_answered = predictions_file(tmp_path / "out", "test").is_file()
        assert has_answered == (run == asked)


def test_members_of_other_tasks_or_labels_are_refused(tmp_path: Path) -> None:
    examples = [TextExample(str(n), "text", label=str(n % 2)) for n in range(2)]
    outputs = [[0.9, 0.1], [0.1, 0.9]]
    same = make_run(tmp_path / "a", TASK, outputs, examples)
    dataset = Dataset(TASK, [], {"dev": examples})
    other = make_run(tmp_path / "b", Classification("cola", ("0", "1")), outputs, examples)
    with refuses(ConfigError, "wrong-task"):
        make_ensemble([same, other], dataset, tmp_path / "out", selects=True)
    other = make_run(tmp_path / "c", Classification("sst-2", ("1", "0")), outputs, examples)
    with refuses(ConfigError, "labels-mismatch"):
        make_ensemble([same, other], dataset, tmp_path / "out", selects=True)
    assert not (tmp_path / "out").exists()


def test_every_dev_split_of_an_ensemble_is_scored(tmp_path: Path) -> None:
    examples = [TextExample(str(n), "text", label=str(n % 2)) for n in range(2)]
    run = make_run(tmp_path / "a", TASK, [[0.9, 0.1], [0.1, 0.9]], examples)
    write_predictions(predictions_file(run, "other"), predict_answers(TASK, [[0.9, 0.1]] * 2, examples))
    dataset = Dataset(TASK, [], {"dev": examples, "other": examples})
    report = make_ensemble([run], dataset, tmp_path / "out", selects=True)
    assert [facts["scores"]["accuracy"] for facts in report["dev"].values()] == [1.0, 0.5]


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
    with refuses(ConfigError, "repeated-value"):
        make_ensemble([runs[0], runs[0]], dataset, tmp_path / "no", selects=True)
    with refuses(DataError, "answers-mismatch"):
        make_ensemble(runs, Dataset(TASK, [], {"dev": examples[1:]}), tmp_path / "no", selects=True)


@pytest.mark.parametrize(
    ("task", "outputs", "labels", "others"),
    [
        (TASK, [[0.9, 0.1], [0.1, 0.9]], ["0", "1"], ["1", "1"]),
        (Regression("own", None, None), [1.0, 2.5], [1.0, 2.5], [1.0, 2.0]),
        (MultiLabel("own", ("a", "b")), [[0.9, 0.1], [0.9, 0.9]], [("a",), ("a", "b")], [("a",), ("b",)]),
    ],
    ids=["classes", "numbers", "many labels"],
)
def test_another_file_of_the_same_length_is_refused(
    task: Any, outputs: list[Any], labels: list[Any], others: list[Any], tmp_path: Path
) -> None:
    def number_rows(values: list[Any]) -> list[TextExample]:
        return [TextExample(str(n), "text", label=value) for n, value in enumerate(values)]

    run = make_run(tmp_path / "a", task, outputs, number_rows(labels))
    with refuses(DataError, "answers-mismatch"):
        make_ensemble([run], Dataset(task, [], {"dev": number_rows(others)}), tmp_path / "out", selects=True)
    assert not (tmp_path / "out").exists()
    make_ensemble([run], Dataset(task, [], {"dev": number_rows(labels)}), tmp_path / "out", selects=True)


def test_other_gold_answers_of_the_same_questions_are_refused(tmp_path: Path) -> None:
    task = SpanTask("squad-v1")
    questions = [Question("1", "who", "the cat sees", (Answer("the cat", 0), Answer("cat", 4)))]
    output = {"spans": [["cat", 4, 7, 1.0, 0.0, 0.0]], "null_odds": 0.0}
    run = make_run(tmp_path / "a", task, [output], questions)
    others = [replace(questions[0], answers=(Answer("the cat sees", 0),))]
    with refuses(DataError, "answers-mismatch"):
        make_ensemble([run], Dataset(task, [], {"dev": others}), tmp_path / "out", selects=True)
    make_ensemble([run], Dataset(task, [], {"dev": questions}), tmp_path / "out", selects=True)


def make_test(*texts: str) -> dict[str, list[TextExample]]:
    return {"test": [TextExample(str(n), text, "a sentence") for n, text in enumerate(texts)]}


def test_another_test_file_of_the_same_length_is_refused(tmp_path: Path) -> None:
    dev, test = [TextExample("0", "text", label="1")], make_test("q1", "q1")
    run = make_run(tmp_path / "a", TASK, [[0.1, 0.9]], dev, test)
    for other in (make_test("q1", "q2"), {}, test):
        dataset = Dataset(TASK, [], {"dev": dev}, other)
        if other and other != test:
            with refuses(DataError, "answers-mismatch"):
                make_ensemble([run], dataset, tmp_path / "out", selects=True)
        else:  # a test file may be left out
            make_ensemble([run], dataset, tmp_path / "out", selects=True)
    assert len(read_predictions(predictions_file(tmp_path / "out", "test"))) == 2


def test_ranking_wants_the_test_file_that_was_answered(tmp_path: Path) -> None:
    task = Classification("qnli", ("entailment", "not_entailment"))
    dev, test = [TextExample("0", "text", "b", "entailment")], make_test("q1", "q1")
    run = make_run(tmp_path / "run", task, [[0.9, 0.1]], dev, test)
    make_ensemble([run], Dataset(task, [], {"dev": dev}, test), tmp_path / "both", selects=True)

    def write_test(*questions: str) -> Path:
        rows = "".join(f"{n}\t{question}\ta sentence\n" for n, question in enumerate(questions))
        (tmp_path / "QNLI").mkdir(exist_ok=True)
        (tmp_path / "QNLI" / "test.tsv").write_text(f"index\tquestion\tsentence\n{rows}")
        return tmp_path

    for folder in (run, tmp_path / "both"):
        assert gather_sheets([folder], ranked_by=write_test("q1", "q1"))["QNLI"].count("\tentailment") == 1
        for other in (["q1", "q2"], ["q1"]):
            with refuses(DataError, "answers-mismatch"):
                gather_sheets([folder], ranked_by=write_test(*other))


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
        ("STS-B", lambda text: text.replace("\n7\t", "\n7\t9"), "'93.944' is not a number"),
        ("MRPC", lambda text: text.replace("\n5\t", "\n6\t", 1), "index is '6', expected 5"),
        ("SST-2", lambda text: text.replace("\n5\t", "\n5 ", 1), "expected 2 cells, got 1"),
    ],
)
def test_what_the_leaderboard_rejects_is_reported(
    name: str, change: object, problem: str, sheets: dict[str, str], tmp_path: Path
) -> None:
    changed = change(sheets[name])  # type: ignore[operator]
    assert changed != sheets[name]
    write_zip(tmp_path / "s.zip", sheets | {name: changed})
    problems = check_zip(tmp_path / "s.zip")
    assert len(problems) == 1
    assert problems[0].startswith(f"{name}.tsv: ")
    assert problem in problems[0]


def test_a_damaged_zip_is_refused(sheets: dict[str, str], tmp_path: Path) -> None:
    write_zip(tmp_path / "s.zip", sheets)
    data = bytearray((tmp_path / "s.zip").read_bytes())
    data[60:2000] = b"x" * 1940  # inside the first table
    (tmp_path / "s.zip").write_bytes(data)
    with refuses(DataError, "corrupt-file"):
        check_zip(tmp_path / "s.zip")


def test_two_answers_of_one_id_are_no_sheet() -> None:
    with refuses(DataError, "duplicate-id"):
        to_sheet([Prediction("1", "a", None), Prediction("1", "b", None)])


def test_missing_and_unknown_tables_are_reported(sheets: dict[str, str], tmp_path: Path) -> None:
    rest = {name: text for name, text in sheets.items() if name != "AX"}
    write_zip(tmp_path / "s.zip", rest | {"glue/AX": sheets["AX"]})
    assert check_zip(tmp_path / "s.zip") == [
        "AX.tsv is missing",
        "glue/AX.tsv is not a GLUE table (tables must be at the top level of the zip)",
    ]


def test_of_rows_with_one_question_the_likeliest_wins() -> None:
    rows = [Prediction(str(n), "not_entailment", [p, 1 - p]) for n, p in enumerate([0.1, 0.3, 0.2, 0.9])]
    examples = [TextExample(str(n), text, "sentence") for n, text in enumerate(["q1", "q1", "q2", "q2"])]
    ranked = rank_rivals(rows, examples, RANKED["qnli"])
    assert [one.answer for one in ranked] == ["not_entailment", "entailment", "not_entailment", "entailment"]


def test_a_row_without_a_rival_keeps_its_own_answer() -> None:
    rows = [Prediction("0", "not_entailment", [0.3, 0.7]), Prediction("1", "entailment", [0.8, 0.2])]
    examples = [TextExample("0", "q1", "a"), TextExample("1", "q2", "b")]
    assert rank_rivals(rows, examples, RANKED["qnli"]) == rows


def test_sentences_about_another_pronoun_are_no_rivals() -> None:
    sentence = "Mark saw Blaze, because he was tired and he was cold."
    seconds = [
        "Mark was tired.",
        "Blaze was tired.",
        "He was cold like Mark is, they say.",
        "He was cold like Blaze is.",
    ]
    examples = [TextExample(str(n), sentence, second) for n, second in enumerate(seconds)]
    assert group_rivals(examples, RANKED["wnli"].are_rivals) == [[0, 1], [2, 3]]


def test_labelled_rivals_have_one_right_row_each(real_data: Path) -> None:
    """The tricks' assumption, where it can be checked: of rivals with known labels exactly one is positive."""
    counts = {}
    for task, split in (("qnli", "dev"), ("wnli", "train")):
        dataset = read_dataset(task, real_data / "glue")
        examples = [*dataset.train, *dataset.dev["dev"]] if split == "train" else dataset.dev["dev"]
        groups = [group for group in group_rivals(examples, RANKED[task].are_rivals) if len(group) > 1]
        right = [sum(examples[n].label == RANKED[task].positive for n in group) for group in groups]
        counts[task] = (len(groups), sum(number == 1 for number in right))
    assert counts["qnli"] == (1362, 1362)
    assert counts["wnli"][1] >= 0.98 * counts["wnli"][0] > 250  # a few sentences say the same of two pronouns


def test_two_runs_of_one_task_cannot_be_submitted(tmp_path: Path) -> None:
    for name in "ab":
        write_report(tmp_path / name, {"task": "cola", "metric": "matthews", "facts": {}, "dev": {}, "test": {}})
    with refuses(ConfigError, "repeated-value"):
        gather_sheets([tmp_path / "a", tmp_path / "b"])
