"""Masks over the words that jieba finds: with a given vocab.txt, whole words, and n-grams as often as p(n) says."""

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_masking import UNLIKELY, list_groups

import litebert
from litebert.batches.options import BatchOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.batches.rows import Rows
from litebert.batches.stream import Stream
from litebert.corpus.shards import Corpus, open_corpus
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import BERT_SPECIAL

jieba = pytest.importorskip("jieba")

# No character is in two words, so a character says whether it begins one.
WORDS = ["图书馆", "苹果", "我们", "葡萄", "骆驼", "蝴蝶", "电视", "火车站", "的", "和", "在", "北京", "老师", "Python"]
BEGINS = {word[0].lower() for word in WORDS} | {"，", "python"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of these words, in which jieba finds exactly these, and a vocabulary of their characters."""
    folder = tmp_path_factory.mktemp("chinese")
    choose = random.Random(3)
    sentences = []
    while len(sentences) < 3000:
        words = choose.choices(WORDS, k=20)
        if list(jieba.cut("".join(words))) == words:
            sentences.append("".join(words) + "。")
    (folder / "text.txt").write_text("\n".join("".join(sentences[n : n + 60]) for n in range(0, 3000, 60)), "utf-8")
    characters = sorted({character for word in WORDS[:-1] for character in word})
    (folder / "vocab.txt").write_text("\n".join([*BERT_SPECIAL, *characters, "python", "。"]), "utf-8")
    for words in ("jieba", "pieces"):
        litebert.build_corpus(
            folder / "text.txt",
            folder / words,
            tokenizer=folder / "vocab.txt",
            words=words,  # type: ignore[arg-type]
            format="lines",
            valid_share=0,
            processes=1,
        )
    return folder


def rows_of(corpus: Corpus, tokenizer: Tokenizer, **options: object) -> list[Rows]:
    stream_options = StreamOptions(
        segments=SegmentOptions(max_length=256),
        masking=MaskingOptions(**options),  # type: ignore[arg-type]
        batch=BatchOptions(sequences=64),
        seed=1,
    )
    stream = Stream([corpus], tokenizer, stream_options)
    return [stream.rows(step) for step in range(8)]


def test_the_corpus_stores_where_its_words_come_from(folder: Path) -> None:
    assert load_tokenizer(folder / "jieba" / "tokenizer").words == "jieba"
    assert load_tokenizer(folder / "pieces" / "tokenizer").words == "pieces"


@pytest.mark.parametrize(
    ("kind", "expected"), [("ngram", [6 / 11, 3 / 11, 2 / 11]), ("whole-word", [1.0])], ids=["ngram", "whole-word"]
)
def test_groups_are_words_of_jieba_as_often_as_p_of_n_says(kind: str, expected: list[float], folder: Path) -> None:
    corpus, tokenizer = open_corpus(folder / "jieba", "train"), load_tokenizer(folder / "jieba" / "tokenizer")
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    begins = np.array([piece in BEGINS or piece in ("。", *BERT_SPECIAL) for piece in pieces])  # (V,)
    counts, num_split = np.zeros(len(expected)), 0
    for rows in rows_of(corpus, tokenizer, kind=kind):
        flat = rows.token_ids.reshape(-1).copy()
        flat[rows.targets.positions] = rows.targets.labels
        for group in list_groups(rows):
            starts = begins[flat[group]]
            is_first = flat[group[0] - 1] in (tokenizer.cls_id, tokenizer.sep_id)  # trimming may have cut a word
            num_split += not (starts[0] or is_first) or not begins[flat[group[-1] + 1]]
            counts[max(int(starts.sum()), 1) - 1] += not is_first
    assert num_split == 0
    assert counts.sum() > 3000
    if len(expected) > 1:
        assert stats.chisquare(counts, np.array(expected) * counts.sum()).pvalue > 1e-3
        assert stats.chisquare(counts, np.full(3, 1 / 3) * counts.sum()).pvalue < UNLIKELY


def test_without_jieba_every_character_is_a_word(folder: Path) -> None:
    corpus, tokenizer = open_corpus(folder / "pieces", "train"), load_tokenizer(folder / "pieces" / "tokenizer")
    lengths = [len(group) for rows in rows_of(corpus, tokenizer, kind="whole-word") for group in list_groups(rows)]
    assert set(lengths) == {1}
