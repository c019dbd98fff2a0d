"""Baselines: they solve what words give away, fail where nothing does, and count as a person would."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from litebert.corpus.build import BuildOptions, build_corpus
from litebert.evaluation.intrinsic.pair_batches import PairWriter, build_pair_writer
from litebert.evaluation.intrinsic.pairs import PairTable, draw_next_pairs, draw_order_pairs, draw_plain_pairs
from litebert.evaluation.intrinsic.passages import open_passages
from litebert.evaluation.intrinsic.shallow import (
    Bags,
    _find_threshold,
    collect_bags,
    count_pieces,
    guess_next,
    guess_order,
)
from litebert.text.tokenizer import Tokenizer
from tests.conftest import invent_documents

LENGTH = 32


def set_text(documents: list[list[str]], folder: Path, tokenizer: Tokenizer) -> tuple[PairWriter, PairWriter]:
    (folder / "text.txt").write_text("\n\n".join("\n".join(document) for document in documents), "utf-8")
    options = BuildOptions(valid_share=0.4, is_quiet=True)
    build_corpus([folder / "text.txt"], tokenizer, folder / "corpus", options)
    passages = open_passages(folder / "corpus", "valid", enough_tokens=10**6, seed=1)
    learned, tested = (build_pair_writer(part, tokenizer, length=LENGTH, seed=1) for part in passages)
    return tested, learned


def collect(writer: PairWriter, pairs: PairTable, tokenizer: Tokenizer) -> Bags:
    return collect_bags(writer, pairs, tokenizer.vocab_size)


def test_bag_of_words_solves_text_whose_words_give_the_order_away(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    words = ["tree", "house", "river", "dog", "bird"]
    documents = [
        [f"The old cat sees {a} near {b}.", f"A new {b} follows {a} or {c}."]
        for a in words
        for b in words
        for c in words
    ]
    tested, learned = set_text(documents, tmp_path, tiny_tokenizer)
    pairs, to_learn = (draw_order_pairs(t.passages, length=LENGTH, count=500, seed=1) for t in (tested, learned))
    bags, learned_bags = collect(tested, pairs, tiny_tokenizer), collect(learned, to_learn, tiny_tokenizer)
    assert pairs.is_lead.all()  # a document is one pair
    assert (guess_order(bags, learned_bags) == pairs.labels).mean() > 0.99
    others = replace(bags, table=pairs._replace(is_lead=~pairs.is_lead))  # of a kind that there was none to learn from
    assert (guess_order(others, learned_bags) == pairs.labels).mean() > 0.99


def test_word_overlap_solves_documents_that_have_words_of_their_own(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    words = ["cat", "dog", "bird", "house", "tree", "river", "small", "large", "old", "new", "sees", "likes", "finds"]
    documents = [[f"{a} {b}.", f"{b} {a}.", f"{a} {b}.", f"{b} {a}."] for a in words for b in words if a < b] * 4
    tested, learned = set_text(documents, tmp_path, tiny_tokenizer)
    pairs, to_learn = (draw_next_pairs(t.passages, length=16, count=500, seed=1) for t in (tested, learned))
    guesses = guess_next(collect(tested, pairs, tiny_tokenizer), collect(learned, to_learn, tiny_tokenizer))
    assert (guesses == pairs.labels).mean() > 0.9


def test_baselines_are_at_chance_on_text_without_order_or_topic(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    tested, learned = set_text(invent_documents(1500, seed=8), tmp_path, tiny_tokenizer)
    for draw, guess in ((draw_order_pairs, guess_order), (draw_next_pairs, guess_next)):
        pairs, to_learn = (draw(t.passages, length=LENGTH, count=1000, seed=1) for t in (tested, learned))
        guesses = guess(collect(tested, pairs, tiny_tokenizer), collect(learned, to_learn, tiny_tokenizer))
        assert abs((guesses == pairs.labels).mean() - 0.5) < 0.06


@pytest.fixture
def texts(tmp_path: Path, tiny_tokenizer: Tokenizer) -> PairWriter:
    return set_text(invent_documents(60, seed=9), tmp_path, tiny_tokenizer)[0]


def read_back(writer: PairWriter, pairs: PairTable) -> dict[int, list[int]]:
    """The ids of each pair as they are written, without padding."""
    return {
        int(number): row[mask].tolist()
        for numbers, batch in writer.iter_batches(pairs)
        for number, row, mask in zip(numbers, batch.token_ids, batch.mask, strict=True)
    }


def test_a_bag_holds_each_piece_of_each_side_once(texts: PairWriter, tiny_tokenizer: Tokenizer) -> None:
    pairs = draw_order_pairs(texts.passages, length=LENGTH, count=40, seed=1)
    bags = collect(texts, pairs, tiny_tokenizer)
    found = sorted(zip(bags.pairs.tolist(), bags.sides.tolist(), bags.pieces.tolist(), strict=True))
    expected = set()
    for number, ids in read_back(texts, pairs).items():
        middle = ids.index(tiny_tokenizer.sep_id)
        assert (ids[0], ids[-1]) == (tiny_tokenizer.cls_id, tiny_tokenizer.sep_id)
        expected |= {(number, 0, piece) for piece in ids[1:middle]}
        expected |= {(number, 1, piece) for piece in ids[middle + 1 : -1]}
    assert found == sorted(expected)


def test_frequent_pieces_are_those_that_a_counter_finds(texts: PairWriter, tiny_tokenizer: Tokenizer) -> None:
    pairs = draw_plain_pairs(texts.passages, length=LENGTH, count=100, seed=1)
    frequent = count_pieces(texts, pairs, tiny_tokenizer.vocab_size)
    alone: Counter[int] = Counter()
    after: dict[int, Counter[int]] = {}
    for ids in read_back(texts, pairs).values():
        for before, here in pairwise(ids):
            if here != tiny_tokenizer.sep_id:
                alone[here] += 1
                after.setdefault(before, Counter())[here] += 1
    assert alone[frequent.anywhere] == max(alone.values())
    assert len(after) > 20
    for piece, counts in after.items():
        assert counts[int(frequent.after[piece])] == max(counts.values())
    assert frequent.after[tiny_tokenizer.mask_id] == frequent.anywhere


def test_the_threshold_is_the_best_that_there_is() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        values = rng.integers(0, 6, 30) / 5  # many are equal
        labels = rng.integers(0, 2, 30)
        right = {threshold: int(((values <= threshold) == (labels == 1)).sum()) for threshold in values}
        assert right[_find_threshold(values, labels)] == max(right.values())
