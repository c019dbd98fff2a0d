"""Tagged files as they are found: comments above sentences are no words, a # among words is one, columns of tables are
named or told, and slips are named."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset

COMMENTS = {
    "of other columns": ("# id {n} domain=en\n", " ", ""),
    "of as many columns": ("# id {n} domain=en\n", " ", "_ _ "),
    "with tabs": ("# id {n}\tdomain=en\n", " ", "_ _ "),
    "above words with tabs": ("# {n}\n", "\t", ""),
    "of two lines": ("# sent_id = {n}\n# text = The cat\n", "\t", ""),
    "of a document": ("#begin document ({n}); part 000\n\n", " ", ""),
}


def read(path: Path, text: str, test: Path | None = None) -> Dataset:
    path.write_text(text)
    return read_dataset("tags", path, TableOptions(dev_share=0.0, test=test))


@pytest.mark.parametrize(("comment", "mark", "between"), COMMENTS.values(), ids=COMMENTS)
def test_comments_above_sentences_are_no_words(comment: str, mark: str, between: str, tmp_path: Path) -> None:
    sentences = ["The{m}{b}O\ncat{m}{b}B-X\n", "A{m}{b}O\ndog{m}{b}B-X\n#{m}{b}O\n"]
    text = "\n".join(
        comment.format(n=number) + sentence.format(m=mark, b=between) for number, sentence in enumerate(sentences)
    )
    dataset = read(tmp_path / "a.conll", text)
    assert [(example.words, example.label) for example in dataset.train] == [
        (("The", "cat"), ("O", "B-X")),
        (("A", "dog", "#"), ("O", "B-X", "O")),
    ]
    assert dataset.task.metric == "span_f1"
    count = 2 * comment.count("#")
    assert dataset.notes[0] == f"a.conll: skipped {count} comment lines (# above a sentence)"
    first = text.split("\n").index(f"The{mark}{between}O") + 1
    assert dataset.train[0].where == f"{tmp_path / 'a.conll'}:{first}"


@pytest.mark.parametrize(
    "text",
    ["# O\ncat B-X\n\n# O\n\n#cats B-X\nhere O\n", "# B-X\ncat I-X\n\n#cats B-X\nhere O\n\nand O\n"],
    ids=["known tags", "tags of its own, but not above every sentence"],
)
def test_a_mark_that_has_its_tag_is_a_word(text: str, tmp_path: Path) -> None:
    dataset = read(tmp_path / "a.conll", text)
    words = [(word, tag) for example in dataset.train for word, tag in zip(example.words, example.label, strict=True)]
    assert words == [tuple(line.split()) for line in text.splitlines() if line]


def test_words_without_tags_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "test.conll").write_text("#cats\nare\n\n#dogs\ntoo\n")
    dataset = read(tmp_path / "a.conll", "a O\ncat B-X\n", test=tmp_path / "test.conll")
    assert [example.words for example in dataset.test["test"]] == [("#cats", "are"), ("#dogs", "too")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a O\ncat NN B-X\n", "ragged-row"),
        ("a DT O\ncat NN B-X\n\na O\n", "ragged-row"),
        ("a O\n# in the middle\ncat B-X\n", "ragged-row"),
        ("# only\n# comments\n", "empty-file"),
    ],
)
def test_a_line_with_other_columns_is_named(text: str, code: str, tmp_path: Path) -> None:
    with refuses(DataError, code):
        read(tmp_path / "a.conll", text)


def write_table(path: Path, *names: str) -> Path:
    """A sentence of two words in a table, with as many columns of tags as there are names."""
    tags = {name: [f"{name}-1", f"{name}-2"] for name in names}
    path.write_text(json.dumps({"tokens": ["a", "cat"], "words": ["A", "CAT"]} | tags) + "\n")
    return path


@pytest.mark.parametrize(
    ("options", "words", "tags", "told"),
    [
        ({}, ("a", "cat"), "ner_tags", "text = 'tokens', label = 'ner_tags'"),
        ({"label": "pos_tags"}, ("a", "cat"), "pos_tags", "text = 'tokens', label = 'pos_tags'"),
        ({"text": "words", "label": "chunks"}, ("A", "CAT"), "chunks", "text = 'words', label = 'chunks'"),
    ],
)
def test_columns_of_words_and_tags_are_the_named_ones_and_reported(
    options: dict[str, Any], words: tuple[str, ...], tags: str, told: str, tmp_path: Path
) -> None:
    path = write_table(tmp_path / "t.jsonl", "pos_tags", "chunks", "ner_tags")
    dataset = read_dataset("tags", path, TableOptions(dev_share=0.0, **options))
    assert (dataset.train[0].words, dataset.train[0].label) == (words, (f"{tags}-1", f"{tags}-2"))
    assert dataset.notes[0] == f"columns of t.jsonl: {told}"


def test_tags_of_a_test_table_are_those_of_training_or_none(tmp_path: Path) -> None:
    train = write_table(tmp_path / "train.jsonl", "pos_tags")
    both, other = (
        write_table(tmp_path / "both.jsonl", "ner_tags", "pos_tags"),
        write_table(tmp_path / "x.jsonl", "tags"),
    )
    labels = [
        read_dataset("tags", train, TableOptions(dev_share=0.0, test=test)).test["test"][0].label
        for test in (both, other)
    ]
    assert labels == [("pos_tags-1", "pos_tags-2"), None]


def test_a_column_of_tags_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.jsonl", "pos_tags")
    with refuses(DataError, "unknown-column"):
        read_dataset("tags", path, TableOptions(label="ner"))


def test_columns_without_names_are_given_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("1 a DT O\n2 cat NN B-X\n")
    dataset = read_dataset("tags", tmp_path / "a.conll", TableOptions(dev_share=0.0, text="2", label="3"))
    assert (dataset.train[0].words, dataset.train[0].label) == (("a", "cat"), ("DT", "NN"))
    with refuses(DataError, "unknown-column", at="a.conll"):
        read_dataset("tags", tmp_path / "a.conll", TableOptions(label="pos"))


CONLLU = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tVBP\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tPRP\t_\t1\tobj\t_\t_
2.1\tya\tya\tADV\t_\t_\t_\t_\t_\t_
3\tmar\tmar\tNOUN\tNN\t_\t1\tobl\t_\t_
"""


@pytest.mark.parametrize(
    ("label", "tags"), [(None, ("VERB", "PRON", "NOUN")), ("XPOS", ("VBP", "PRP", "NN")), ("8", ("root", "obj", "obl"))]
)
def test_conllu_has_named_columns_and_words_that_are_not_counted(
    label: str | None, tags: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU)
    dataset = read_dataset("tags", tmp_path / "a.conllu", TableOptions(dev_share=0.0, label=label))
    assert (dataset.train[0].words, dataset.train[0].label) == (("vamos", "nos", "mar"), tags)


@pytest.mark.parametrize("mark", [" ", "\t"])
def test_a_word_may_have_a_no_break_space_in_it_or_be_an_ideographic_one(mark: str, tmp_path: Path) -> None:
    text = f"10\xa0000{mark}B-X\n\u3000{mark}O\nkm{mark}O\n"
    dataset = read(tmp_path / "a.conll", text)
    assert (dataset.train[0].words, dataset.train[0].label) == (("10\xa0000", "\u3000", "km"), ("B-X", "O", "O"))


def test_a_tag_that_only_dev_has_counts_as_wrong_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("a O\ncat B-X\n\nthe O\ndog B-X\n")
    (tmp_path / "dev.conll").write_text("a O\nbig B-Y\ncat B-X\n" + "the O\n" * 30)
    dataset = read_dataset("tags", tmp_path)
    assert dataset.task.labels == ("O", "B-X")  # type: ignore[attr-defined]
    assert dataset.dev["dev"][0].label[1] == "B-Y"
    told = f"dev: 1 of 33 tags do not occur in the training data ('B-Y', {tmp_path}/dev.conll:1) and count as wrong"
    assert told in dataset.notes
    (tmp_path / "dev.conll").write_text("a DT\ncat NN\n")
    with refuses(DataError, "unknown-label", at="dev.conll:1"):
        read_dataset("tags", tmp_path)


@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.tsv"])
@pytest.mark.parametrize("mark", [" ", "\t"])
def test_a_first_line_that_names_the_columns_is_no_word(name: str, mark: str, tmp_path: Path) -> None:
    lines = ["Word POS Tag", "Ada NNP B-P", "ran VBD O", "", "Bob NNP B-P", "", ""]
    path = tmp_path / name
    path.write_text("\n".join(line.replace(" ", mark) for line in lines))
    for label, tags in ((None, [("B-P", "O"), ("B-P",)]), ("pos", [("NNP", "VBD"), ("NNP",)])):
        dataset = read_dataset("tags", path, TableOptions(dev_share=0.0, label=label))
        assert [(one.words, one.label) for one in dataset.train] == list(
            zip([("Ada", "ran"), ("Bob",)], tags, strict=True)
        )
        assert f"{name}: the first row is used as the header: word, pos, tag" in dataset.notes
