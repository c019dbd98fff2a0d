"""Which columns are text and label: no column is two things, what is named is meant, and what is guessed is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions

QUESTIONS = "question,answer,other\nis it?,yes,a\nwas it?,no,b\n"
PAIRS = "sentence1,sentence2,label\na cat,a dog,1\na tree,a river,0\n"


def read_first(folder: Path, table: str, **options: Any) -> tuple[str, str | None, str]:
    """Text, second text and label of the first row; the guess must be told."""
    (folder / "rows.csv").write_text(table)
    dataset = read_dataset("classification", folder / "rows.csv", TableOptions(dev_share=0.0, **options))
    assert dataset.notes[0].startswith("columns of rows.csv: text = '")
    example = dataset.train[0]
    return example.text, example.text_b, example.label


@pytest.mark.parametrize(
    ("table", "options", "first"),
    [
        (QUESTIONS, {"text": "question", "label": "answer"}, ("is it?", None, "yes")),
        (QUESTIONS, {"label": "answer"}, ("is it?", None, "yes")),
        (PAIRS, {}, ("a cat", "a dog", "1")),
        (PAIRS, {"label": "label"}, ("a cat", "a dog", "1")),
        (PAIRS, {"text": "sentence1"}, ("a cat", None, "1")),
        (PAIRS, {"text": "sentence2", "label": "label"}, ("a dog", None, "1")),
        (PAIRS, {"text": "sentence1", "label": "label"}, ("a cat", None, "1")),
        (PAIRS, {"text": "sentence2", "text_b": "sentence1"}, ("a dog", "a cat", "1")),
        (PAIRS, {"text_b": "sentence1"}, ("a dog", "a cat", "1")),
        ("question,answer\nis it?,yes\nwas it?,no\n", {}, ("is it?", None, "yes")),
        (QUESTIONS, {}, None),
    ],
)
def test_a_column_is_one_thing_and_a_text_that_is_named_alone_stands_alone(
    table: str, options: dict[str, str], first: tuple[str, str | None, str] | None, tmp_path: Path
) -> None:
    if first is None:  # too little to guess from
        with refuses(DataError, "ambiguous-column", at="rows.csv"):
            read_first(tmp_path, table, **options)
    else:
        assert read_first(tmp_path, table, **options) == first


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "repeated-value", at="rows.csv"):
        read_first(tmp_path, PAIRS, text="sentence1", text_b="sentence1")


def test_columns_that_were_named_are_shown_too(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(PAIRS)
    options = TableOptions(dev_share=0.0, text="sentence1", label="label")
    notes = read_dataset("classification", tmp_path / "rows.csv", options).notes
    assert notes[0] == "columns of rows.csv: text = 'sentence1', label = 'label'"


@pytest.mark.parametrize(
    ("test", "label", "note"),
    [
        ("review,stars\nfine,2\n", "2", None),  # no usual name: training found it as the column that was left
        ("stars,review,when\n2,fine,today\n", "2", None),
        ("review\nfine\n", None, "columns of test.csv: text = 'review'; no label"),
        ("review,stars\nfine,\n", None, "columns of test.csv: text = 'review'; no label"),
        ("review,score\nfine,2\n", None, "columns of test.csv: text = 'review'; no label"),
        ("Stars,Review\n2,fine\n", "2", "columns of test.csv: text = 'Review', label = 'Stars'"),
    ],
)
def test_a_test_file_has_the_columns_of_the_training_file(
    test: str, label: str | None, note: str | None, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("review,stars\nx,1\ny,2\n")
    (tmp_path / "dev.csv").write_text("review,when,stars\nx,today,1\n")
    (tmp_path / "test.csv").write_text(test)
    dataset = read_dataset("classification", tmp_path, TableOptions())
    assert [(example.text, example.label) for example in dataset.test["test"]] == [("fine", label)]
    assert [(example.text, example.label) for example in dataset.dev["dev"]] == [("x", "1")]
    told = [one for one in dataset.notes if one.startswith("columns of")]
    assert told == ["columns of train.csv: text = 'review', label = 'stars'", *([note] if note else [])]


@pytest.mark.parametrize(
    ("test", "code"),
    [
        ("text,stars\nfine,2\n", "columns-mismatch"),
        ("question,answer\nfine,2\n", "columns-mismatch"),
    ],
)
def test_a_test_file_with_other_names_is_refused(test: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("review,stars\nx,1\ny,2\n")
    (tmp_path / "test.csv").write_text(test)
    with refuses(DataError, code):
        read_dataset("classification", tmp_path, TableOptions(dev_share=0.5))


@pytest.mark.parametrize(
    ("rows", "has_header", "names"),
    [
        ("text\tlabel\nx\t1\ny\t0\n", None, "text, label"),
        ("label\tx\nlabel\ty\nother\tz\nother\tw\n", None, None),  # a label may be called so
        ("utterance\tintent\na\tgreet\nb\tleave\nc\tgreet\nd\tleave\n", None, "utterance, intent"),
        ("utterance\tstars\na\t1\nb\t2\n", None, "utterance, stars"),
        ("good\tpos\nbad\tneg\nfine\tpos\n", None, None),
        ("good\trare\nbad\tneg\nfine\tpos\n", None, None),
        ("good\trare\nbad\tneg\nworse\tneg\nfine\tpos\nbest\tpos\n", False, None),
        ("good\tpos\nbad\tneg\nfine\tpos\nawful\tneg\n", True, "good, pos"),
    ],
)
def test_a_row_of_names_is_no_data_though_columns_are_given_by_number(
    rows: str, has_header: bool | None, names: str | None, tmp_path: Path
) -> None:
    (tmp_path / "rows.tsv").write_text(rows)
    options = TableOptions(dev_share=0.0, text="1", label="2", has_header=has_header)
    dataset = read_dataset("classification", tmp_path / "rows.tsv", options)
    assert len(dataset.train) == rows.count("\n") - (names is not None)
    told = [note for note in dataset.notes if "used as the header" in note]
    assert told == ([] if names is None or has_header else [f"rows.tsv: the first row is used as the header: {names}"])


def test_numbers_count_the_columns_of_training_and_other_files_are_matched_by_name(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\nx,1\ny,0\n")
    (tmp_path / "dev.csv").write_text("id,label,text\n7,1,z\n8,0,w\n")
    dataset = read_dataset("classification", tmp_path, TableOptions(text="1", label="2"))
    assert [(one.text, one.label) for one in dataset.dev["dev"]] == [("z", "1"), ("w", "0")]


def test_a_test_file_without_names_and_known_labels_has_other_columns(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("x,good\ny,bad\n")
    options = TableOptions(dev_share=0.0, text="1", label="2")
    (tmp_path / "test.csv").write_text("0,a fine film\n1,a poor film\n")
    with refuses(DataError, "columns-mismatch", at="test.csv"):
        read_dataset("classification", tmp_path, options)
    (tmp_path / "test.csv").write_text("a fine film,good\na poor film,unknown\n")
    assert read_dataset("classification", tmp_path, options).test["test"][0].text == "a fine film"


def test_without_names_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("x\tpos\ny\tneg\n")
    options = TableOptions(dev_share=0.0, text="1", label="2")
    (tmp_path / "test.tsv").write_text("z\nw\n")  # it lacks the label, which is last
    assert [one.text for one in read_dataset("classification", tmp_path, options).test["test"]] == ["z", "w"]
    (tmp_path / "test.tsv").write_text("7\tz\tpos\n8\tw\tneg\n")
    with refuses(DataError, "columns-mismatch", at="test.tsv"):
        read_dataset("classification", tmp_path, options)


def test_the_first_row_of_each_split_is_shown_as_it_was_understood(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('sentence1,sentence2,label\n"a ""cat""\nhere",b,1\nc,d,0\n')
    (tmp_path / "dev.csv").write_text(f"sentence1,sentence2,label\n{'long ' * 20},b,1\nc,d,0\n")
    (tmp_path / "test.csv").write_text("sentence1,sentence2\ne,f\n")
    notes = read_dataset("classification", tmp_path).notes
    assert [note for note in notes if note.startswith("first row")] == [
        r'first row of train: text = "a \"cat\"\nhere", second text = "b", label = "1"',
        f'first row of dev: text = "{"long " * 12}...", second text = "b", label = "1"',
        'first row of test: text = "e", second text = "f", no label',
    ]


def test_a_row_of_the_training_files_names_is_no_data_in_a_test_file_without_labels(tmp_path: Path) -> None:
    rows = "".join(f"Satz {number},{'ja' if number % 2 else 'nein'}\n" for number in range(20))
    (tmp_path / "train.csv").write_text(f"Satz,Urteil\n{rows}")
    (tmp_path / "test.csv").write_text("Satz,Urteil\nneu,\n")
    dataset = read_dataset("classification", tmp_path, TableOptions(text="1", label="2"))
    assert [(one.text, one.label) for one in dataset.test["test"]] == [("neu", None)]


@pytest.mark.parametrize("name", ["id", "ID", "Id", "idx", "index", "", "Unnamed: 0"])
def test_a_column_of_ids_is_no_text_whatever_its_case(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{name},tweet,label\n7,so it is,x\n8,so it is not,y\n")
    dataset = read_dataset("classification", path, TableOptions(dev_share=0.0))
    assert [(one.text, one.label) for one in dataset.train] == [("so it is", "x"), ("so it is not", "y")]


@pytest.mark.parametrize(
    "value",
    [{"data": [{"text": "a", "label": "x"}]}, {"train": [["a", "x"]]}, {"text": {"0": "a"}, "label": {"0": "x"}}],
)
def test_rows_inside_one_json_object_are_refused_with_the_reason(value: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    with refuses(DataError, "bad-layout", at="a.json"):
        read_dataset("classification", path, TableOptions(dev_share=0.0))
