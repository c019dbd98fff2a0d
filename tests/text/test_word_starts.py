"""Where words begin: the table over a vocabulary, and jieba for Chinese."""

import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.text.tokenizer import ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import BERT_SPECIAL
from litebert.text.word_starts import PUNCTUATION, find_word_starts

CHINESE = "我来到北京清华大学 hello there。"


@pytest.mark.parametrize(
    ("kind", "starts", "continues"),
    [
        (
            "unigram",
            ["▁the", "▁", "<pad", ",", "[", "5", "x5", "'", "'s", "é", "中", "=", ">"],
            ["ing", "A", "..", "a,b", "[CLS]"],
        ),
        ("wordpiece", ["the", ",", "中", "#", "#a"], ["##the", "##,", "##中"]),
        ("bpe", ["Ġthe", "Ġ", "Ċ"], ["the", ",", "ä¸Ń"]),
    ],
)
def test_the_table_follows_the_rule_of_its_kind(kind: str, starts: list[str], continues: list[str]) -> None:
    expected = [True] * len(starts) + [False] * len(continues)
    assert find_word_starts(kind, [*starts, *continues], frozenset()).tolist() == expected


def test_the_punctuation_is_googles() -> None:
    assert len(PUNCTUATION) == 28
    assert not PUNCTUATION & set("'=<>")


def test_special_tokens_begin_words(tokenizer: Tokenizer) -> None:
    assert tokenizer.word_starts[list(tokenizer.special_ids)].all()


def test_marks_are_the_table_and_the_first_token(tokenizer: Tokenizer) -> None:
    text = "Rebuildable the unmusical, 1,000 walked"
    token_ids = tokenizer.encode(text)
    marks = tokenizer.mark_words(text, token_ids)
    assert marks[0]
    assert np.array_equal(marks[1:], tokenizer.word_starts[token_ids][1:])
    assert not marks.all()
    assert tokenizer.mark_words("", []).shape == (0,)


@pytest.fixture
def chinese_vocabulary(tmp_path: Path) -> Path:
    pieces = [*BERT_SPECIAL, *dict.fromkeys(CHINESE.replace(" hello there", "")), "hello", "the", "##re"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    return tmp_path / "vocab.txt"


def test_jieba_joins_chinese_characters_to_words_and_leaves_english_alone(
    chinese_vocabulary: Path, tmp_path: Path
) -> None:
    load_tokenizer(chinese_vocabulary, ReadingOptions(words="jieba")).save(tmp_path / "saved")
    for words, expected in (
        ("pieces", "我 来 到 北 京 清 华 大 学 hello the| 。"),
        ("jieba", "我 来|到 北|京 清|华|大|学 hello the| 。"),
    ):
        tokenizer = load_tokenizer(chinese_vocabulary, ReadingOptions(words=words))
        if words == "jieba":
            tokenizer = load_tokenizer(tmp_path / "saved")
        token_ids = tokenizer.encode(CHINESE)
        marks = tokenizer.mark_words(CHINESE, token_ids)
        shown = "".join((" " if mark else "|") + p for p, mark in zip(tokenizer.pieces(token_ids), marks, strict=True))
        assert shown.replace("##re", "") == f" {expected}"


def test_chinese_words_without_jieba_say_what_to_install(
    chinese_vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with refuses(ConfigError, "missing-package"):
        load_tokenizer(chinese_vocabulary, ReadingOptions(words="jieba"))
