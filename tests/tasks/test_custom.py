"""A user's own files: read in every format, columns and labels found and shown, slips named with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset

ROWS = [("good, really", "yes"), ('he said "no"', "no"), ("很好。", "yes"), ("two\nlines", "no")]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def as_csv(rows: list[tuple[str, str]], separator: str = ",") -> str:
    cells = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in [("text", "label"), *rows]]
    return "\r\n".join(separator.join(row) for row in cells)


def as_json_lines(rows: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


def read_file(path: Path, **options: Any) -> Dataset:
    return read_dataset("classification", path, TableOptions(dev_share=0.0, **options))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv", as_csv(ROWS)), ("rows.csv", as_csv(ROWS, ";")), ("rows.jsonl", as_json_lines(ROWS))],
    ids=["comma", "semicolon", "json lines"],
)
def test_rows_are_the_same_in_every_format(name: str, text: str, encoding: str, tmp_path: Path) -> None:
    dataset = read_file(write(tmp_path / name, text, encoding))
    assert [(example.text, example.label) for example in dataset.train] == ROWS


def test_parquet_is_read_too(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    assert [(e.text, e.label) for e in read_file(tmp_path / "rows.parquet").train] == ROWS


def test_a_file_without_names_has_numbered_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv", "你好吗\t你好\t0\n再见\t明天见\t1\n")
    dataset = read_file(path, text="1", text_b="2", label="3")
    assert [(e.text, e.text_b, e.label) for e in dataset.train] == [("你好吗", "你好", "0"), ("再见", "明天见", "1")]


def test_columns_and_labels_that_were_found_are_shown(tmp_path: Path) -> None:
    dataset = read_file(write(tmp_path / "rows.csv", "Premise,Hypothesis,Class\na,b,10\nc,d,9\ne,f,9\n"))
    assert "text = 'Premise', second text = 'Hypothesis', label = 'Class'" in dataset.notes[0]
    assert dataset.notes[1] == "labels: 9 (2), 10 (1)"


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ("a,0.5\nb,1.25\nc,0\n", "to predict numbers, use the task regression"),
        ("a,Good\nb,good\nc,bad\n", "the labels 'Good' and 'good' differ only in case or spaces"),
        ("a,x\nA,y\nb,y\nb,y\n", "1 of 2 different training texts have more than one label"),
        ("a,1.0\nb,0.0\n", None),
        ("a,v1.2\nb,v1.3\n", None),
    ],
)
def test_suspicious_labels_are_reported(rows: str, note: str | None, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    told = read_dataset("classification", tmp_path / "rows.csv", TableOptions(dev_share=0.0)).notes[1:-1]
    others = [one for one in told if not one.startswith(("labels: ", "some labels are rare", "the loss weighs"))]
    assert len(others) == (note is not None), others
    assert note is None or note in others[0]


def test_without_a_dev_file_the_same_rows_are_always_held_out(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "text,label\n" + "".join(f"t{n},{n % 2}\n" for n in range(50)))
    first, second = (read_dataset("classification", path, TableOptions(dev_share=0.2)) for _ in range(2))
    assert first == second
    assert (len(first.train), len(first.dev["dev"])) == (40, 10)
    assert len({example.text for example in (*first.train, *first.dev["dev"])}) == 50
    assert any(note.startswith("no dev file: 10 of 50") for note in first.notes)


def test_several_labels_are_a_list_or_stand_in_one_cell(tmp_path: Path) -> None:
    csv = write(tmp_path / "a" / "train.csv", "text,labels\nx,red|blue\ny,\nz,red\n")
    lines = write(
        tmp_path / "b" / "train.jsonl",
        '{"text": "x", "labels": ["red", "blue"]}\n{"text": "y", "labels": []}\n{"text": "z", "labels": ["red"]}\n',
    )
    for path in (csv, lines):
        dataset = read_dataset("multi-label", path.parent, TableOptions(dev_share=0.0))
        assert [example.label for example in dataset.train] == [("red", "blue"), (), ("red",)]


def test_tags_are_read_from_columns_and_from_json_lines(tmp_path: Path) -> None:
    conll = write(
        tmp_path / "a" / "train.conll",
        "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n\nPeter NNP B-NP B-PER\n",
    )
    lines = write(
        tmp_path / "b" / "train.jsonl",
        '{"tokens": ["EU", "rejects"], "ner_tags": ["B-ORG", "O"]}\n{"tokens": ["Peter"], "ner_tags": ["B-PER"]}\n',
    )
    for path in (conll, lines):
        dataset = read_dataset("tags", path.parent, TableOptions(dev_share=0.0))
        assert [e.words for e in dataset.train] == [("EU", "rejects"), ("Peter",)]
        assert [e.label for e in dataset.train] == [("B-ORG", "O"), ("B-PER",)]
        assert dataset.task.labels == ("O", "B-ORG", "B-PER")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("task", "name", "text", "code"),
    [
        ("classification", "r.csv", "a,b,c\nx,y,1\n", "ambiguous-column"),
        ("classification", "r.csv", "text,u,v\nx,y,1\n", "ambiguous-column"),
        ("classification", "r.csv", "text,label\nx,1\n,2\n", "empty-cell"),
        ("classification", "r.csv", 'text,label\n"two\nlines",1\nx, \n', "empty-cell"),
        ("classification", "r.csv", "text,label\nx,1\ny,2,3\n", "ragged-row"),
        ("classification", "r.csv", "text,label\nx,1\n,\ny,2\n", "empty-cell"),
        ("classification", "r.csv", "text,label\nx,y,2\n", "ragged-row"),
        ("classification", "r.csv", "text;label\nx;y;2\n", "ragged-row"),
        ("classification", "r.csv", "text\tlabel\nx\ty\t2\n", "ragged-row"),
        ("classification", "r.csv", "text,label\nx\n", "ragged-row"),
        ("classification", "r.csv", "text;label\nx,2\n", "ragged-row"),
        ("classification", "r.tsv", "text\tlabel\nx\n", "ragged-row"),
        (
            "classification",
            "r.tsv",
            "text\tlabel\nx\ty\t2\n",
            "ragged-row",
        ),
        ("classification", "r.tsv", "text\tlabel\nx\t1\n\t\ny\t2\n", "empty-cell"),
        ("classification", "r.tsv", "good\tpos\nbad\tneg\n", "ambiguous-column"),
        ("classification", "r.xlsx", "PK", "unknown-file-type"),
        ("classification", "r.jsonl", '{"text": ["x"], "label": 1}\n', "wrong-input"),
        ("classification", "r.json", '[{"text": "x", "label": 1}, 2]', "bad-layout"),
        ("classification", "r.csv", 'text,label\n"open,1\n', "bad-csv"),
        ("classification", "r.csv", "text,label\nx,1\ny,1\n", "one-label"),
        ("classification", "r.csv", "text,text\nx,1\n", "duplicate-column"),
        ("classification", "r.csv", "", "empty-file"),
        ("classification", "r.jsonl", '{"text": "x", "label": 1}\n[1]\n', "bad-layout"),
        ("classification", "r.jsonl", '{"text": "x"\n', "bad-json"),
        ("classification", "r.jsonl", '{"text": "x", "label": 1}\n{"text": "y"}\n', "empty-cell"),
        (
            "regression",
            "r.csv",
            "text,score\nx,1.5\ny,high\n",
            "bad-number",
        ),
        ("regression", "r.csv", "text;score\nx;1.5\ny;-1,5\n", "bad-number"),
        ("regression", "r.csv", "text,score\nx,1.5\ny,nan\n", "bad-number"),
        ("regression", "r.csv", "text,score\nx,1\ny,-1e200\n", "value-overflow"),
        ("regression", "r.csv", "text,score\nx,0\ny,1e-200\n", "value-overflow"),
        ("regression", "r.csv", "text,score\nx,2\ny,2\n", "one-label"),
        (
            "multi-label",
            "r.jsonl",
            '{"text": "x", "label": ["a"]}\n{"text": "y", "label": ["b", null]}\n',
            "bad-label",
        ),
        ("tags", "r.conll", "EU B-ORG\nrejects\n", "missing-tag"),
        ("tags", "r.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n', "row-count-mismatch"),
        ("tags", "r.jsonl", '{"tokens": ["a"], "tags": [null]}\n', "row-count-mismatch"),
        ("tags", "r.jsonl", '{"tokens": [null], "tags": ["O"]}\n', "unknown-column"),
    ],
)
def test_a_slip_is_named_with_file_and_line(task: str, name: str, text: str, code: str, tmp_path: Path) -> None:
    with refuses(DataError, code):
        read_dataset(task, write(tmp_path / name, text), TableOptions(dev_share=0.0))


@pytest.mark.parametrize(
    ("task", "rows"),
    [
        ("classification", [{"text": "x", "label": "a"}, {"text": "y", "label": "b"}]),
        ("choice", [{"question": "q", "choices": ["a", "b"], "label": 0}] * 2),
        ("tags", [{"tokens": ["x"], "tags": ["O"]}, {"tokens": ["y"], "tags": ["B-X"]}]),
    ],
)
def test_a_row_whose_id_is_null_has_its_number_for_one(task: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    text = "\n".join(json.dumps({**row, "id": identity}) for row, identity in zip(rows, (7, None), strict=True))
    dataset = read_dataset(task, write(tmp_path / "r.jsonl", text), TableOptions(dev_share=0.0))
    assert [example.id for example in dataset.train] == ["7", "1"]


def test_a_declared_encoding_is_read_though_its_mark_begins_like_another(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "text,label\nok,1\n很好,2\n", "utf-32")
    assert path.read_bytes().startswith(b"\xff\xfe\0\0")
    assert [example.text for example in read_file(path, encoding="utf-32").train] == ["ok", "很好"]


def test_another_encoding_is_named_with_its_line_and_the_one_to_try(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "text,label\nok,1\n很好,2\n", "gb18030")
    with refuses(DataError, "bad-encoding", at="r.csv:3"):
        read_file(path)
    assert [example.text for example in read_file(path, encoding="gb18030").train] == ["ok", "很好"]


def test_a_label_that_only_dev_has_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "text,label\nx,1\ny,2\n")
    write(tmp_path / "dev.csv", "text,label\nx,1\ny,3\n")
    with refuses(DataError, "unknown-label", at="dev.csv:3"):
        read_dataset("classification", tmp_path)
    asked = TableOptions(dev_share=0.0, labels=("1", "2"), is_learned=False)
    with refuses(DataError, "unknown-label", at="dev.csv:3"):
        read_dataset("classification", tmp_path, asked)


def test_a_named_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "text,label\nx,1\ny,2\n")
    with refuses(DataError, "unknown-column"):
        read_file(path, text="txt")


def test_two_files_that_could_be_the_split_are_refused(tmp_path: Path) -> None:
    for name in ("train.csv", "train.tsv"):
        write(tmp_path / name, "text,label\nx,1\n")
    with refuses(DataError, "ambiguous-files", at="train.csv"):
        read_dataset("classification", tmp_path)


def test_chinese_files_are_read_with_their_true_rows(real_data: Path) -> None:
    dataset = read_dataset(
        "classification", real_data / "clue" / "AFQMC", TableOptions(text="1", text_b="2", label="3")
    )
    assert (len(dataset.train), len(dataset.dev["dev"]), len(dataset.test["test"])) == (34334, 4316, 3861)


def test_a_label_that_is_held_out_is_known_all_the_same(tmp_path: Path) -> None:
    rows = "".join(f"t{n},common{n % 2}\n" for n in range(20)) + "".join(f"r{n},rare{n}\n" for n in range(20))
    dataset = read_dataset("classification", write(tmp_path / "rows.csv", f"text,label\n{rows}"), TableOptions())
    assert any(example.label.startswith("rare") for example in dataset.dev["dev"])
    assert len(dataset.task.labels) == 22  # type: ignore[attr-defined]


def test_a_mark_that_separates_labels_leaves_commas_in_peace(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", 'text,labels\nx,red|blue\ny,"war, peace"\n')
    dataset = read_dataset("multi-label", path, TableOptions(dev_share=0.0))
    assert [example.label for example in dataset.train] == [("red", "blue"), ("war, peace",)]


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ("a,yes\nb,no\n", ["yes", "no"]),
        ("a,\nb,\n", [None, None]),
        ("a,-1\nb,-1\n", [None, None]),
        ("a,yes\nb,perhaps\n", [None, None]),  # told in a note
    ],
)
def test_labels_of_a_test_file_are_kept_if_all_are_known(rows: str, labels: list[str], tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", "text,label\nx,yes\ny,no\n")
    test = write(tmp_path / "other.csv", f"text,label\n{rows}")
    dataset = read_dataset("classification", train, TableOptions(dev_share=0.0, test=test))
    assert [example.label for example in dataset.test["test"]] == labels
    assert any("not scored" in note for note in dataset.notes) == ("perhaps" in rows)


@pytest.mark.parametrize(
    ("task", "known", "labels"),
    [
        ("classification", "yes", [None, None, None]),
        ("regression", "1.5", [None, None, None]),
        ("multi-label", "yes", [("yes",), (), ("yes",)]),  # no label at all is an answer there
        ("choice", "B", [None, None, None]),
    ],
)
@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_blank_label_in_a_test_file_leaves_it_answered_and_not_scored(
    task: str, known: str, labels: list[Any], blank: str | None, tmp_path: Path
) -> None:
    rest = {"text": "x", "question": "who", "choices": ["a", "b"]}
    other = {"regression": "0", "choice": "A"}.get(task, "no")
    rows = [{**rest, "label": label} for label in (known, other)]
    train = write(tmp_path / "train.jsonl", "\n".join(map(json.dumps, rows)))
    tested = [{**rest, "label": label} for label in (known, blank, known)]
    test = write(tmp_path / "other.jsonl", "\n".join(map(json.dumps, tested)))
    options = TableOptions(dev_share=0.0, test=test, text="text", label="label")
    dataset = read_dataset(task, train, options)
    assert [example.label for example in dataset.test["test"]] == labels
    reason = f"the test file is predicted but not scored: its labels are unusable ({test}:2 has no label)"
    assert (reason in dataset.notes) == (None in labels)


def test_numbers_of_a_dev_file_that_no_score_can_be_computed_of_are_refused_at_reading(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", "text,score\nx,1\ny,2\n")
    dev = write(tmp_path / "dev.csv", "text,score\nx,1\ny,1.5e308\nz,2\n")
    with refuses(DataError, "value-overflow", at="dev.csv:3"):
        read_dataset("regression", train, TableOptions(dev=dev))


def test_a_test_file_needs_no_label_column(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", "text,stars\nx,yes\ny,no\n")
    test = write(tmp_path / "other.csv", "text,when\nx,today\n")
    dataset = read_dataset("classification", train, TableOptions(dev_share=0.0, test=test, label="stars"))
    assert dataset.test["test"][0].label is None


def test_words_of_a_tagged_file_may_have_spaces_where_tabs_separate(tmp_path: Path) -> None:
    path = write(tmp_path / "t.conll", "New\u00a0York\tB-LOC\nhas\tO\n\n")
    (example,) = read_dataset("tags", path, TableOptions(dev_share=0.0)).train
    assert example.words == ("New\u00a0York", "has")


@pytest.mark.parametrize(
    ("text", "encoding", "advice"),
    [
        ("Être à l'aise", "latin-1", "cp1252"),
        ("很好的电影", "gb18030", "gb18030"),
        ("很好的电影", "utf-16-le", "utf-16-le"),
        ("很好的电影", "utf-16-be", "utf-16-be"),
    ],
)
def test_the_encoding_that_is_advised_reads_the_file(text: str, encoding: str, advice: str, tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", f"text,label\nplain,1\n{text},2\n", encoding)
    with refuses(DataError, "bad-encoding"):
        read_file(path)
    assert read_file(path, encoding=advice).train[1].text == text


@pytest.mark.parametrize("wrong", ["utf-8", "cp1252"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_characters_without_a_byte_order_mark_are_recognized_by_their_zeros(
    encoding: str, wrong: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "r.csv", "text,label\na cat,1\na dog,2\n", encoding)
    with refuses(DataError, "bad-encoding"):
        read_file(path, encoding=wrong)
    assert [example.text for example in read_file(path, encoding=encoding).train] == ["a cat", "a dog"]


def test_a_single_zero_is_a_letter_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "text,label\na \0cat,1\na dog,2\n")
    assert read_file(path).train[0].text == "a \0cat"


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("sst-2", {"text": "review"}),
        ("sst-2", {"dev": Path("dev.tsv")}),
        ("sts-b", {"is_balanced": True}),
        ("regression", {"is_balanced": True}),
        ("squad-v1", {"label": "answer"}),
        ("race", {"test": Path("test.txt")}),
    ],
)
def test_words_that_a_task_does_not_read_are_refused(task: str, options: dict[str, Any], tmp_path: Path) -> None:
    with refuses(ConfigError, "conflicting-options"):
        read_dataset(task, tmp_path, TableOptions(**options))


def test_a_folder_that_is_scored_needs_no_training_file(tmp_path: Path) -> None:
    write(tmp_path / "dev.csv", 'text,labels\nx,"war, peace"\n')
    known = TableOptions(dev_share=0.0, labels=("red", "war, peace"))
    dataset = read_dataset("multi-label", tmp_path, known)
    assert [example.label for example in dataset.dev["dev"]] == [("war, peace",)]
    write(tmp_path / "dev.csv", "text,labels\nx,1\ny,2\n")
    assert len(read_dataset("regression", tmp_path, TableOptions(dev_share=0.0)).dev["dev"]) == 2
    with refuses(DataError, "missing-file", at="train.csv"):
        read_dataset("multi-label", tmp_path, TableOptions())


def test_a_share_is_less_than_all() -> None:
    with refuses(ConfigError, "out-of-range"):
        TableOptions(dev_share=1.0)
