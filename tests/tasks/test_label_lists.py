"""Several labels for a row, as people's files have them: lists, printed lists, cells with marks, columns of 0 and 1."""

import json
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.list_cells import parse_list
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset

NO_SPLIT = TableOptions(dev_share=0.0)
# as in Jigsaw's toxic comments
COMMENTS = """id,comment_text,toxic,obscene,threat
a1,"you, sir, are fine",0,0,0
a2,awful person,1,0,0
a3,really awful,1,1,0
"""


def read(path: Path, text: str, options: TableOptions = NO_SPLIT, task: str = "multi-label") -> Dataset:
    path.write_text(text)
    return read_dataset(task, path, options)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("['a', 'b c']", ["a", "b c"]),
        ('["a", "it\'s"]', ["a", "it's"]),
        ("['a' 'b']", ["a", "b"]),  # numpy's, which Python would read as ['ab']
        ("['a'\n 'b']", ["a", "b"]),
        ("[0 3 12]", [0, 3, 12]),
        ("[1, 2]", [1, 2]),
        ("('a', 'b')", ["a", "b"]),
        ("{'b', 'a'}", ["a", "b"]),
        ("[]", []),
        ("set()", []),
        (["a"], ["a"]),
        ("[spam]", None),
        ('{"a": 1}', None),
        ("(none)", None),
        ("text", None),
        (None, None),
        ("[" * 10_000 + "]" * 10_000, None),
    ],
)
def test_a_cell_that_describes_a_list_is_one(cell: object, value: list[object] | None) -> None:
    assert parse_list(cell) == value


@pytest.mark.parametrize(
    "cells",
    [
        ["['red', 'blue']", "[]", "['red']"],
        ['["red", "blue"]', "[]", '["red"]'],
        ["['red' 'blue']", "[]", "['red']"],
        ["[red, blue]", "", "[red]"],
        ["('red', 'blue')", "", "red"],
        ["('red', 'blue')", "set()", "{'red'}"],
        ["red|blue", "", "red"],
    ],
)
def test_labels_in_one_cell_are_never_brackets_and_quotes(cells: list[str], tmp_path: Path) -> None:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    dataset = read(tmp_path / "rows.csv", "text,labels\n" + "".join(f"x{n},{cell}\n" for n, cell in enumerate(quoted)))
    assert [example.label for example in dataset.train] == [("red", "blue"), (), ("red",)]
    assert dataset.task.labels == ("blue", "red")  # type: ignore[attr-defined]


def test_a_column_of_lists_is_no_text(tmp_path: Path) -> None:
    rows = "text,label\n\"['a', 'b']\",x\n\"['c']\",y\n"
    with refuses(DataError, "wrong-input", at="rows.csv:2"):
        read(tmp_path / "rows.csv", rows, task="classification")
    assert read(tmp_path / "rows.csv", rows + "plain,x\n", task="classification").train[0].text == "['a', 'b']"


def test_one_column_of_zero_and_one_is_not_two_labels(tmp_path: Path) -> None:
    with refuses(DataError, "bad-label", at="rows.csv"):
        read(tmp_path / "rows.csv", "text,toxic\na,1\nb,0\nc,0\n")
    options = TableOptions(dev_share=0.0, label="colors")
    assert read(tmp_path / "rows.csv", "text,colors,edited\na,red|blue,1\nb,red,0\n", options).train[0].label
    assert read(tmp_path / "rows.csv", "text,labels\na,0|1\nb,0\nc,1\n").task.labels == ("0", "1")  # type: ignore[attr-defined]


def test_one_label_that_some_texts_have_is_a_classification(tmp_path: Path) -> None:
    with refuses(DataError, "one-label", at="'red' is the only label"):
        read(tmp_path / "rows.csv", "text,labels\na,red\nb,\nc,red\n")


def test_a_list_is_no_class(tmp_path: Path) -> None:
    with refuses(DataError, "bad-label", at="rows.csv:2"):
        read(tmp_path / "rows.csv", "text,label\nx,\"['a', 'b']\"\n", task="classification")


def test_columns_of_zero_and_one_are_a_label_each(tmp_path: Path) -> None:
    dataset = read(tmp_path / "rows.csv", COMMENTS)
    assert [example.label for example in dataset.train] == [(), ("toxic",), ("toxic", "obscene")]
    assert [example.id for example in dataset.train] == ["a1", "a2", "a3"]
    assert dataset.task.labels == ("toxic", "obscene", "threat")  # type: ignore[attr-defined]
    assert 'first row of train: text = "you, sir, are fine", label = []' in dataset.notes
    assert "3 columns of 0 and 1 are used as labels: toxic, obscene, threat" in dataset.notes


def test_columns_of_labels_can_be_named(tmp_path: Path) -> None:
    options = TableOptions(dev_share=0.0, text="comment_text", label="toxic, threat")
    dataset = read(tmp_path / "rows.csv", COMMENTS, options)
    assert [example.label for example in dataset.train] == [(), ("toxic",), ("toxic",)]
    with refuses(DataError, "unknown-column", at="rows.csv"):
        read(tmp_path / "rows.csv", COMMENTS, TableOptions(dev_share=0.0, label="toxic,rude"))


@pytest.mark.parametrize(
    ("test", "label"),
    [
        ("id,comment_text\nb1,x\n", None),
        ("id,comment_text,toxic,obscene,threat\nb1,x,1,0,1\n", ("toxic", "threat")),
        ("id,comment_text,toxic,obscene,threat\nb1,x,-1,-1,-1\n", None),  # as Jigsaw marks rows that are not scored
    ],
)
def test_a_test_file_may_lack_the_columns_of_labels(test: str, label: tuple[str, ...] | None, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text(test)
    options = TableOptions(dev_share=0.0, test=tmp_path / "test.csv")
    dataset = read(tmp_path / "train.csv", COMMENTS, options)
    assert [example.label for example in dataset.test["test"]] == [label]


def test_a_cell_that_is_neither_zero_nor_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("id,comment_text,toxic,obscene,threat\nb1,x,1,2,1\n")
    with refuses(DataError, "bad-label", at="dev.csv:2"):
        read(tmp_path / "train.csv", COMMENTS, TableOptions(dev=tmp_path / "dev.csv"))


FASTTEXT = "__label__baking __label__bread how do I knead\n\n__label__tea which, if any, kettle?\n"


def test_fasttext_lines_are_labels_and_text(tmp_path: Path) -> None:
    dataset = read(tmp_path / "train.txt", FASTTEXT)
    assert [(example.text, example.label) for example in dataset.train] == [
        ("how do I knead", ("baking", "bread")),
        ("which, if any, kettle?", ("tea",)),
    ]
    assert dataset.train[1].where.endswith("train.txt:3")
    single = read(tmp_path / "b.txt", "__label__a x y\n__label__b\tz\n", task="classification")
    assert [(example.text, example.label) for example in single.train] == [("x y", "a"), ("z", "b")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("__label__a x\ny\n", "missing-label"),
        ("__label__a x\n__label__b\n", "empty-cell"),
        ("__label__a __label__b x\n", "bad-label"),
    ],
)
def test_a_fasttext_line_without_label_or_text_is_named(text: str, code: str, tmp_path: Path) -> None:
    with refuses(DataError, code):
        read(tmp_path / "t.txt", text, task="classification")


def test_more_labels_than_usual_are_read_on_request(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": "x", "label": f"c{number}"}) + "\n" for number in range(501))
    with refuses(DataError, "too-many-labels"):
        read(tmp_path / "rows.jsonl", rows, task="classification")
    dataset = read(tmp_path / "rows.jsonl", rows, TableOptions(dev_share=0.0, max_labels=501), "classification")
    assert len(dataset.task.labels) == 501  # type: ignore[attr-defined]
