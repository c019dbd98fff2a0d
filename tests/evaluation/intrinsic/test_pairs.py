"""Pairs to test on: balanced, true to their labels, and alike in all but what the label says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from litebert.batches.segments import outline_shards
from litebert.core.errors import DataError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.evaluation.intrinsic.pairs import PairTable, draw_next_pairs, draw_order_pairs, draw_plain_pairs
from litebert.evaluation.intrinsic.passages import Passages, open_passages
from litebert.text.tokenizer import Tokenizer
from tests.batches.toy_corpus import build_corpus as build_toy
from tests.batches.toy_corpus import random_documents
from tests.conftest import invent_documents

LENGTH = 48
Draw = Callable[..., PairTable]


def make_passages(documents: list[list[int]], *, is_ours: np.ndarray | None = None, num_shards: int = 2) -> Passages:
    """Documents given by the lengths of their sentences."""
    shards = build_toy(documents, num_shards=num_shards).shards
    chosen = np.ones(len(documents), np.bool_) if is_ours is None else is_ours
    return Passages("toys", "toy", shards, outline_shards(shards), chosen)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def toys() -> Passages:
    return make_passages(random_documents(400, seed=1, most_sentences=12, most_tokens=20))


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs])
def test_labels_are_balanced_among_lead_pairs_and_among_the_others(draw: Draw, toys: Passages) -> None:
    pairs = draw(toys, length=LENGTH, count=500, seed=1)
    assert 490 <= len(pairs.labels) <= 500
    for is_lead in (True, False):
        labels = pairs.labels[pairs.is_lead == is_lead]
        assert len(labels) > 50
        assert labels.mean() == 0.5


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs, draw_plain_pairs])
def test_the_same_seed_draws_the_same_pairs_and_another_seed_others(draw: Draw, toys: Passages) -> None:
    pairs, again, other = (draw(toys, length=LENGTH, count=100, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(pairs, again, strict=True))
    assert not np.array_equal(pairs.ranges, other.ranges)


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs, draw_plain_pairs])
def test_pairs_fit_their_length_and_lie_in_documents_of_ours(draw: Draw) -> None:
    documents = random_documents(200, seed=2)
    is_ours = np.arange(200) % 3 == 0
    passages = make_passages(documents, is_ours=is_ours)
    pairs = draw(passages, length=LENGTH, count=300, seed=1)
    assert pairs.lengths.max() <= LENGTH
    for column in (0, 2):
        first = passages.find_documents(pairs.ranges[:, column])
        assert is_ours[first].all()
        assert np.array_equal(first, passages.find_documents(pairs.ranges[:, column + 1] - 1))
    assert np.array_equal(pairs.documents, passages.find_documents(pairs.ranges[:, 0]))


def test_a_swapped_pair_is_one_whose_second_segment_was_written_first(toys: Passages) -> None:
    pairs = draw_order_pairs(toys, length=LENGTH, count=500, seed=1)
    assert np.array_equal(pairs.labels == 1, pairs.ranges[:, 2] < pairs.ranges[:, 0])
    assert np.array_equal(toys.find_documents(pairs.ranges[:, 2]), pairs.documents)


def test_a_pair_that_is_not_next_has_its_second_segment_from_another_document(toys: Passages) -> None:
    pairs = draw_next_pairs(toys, length=LENGTH, count=500, seed=1)
    other = toys.find_documents(pairs.ranges[:, 2])
    assert np.array_equal(pairs.labels == 1, other != pairs.documents)
    is_next = pairs.labels == 0
    assert (pairs.ranges[is_next, 2] >= pairs.ranges[is_next, 1]).all()


def test_no_second_segment_of_next_pairs_begins_a_document(toys: Passages) -> None:
    pairs = draw_next_pairs(toys, length=LENGTH, count=1000, seed=1)
    beginnings = toys.outline.sentence_starts[toys.outline.document_starts[:-1]]
    assert not np.isin(pairs.ranges[:, 2], beginnings).any()


def test_a_stranger_comes_from_a_pair_of_the_same_kind(toys: Passages) -> None:
    """After a document's beginning comes what follows a beginning, or mere position in a document would tell."""
    pairs = draw_next_pairs(toys, length=LENGTH, count=1000, seed=1)
    starts = toys.outline.sentence_starts[toys.outline.document_starts]
    depth = pairs.ranges[:, 2] - starts[toys.find_documents(pairs.ranges[:, 2])]
    lead_strangers = depth[pairs.is_lead & (pairs.labels == 1)]
    assert lead_strangers.max() < LENGTH + 20  # a chunk and the sentence that was too long for it
    assert (depth[~pairs.is_lead & (pairs.labels == 1)] > LENGTH).mean() > 0.5


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs])
def test_lengths_do_not_give_labels_away(draw: Draw, toys: Passages) -> None:
    pairs = draw(toys, length=LENGTH, count=10**6, seed=1)
    sizes = np.stack([pairs.ranges[:, 1] - pairs.ranges[:, 0], pairs.ranges[:, 3] - pairs.ranges[:, 2]])
    for side in sizes:
        means = [side[pairs.labels == label].mean() for label in (0, 1)]
        error = side.std() * np.sqrt(4 / len(pairs.labels))
        assert abs(means[0] - means[1]) < 3.5 * error


def test_a_pair_is_lead_where_it_holds_the_first_sentence_of_a_document() -> None:
    passages = make_passages(random_documents(300, seed=3, most_sentences=9, most_tokens=6))
    pairs = draw_order_pairs(passages, length=64, count=10**6, seed=1)  # short sentences: nothing is trimmed
    starts = passages.outline.sentence_starts[passages.outline.document_starts]
    begins = pairs.ranges[:, [0, 2]].min(1) == starts[pairs.documents]
    assert np.array_equal(begins, pairs.is_lead)


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs, draw_plain_pairs])
def test_too_little_text_is_reported(draw: Draw) -> None:
    with refuses(DataError, "corpus-too-small"):
        draw(make_passages([[5, 5], [5, 5]], num_shards=1), length=LENGTH, count=100, seed=1)


def test_next_pairs_need_another_document() -> None:
    with refuses(DataError, "corpus-too-small"):
        draw_next_pairs(make_passages([[9] * 200], num_shards=1), length=LENGTH, count=100, seed=1)


def test_next_pairs_can_be_drawn_in_any_number() -> None:
    """However few of a kind are wanted: one pair alone has no other document to take its second segment from."""
    passages = make_passages([[9] * 400, [9] * 300, *([9] * 12 for _ in range(9))])
    for count in range(16, 300, 2):
        pairs = draw_next_pairs(passages, length=LENGTH, count=count, seed=1)
        other = passages.find_documents(pairs.ranges[:, 2])
        assert np.array_equal(pairs.labels == 1, other != pairs.documents)
        assert 8 <= len(pairs.labels) <= count


def build_text(folder: Path, tokenizer: Tokenizer, valid_share: float, documents: list[list[str]]) -> Path:
    folder.mkdir()
    (folder / "text.txt").write_text("\n\n".join("\n".join(document) for document in documents), "utf-8")
    options = BuildOptions(valid_share=valid_share, is_quiet=True)
    build_corpus([folder / "text.txt"], tokenizer, folder / "corpus", options)
    return folder / "corpus"


def read_texts(passages: Passages) -> list[bytes]:
    documents = [shard.sentences(number) for shard in passages.shards for number in range(shard.num_documents)]
    texts = [np.concatenate(sentences).tobytes() for sentences in documents]
    return [text for text, is_ours in zip(texts, passages.is_ours, strict=True) if is_ours]


@pytest.mark.parametrize(("valid_share", "split"), [(0.3, "valid"), (1.0, "valid"), (0.0, "train"), (0.3, "train")])
def test_nothing_is_learned_from_documents_that_are_tested_on(
    valid_share: float, split: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    documents = invent_documents(120, seed=5)
    corpus = build_text(tmp_path / "text", tiny_tokenizer, valid_share, documents * 2)  # each document twice
    learned, tested = open_passages(corpus, split, enough_tokens=10**6, seed=1)  # type: ignore[arg-type]
    texts = set(read_texts(learned)), set(read_texts(tested))
    assert min(map(len, texts)) > 20
    assert not texts[0] & texts[1]
    has_both = split == "valid" and valid_share < 1
    assert learned.name == ("the train split" if has_both else f"half of the {split} documents")


def test_no_more_shards_are_opened_for_learning_than_are_needed(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    documents = invent_documents(200, seed=6)
    corpus = build_text(tmp_path / "one", tiny_tokenizer, 0.2, documents[:100])
    (tmp_path / "more.txt").write_text("\n\n".join("\n".join(d) for d in documents[100:]), "utf-8")
    build_corpus([tmp_path / "more.txt"], tiny_tokenizer, corpus, BuildOptions(valid_share=0.2, is_quiet=True))
    few, many = (open_passages(corpus, "valid", enough_tokens=n, seed=1)[0] for n in (10, 10**6))
    assert (len(few.shards), len(many.shards)) == (1, 2)


def test_an_empty_split_is_reported_with_the_other_one(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    corpus = build_text(tmp_path / "text", tiny_tokenizer, 0.0, invent_documents(20, seed=7))
    with refuses(DataError, "empty-split"):
        open_passages(corpus, "valid", enough_tokens=1, seed=1)
