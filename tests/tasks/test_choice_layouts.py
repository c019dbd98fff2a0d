"""Multiple choice as known data sets lay it out becomes one form; a list of lines is one text."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.kinds.choices import ChoiceExample

CHOICES = ("an oven", "a kettle")
NAMED = [{"label": "A", "text": "an oven"}, {"label": "B", "text": "a kettle"}]
LAYOUTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "HellaSwag": ({"ind": 4, "ctx": "Ada boils water in", "endings": CHOICES, "label": "1"}, "Ada boils water in", ""),
    "ARC": ({"id": "x", "question": {"stem": "What boils?", "choices": NAMED}, "answerKey": "B"}, "", "What boils?"),
    "ARC of datasets": (
        {"question": "What boils?", "choices": {"text": CHOICES, "label": ["1", "2"]}, "answerKey": "2"},
        "",
        "What boils?",
    ),
    "CommonsenseQA": (
        {"answerKey": "B", "question": {"question_concept": "boil", "choices": NAMED, "stem": "What boils?"}},
        "",
        "What boils?",
    ),
    "PIQA": ({"goal": "Boil water", "sol1": "an oven", "sol2": "a kettle", "label": 1}, "", "Boil water"),
    "COPA": (
        {"premise": "It boiled.", "choice1": "an oven", "choice2": "a kettle", "question": "cause", "label": 1},
        "It boiled.",
        "What was the cause of this?",
    ),
    "SWAG": (
        {"sent1": "Ada is thirsty.", "sent2": "She takes", "ending0": "an oven", "ending1": "a kettle", "label": "1"},
        "Ada is thirsty.",
        "She takes",
    ),
    "OpenBookQA": (
        {"question_stem": "What boils?", "choices": {"text": CHOICES, "label": ["A", "B"]}, "answerKey": "B"},
        "",
        "What boils?",
    ),
    "WinoGrande": (
        {"sentence": "Ada boils water in _.", "option1": "an oven", "option2": "a kettle", "answer": "2"},
        "Ada boils water in _.",
        "",
    ),
    "label as the name of a field": (
        {"question": "What boils?", "option_a": "an oven", "option_b": "a kettle", "answer": "option_b"},
        "",
        "What boils?",
    ),
    "MedQA": (
        {"question": "What boils?", "options": dict(zip("AB", CHOICES, strict=True)), "answer": "B"},
        "",
        "What boils?",
    ),
    "DREAM of datasets": (
        {"dialogue": ["M: Tea?", "W: Yes."], "question": "What boils?", "choice": CHOICES, "answer": "a kettle"},
        "M: Tea?\nW: Yes.",
        "What boils?",
    ),
}


def read(path: Path, *rows: Any, **options: Any) -> list[ChoiceExample]:
    path.write_text("\n".join(map(json.dumps, rows)))
    return list(read_dataset("choice", path, TableOptions(dev_share=0.0, **options)).train)


@pytest.mark.parametrize(("row", "context", "question"), LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_becomes_the_same_question(
    row: dict[str, Any], context: str, question: str, tmp_path: Path
) -> None:
    [example] = read(tmp_path / "train.jsonl", row)
    assert (example.context, example.question, example.choices, example.label) == (context, question, CHOICES, 1)


SIQA = {"context": "Ada boils water.", "question": "Why?", "answerA": "tea", "answerB": "fun", "answerC": "fear"}


def test_siqa_counts_from_one_wherever_its_labels_are(tmp_path: Path) -> None:
    assert [one.label for one in read(tmp_path / "a.jsonl", SIQA | {"label": "3"}, SIQA | {"label": "1"})] == [2, 0]
    (tmp_path / "b-labels.lst").write_text("2\n3\n")
    assert [one.label for one in read(tmp_path / "b.jsonl", SIQA, SIQA)] == [1, 2]
    (tmp_path / "c-labels.lst").write_text("2\n")
    with refuses(DataError, "row-count-mismatch", at="c-labels.lst"):
        read(tmp_path / "c.jsonl", SIQA, SIQA)


def test_dream_has_several_questions_about_a_dialogue(tmp_path: Path) -> None:
    questions = [{"question": "What?", "choice": ["tea", "ink"], "answer": answer} for answer in ("tea", "ink")]
    (tmp_path / "train.json").write_text(json.dumps([[["M: Tea?", "W: Yes."], questions, "5-510"]], indent=1))
    dataset = read_dataset("choice", tmp_path / "train.json", TableOptions(dev_share=0.0))
    assert [(one.id, one.context, one.label) for one in dataset.train] == [
        ("5-510-0", "M: Tea?\nW: Yes.", 0),
        ("5-510-1", "M: Tea?\nW: Yes.", 1),
    ]


def test_the_choices_can_be_named(tmp_path: Path) -> None:
    row = {"question": "What?", "first": "tea", "second": "ink", "label": 1, "possible": ["x", "y", "z"]}
    assert read(tmp_path / "a.jsonl", row, choices="first, second")[0].choices == ("tea", "ink")
    assert read(tmp_path / "a.jsonl", row, choices="possible")[0].choices == ("x", "y", "z")
    with refuses(DataError, "unknown-column", at="a.jsonl:1"):
        read(tmp_path / "a.jsonl", row, choices="third")
    with refuses(DataError, "unknown-column", at="a.jsonl:1"):
        read(tmp_path / "a.jsonl", row)


def test_choices_are_read_from_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,option_a,option_b,answer\nWhat?,tea,ink,B\n")
    (tmp_path / "b.csv").write_text("question,choices,answer\nWhat?,\"['tea', 'ink']\",1\n")
    for name in ("a.csv", "b.csv"):
        [example] = read_dataset("choice", tmp_path / name, TableOptions(dev_share=0.0)).train
        assert (example.choices, example.label) == (("tea", "ink"), 1)


@pytest.mark.parametrize("lines", ["['M: Tea?', 'W: Yes.']", '["M: Tea?", "W: Yes."]', "['M: Tea?' 'W: Yes.']"])
def test_lines_that_were_written_into_a_cell_are_one_text(lines: str, tmp_path: Path) -> None:
    cell = lines.replace('"', '""')
    path = tmp_path / "train.csv"
    path.write_text(f"dialogue,question,choices,answer\n\"{cell}\",\"['no', 'list', 1]\",\"['a', 'b']\",b\n")
    [example] = read_dataset("choice", path, TableOptions(dev_share=0.0)).train
    assert (example.context, example.question) == ("M: Tea?\nW: Yes.", "['no', 'list', 1]")


@pytest.mark.parametrize("passage", [[{"speaker": "M", "text": "Tea?"}], "[{'text': 'Tea?'}]", {"text": "Tea?"}])
def test_a_passage_of_objects_is_refused(passage: Any, tmp_path: Path) -> None:
    row = {"context": passage, "question": "What?", "choices": ["tea", "milk"], "label": 0}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with refuses(DataError, "wrong-input", at="rows.jsonl:1"):
        read_dataset("choice", tmp_path / "rows.jsonl", TableOptions(dev_share=0.0))


def test_a_number_that_is_anothers_text_is_refused(tmp_path: Path) -> None:
    row = {"question": "How many?", "choices": ["1", "0"], "label": "1"}
    with refuses(DataError, "ambiguous-label"):
        read(tmp_path / "a.jsonl", row)


def test_winogrande_counts_from_one(tmp_path: Path) -> None:
    row = {"sentence": "Ada boils water in _.", "option1": "an oven", "option2": "a kettle", "answer": "1"}
    assert read(tmp_path / "a.jsonl", row)[0].label == 0
