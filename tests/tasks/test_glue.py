"""GLUE's files give their true rows, whatever their quotes, marks and ragged lines."""

from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset

# rows of this copy: MRPC's train lacks one row of the published 3,668; QNLI's train, MNLI and QQP are not in it
ROWS = {
    "cola": (8551, 1043, 1063),
    "sst-2": (67349, 872, 1821),
    "mrpc": (3667, 408, 1725),
    "sts-b": (5749, 1500, 1379),
    "qnli": (0, 5463, 5463),
    "rte": (2490, 277, 3000),
    "wnli": (635, 71, 146),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_official_files_have_their_true_rows(name: str, real_data: Path) -> None:
    dataset = read_dataset(name, real_data / "glue")
    assert (len(dataset.train), len(dataset.dev["dev"]), len(dataset.test["test"])) == ROWS[name]
    assert all(example.label is not None for example in dataset.dev["dev"])
    assert all(example.label is None for example in dataset.test["test"])


def test_known_rows_are_read_as_they_are(real_data: Path) -> None:
    mrpc = read_dataset("mrpc", real_data / "glue").train[0]  # behind a byte order mark, with quotes inside
    assert (mrpc.label, mrpc.text[:7], '"' in mrpc.text) == ("1", "Amrozi ", True)
    assert read_dataset("sts-b", real_data / "glue").train[0].label == 5.0
    assert read_dataset("cola", real_data / "glue" / "CoLA").dev["dev"][0].text.startswith("The sailors rode")


def test_the_diagnostic_set_comes_with_mnli(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "MNLI").symlink_to(real_data / "pairs" / "MNLI")
    (tmp_path / "AX").symlink_to(real_data / "glue" / "AX")
    dataset = read_dataset("mnli", tmp_path)
    assert (len(dataset.train), len(dataset.dev["dev_matched"]), len(dataset.test["ax"])) == (8999, 1000, 1104)


@pytest.mark.parametrize("folder", ["diagnostic", "ax"])
def test_the_diagnostic_set_has_several_names(folder: str, tmp_path: Path) -> None:
    write(tmp_path / "MNLI", "train.jsonl", '{"premise": "a", "hypothesis": "b", "label": 2}\n')
    write(tmp_path / folder, "diagnostic.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")
    assert [example.text_b for example in read_dataset("mnli", tmp_path).test["ax"]] == ["b"]


def test_the_diagnostic_set_with_labels_is_scored(tmp_path: Path) -> None:
    header = "Lexical Semantics\tLogic\tDomain\tPremise\tHypothesis\tLabel\n"
    write(tmp_path, "diagnostic-full.tsv", f"{header}\tNegation\tNews\ta\tb\tneutral\n")
    (example,) = read_dataset("ax", tmp_path).dev["ax"]
    assert (example.text, example.text_b, example.label) == ("a", "b", "neutral")


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return folder


def test_a_few_ragged_lines_are_left_out_and_reported(tmp_path: Path) -> None:
    rows = "".join(f"{n}\t1\t2\tIs it {n}?\tIs it?\t{n % 2}\n" for n in range(30))
    folder = write(tmp_path / "QQP", "train.tsv", f"id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\nbroken\n{rows}")
    dataset = read_dataset("qqp", tmp_path)
    assert len(dataset.train) == 30
    assert f"{folder / 'train.tsv'}:2" in dataset.notes[0]


def test_numbers_of_the_datasets_library_are_labels(tmp_path: Path) -> None:
    lines = '{"premise": "a", "hypothesis": "b", "label": 2, "idx": 0}\n'
    write(tmp_path, "train.jsonl", lines)
    (example,) = read_dataset("mnli", tmp_path).train
    assert (example.label, example.text, example.text_b) == ("contradiction", "a", "b")


def test_a_character_that_ends_lines_elsewhere_does_not_end_a_row(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", 'sentence\tlabel\none\u2028line\x85 still \t1\nquote " here\t0\r\n')
    first, second = read_dataset("sst-2", tmp_path).train
    assert (first.text, second.text, second.label) == ("one\u2028line\x85 still ", 'quote " here', "0")


@pytest.mark.parametrize(
    ("name", "file", "text", "code"),
    [
        ("sst-2", "train.tsv", "sentence\tlabel\nfine\t7\n", "unknown-label"),
        ("sst-2", "dev.tsv", "index\tsentence\n0\tfine\n", "unknown-column"),
        ("sst-2", "train.jsonl", '{"sentence": "a", "label": 1}\n{"label": 0}\n', "empty-cell"),
        ("sst-2", "train.jsonl", '{"sentence": null, "label": 1}\n', "empty-cell"),
        ("sst-2", "train.jsonl", '{"sentence": "a", "label": -2}\n', "unknown-label"),
        ("sts-b", "dev.tsv", "sentence1\tsentence2\tscore\na\tb\t7\n", "bad-number"),
        # a test row left out would move the answers behind it
        ("sst-2", "test.tsv", "index\tsentence\n0\ta\n1\n2\tb\n", "ragged-row"),
        ("rte", "train.tsv", "a\tb\n" * 5, "unknown-column"),
        ("sts-b", "dev.tsv", "sentence1\tsentence2\tscore\na\tb\tmuch\n", "bad-number"),
        ("rte", "dev.jsonl", '{"sentence1": "a", "sentence2": "b", "label": -1}\n', "missing-label"),
        ("sst-2", "train.tsv", "sentence\tlabel\n" + "a\n" * 9 + "b\t1\n", "ragged-row"),
        ("cola", "nothing.tsv", "", "missing-file"),
    ],
)
def test_a_slip_is_named_with_its_place(name: str, file: str, text: str, code: str, tmp_path: Path) -> None:
    write(tmp_path, file, text)
    with refuses(DataError, code):
        read_dataset(name, tmp_path)
