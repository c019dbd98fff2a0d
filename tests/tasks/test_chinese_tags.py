"""CLUENER and MSRA are read from their files as distributed, and CLUENER is scored as its script does."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.tasks.catalog import find_kind, read_dataset, restore_task, task_facts
from litebert.tasks.files.chinese_tags import CLUENER_KINDS, tag_characters
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags, find_spans
from litebert.tasks.words import cut_text


def read(name: str, folder: Path, files: dict[str, str], **options: Any) -> Dataset:
    for file, text in files.items():
        (folder / file).write_text(text, "utf-8")
    return read_dataset(name, folder, TableOptions(**options))


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# a name that ends inside a Latin word, one with a space, one twice
MIXED = {
    "text": "iPhone8和Grand Theft在浙商，浙商",
    "label": {
        "company": {"浙商": [[20, 21], [23, 24]]},
        "game": {"Grand Theft": [[8, 18]]},
        "book": {"iPhone": [[0, 5]]},
    },
}


def test_names_of_cluener_are_tagged_by_characters(tmp_path: Path) -> None:
    text = "浙商银行企业信贷部叶老桂博士"
    row = {"text": text, "label": {"name": {"叶老桂": [[9, 11]]}, "company": {"浙商银行": [[0, 3]]}}}
    files = {"train.json": lines(row, MIXED), "dev.json": lines(row), "test.json": lines({"id": 0, "text": text})}
    (tmp_path / "cluener_public").mkdir()
    dataset = read("cluener", tmp_path, {f"cluener_public/{name}": text for name, text in files.items()})
    first, mixed = dataset.train
    assert list(zip(first.words, first.label, strict=True))[8:13] == [
        ("部", "O"),
        ("叶", "B-name"),
        ("老", "I-name"),
        ("桂", "I-name"),
        ("博", "O"),
    ]
    assert [(span.kind, "".join(mixed.words[span.start : span.end])) for span in find_spans(mixed.label)] == [
        ("book", "iPhone"),
        ("game", "GrandTheft"),
        ("company", "浙商"),
        ("company", "浙商"),
    ]
    [unknown] = dataset.test["test"]
    assert (unknown.id, unknown.label, unknown.words) == ("0", None, tuple(text))
    assert isinstance(dataset.task, TokenTags)
    # a plain line is cut in the same way at prediction
    assert restore_task(task_facts(dataset.task, max_length=8), where="here") == dataset.task
    words = cut_text(MIXED["text"], splits_words=dataset.task.splits_words)  # type: ignore[arg-type]
    assert tuple(MIXED["text"][start:end] for start, end in words) == mixed.words  # type: ignore[index]


def official_score(guesses: list[dict[str, dict[str, Any]]], golds: list[dict[str, dict[str, Any]]]) -> float:
    """The mean over kinds of F1 over the different names of each text, as CLUENER2020/score.py describes it."""
    scores = []
    for kind in CLUENER_KINDS:
        right = wrong = missed = 0
        for guess, gold in zip(guesses, golds, strict=True):
            found, true = set(guess.get(kind, {})), set(gold.get(kind, {}))
            right, wrong, missed = right + len(found & true), wrong + len(found - true), missed + len(true - found)
        scores.append(2 * right / (2 * right + wrong + missed) if right else 0.0)
    return sum(scores) / len(scores)


def to_names(sentence: TaggedWords, tags: Any) -> dict[str, dict[str, Any]]:
    names: dict[str, dict[str, Any]] = {}
    for kind, start, end in find_spans(tags):
        names.setdefault(kind, {}).setdefault("".join(sentence.words[start:end]), []).append([start, end - 1])
    return names


def test_the_score_of_cluener_is_the_official_one(tmp_path: Path) -> None:
    dataset = read("cluener", tmp_path, {"train.json": lines(MIXED)}, dev_share=0)
    task = dataset.task
    assert isinstance(task, TokenTags)
    choose = random.Random(1)
    few = [tag for tag in task.labels if tag == "O" or tag[2:] in CLUENER_KINDS[:4]]
    for _ in range(50):
        # few different characters, so that names occur twice and where they are not expected
        sentences = [
            TaggedWords(str(n), tuple(choose.choices("浙商A8", k=6)), tuple(choose.choices(few, k=6))) for n in range(4)
        ]
        answers = [choose.choices(few, k=6) for _ in sentences]
        outputs = [np.eye(len(task.labels))[[task.labels.index(tag) for tag in tags]] for tags in answers]
        scores = task.score(outputs, sentences)
        guesses = [to_names(*pair) for pair in zip(sentences, answers, strict=True)]
        golds = [to_names(sentence, sentence.label) for sentence in sentences]
        assert scores["names_f1"] == pytest.approx(official_score(guesses, golds))
        tally = find_kind(task).tally(task, outputs, sentences)
        everyone = np.arange(len(sentences))
        assert {name: measure(tally.rows[everyone]) for name, measure in tally.scores.items()} == pytest.approx(scores)
    assert task.metric == "names_f1"


SLASHED = "参加/o 会议/o 的/o 李明/nr 、/o 北京/ns //o 1997/o 人大/nt\n我/o\n"
BIO = "".join(
    f"{word} {tag}\n" for word, tag in zip("李明在北京", ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"], strict=True)
)
BMES = "".join(f"{word}\t{tag}\n" for word, tag in zip("李明在京", ["B-NR", "E-NR", "O", "S-NS"], strict=True))


@pytest.mark.parametrize(
    ("file", "text", "spans"),
    [
        ("train1.txt", SLASHED, [("PER", "李明"), ("LOC", "北京"), ("ORG", "人大")]),
        ("msra_train_bio.txt", BIO, [("PER", "李明"), ("LOC", "北京")]),
        ("train.conll", BMES, [("PER", "李明"), ("LOC", "京")]),
    ],
    ids=["slashes", "BIO", "BMES"],
)
def test_every_distribution_of_msra_is_read(file: str, text: str, spans: Any, tmp_path: Path) -> None:
    sentence = read("msra-ner", tmp_path, {file: text}, dev_share=0).train[0]
    assert all(len(word) == 1 for word in sentence.words)
    assert [(span.kind, "".join(sentence.words[span.start : span.end])) for span in find_spans(sentence.label)] == spans


def test_the_tagged_test_file_of_msra_comes_before_the_one_without_tags(tmp_path: Path) -> None:
    dataset = read(
        "msra-ner", tmp_path, {"train1.txt": SLASHED * 20, "testright1.txt": SLASHED, "test1.txt": "参加会议\n"}
    )
    assert dataset.test["test"][0].label is not None
    assert dataset.task.name == "msra-ner"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("B-PER", "B-PER I-PER I-PER"),
        ("I-PER", "I-PER I-PER I-PER"),
        ("S-NR", "B-PER M-PER E-PER"),
        ("M-NS", "M-LOC M-LOC M-LOC"),
        ("E-NT", "M-ORG M-ORG E-ORG"),
        ("nt", "B-ORG I-ORG I-ORG"),
        ("o", "O O O"),
    ],
)
def test_a_segment_of_several_characters_gets_a_tag_for_each(tag: str, expected: str) -> None:
    found = tag_characters(TaggedWords("0", ("1997",), (tag,))).label
    assert found is not None
    assert " ".join(found[:2] + found[3:]) == expected


def test_a_name_that_is_not_where_it_should_be_is_refused(tmp_path: Path) -> None:
    row = {"text": "浙商银行", "label": {"company": {"浙商": [[1, 2]]}}}
    with refuses(DataError, "misplaced-answer"):
        read("cluener", tmp_path, {"train.json": lines(row)}, dev_share=0)


@pytest.mark.parametrize("places", [5, None, "ab", {"a": 1}, [5], [[0]], [[0, 1, 2]], [[0.0, 1]], [[None, 1]]])
def test_places_of_another_kind_are_refused(places: Any, tmp_path: Path) -> None:
    row = {"text": "浙商银行", "label": {"company": {"浙商": places}}}
    with refuses(DataError, "bad-span", at="train.json"):
        read("cluener", tmp_path, {"train.json": lines(row)}, dev_share=0)
