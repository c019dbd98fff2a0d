"""Segments: which text is in a sequence, in which order, with which label."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refuses
from scipy import stats
from toy_corpus import CLS, FIRST, SEP, ToyCorpus, build_corpus, build_stream, random_documents, read_sequences

from litebert.batches.options import BatchOptions, SegmentOptions
from litebert.batches.random_kernels import hash_integers
from litebert.batches.segments import NoSequencesError, Outline, SegmentPlan, outline_shards, plan_segments
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import offsets

CORPUS = build_corpus(random_documents(3000), num_shards=3)
UNLIKELY = 1e-6  # of a statistical test failing on right code; the seeds are fixed, so it either does or does not


def plan(corpus: ToyCorpus, *, seed: int = 1, **options: Any) -> SegmentPlan:
    return plan_segments(outline_shards(corpus.shards), SegmentOptions(**options), hash_integers(seed))


def owners(corpus: ToyCorpus, plan: SegmentPlan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The document of each pair's two segments; a segment never has two."""
    first, second = (
        (corpus.document_of[plan.ranges[:, k]], corpus.document_of[plan.ranges[:, k + 1] - 1]) for k in (0, 2)
    )
    assert (first[0] == first[1]).all()
    assert (second[0] == second[1]).all()
    return first[0], second[0]


@pytest.mark.parametrize("layout", ["segment-pair", "sentence-pair"])
def test_sop_pairs_are_neighbours_from_one_document_and_the_label_is_their_order(layout: str) -> None:
    pairs = plan(CORPUS, format=layout, task="sop", max_length=64)
    first, second = owners(CORPUS, pairs)
    assert (first == second).all()
    is_swapped = pairs.ranges[:, 0] > pairs.ranges[:, 2]
    assert (pairs.labels == is_swapped).all()
    earlier_stop = np.where(is_swapped, pairs.ranges[:, 3], pairs.ranges[:, 1])
    later_start = np.where(is_swapped, pairs.ranges[:, 0], pairs.ranges[:, 2])
    gap = later_start - earlier_stop
    sentences = CORPUS.sentence_of
    assert (sentences[later_start] - sentences[earlier_stop - 1] == 1).all()
    # the two are cut between two sentences, and nothing is missing there unless two sentences alone are too long
    hull = np.maximum(pairs.ranges[:, 1], pairs.ranges[:, 3]) - np.minimum(pairs.ranges[:, 0], pairs.ranges[:, 2])
    assert (gap >= 0).all()
    assert (gap[pairs.lengths < 64] == 0).all()
    num_sentences = 1 + sentences[np.maximum(pairs.ranges[:, 1], pairs.ranges[:, 3]) - 1]
    num_sentences -= sentences[np.minimum(pairs.ranges[:, 0], pairs.ranges[:, 2])]
    assert (num_sentences[gap > 0] == 2).all()
    assert hull.max() <= 2 * 40


def test_without_a_sentence_task_the_same_pieces_are_read_as_with_sentence_order() -> None:
    ordered, plain = (plan(CORPUS, task=task, max_length=64) for task in ("sop", "none"))
    is_swapped = ordered.ranges[:, 0] > ordered.ranges[:, 2]
    assert 0.4 < is_swapped.mean() < 0.6
    put_back = np.where(is_swapped[:, None], ordered.ranges[:, [2, 3, 0, 1]], ordered.ranges)
    is_whole = ordered.lengths < 64  # of two sentences that are too long, each side loses what coins say
    assert is_whole.mean() > 0.75
    assert np.array_equal(put_back[is_whole], plain.ranges[is_whole])


@pytest.mark.parametrize("layout", ["segment-pair", "sentence-pair"])
@pytest.mark.parametrize(("task", "num_labels"), [("sop", 2), ("nsp", 2), ("three-way", 3)])
def test_labels_are_balanced(layout: str, task: str, num_labels: int) -> None:
    labels = np.concatenate([plan(CORPUS, format=layout, task=task, max_length=64, seed=s).labels for s in range(5)])
    assert stats.chisquare(np.bincount(labels, minlength=num_labels)).pvalue > UNLIKELY
    assert len(np.unique(labels)) == num_labels


@pytest.mark.parametrize("layout", ["segment-pair", "sentence-pair"])
@pytest.mark.parametrize(("task", "random_label"), [("nsp", 1), ("three-way", 2)])
def test_random_segments_come_from_another_document_and_never_begin_one(
    layout: str, task: str, random_label: int
) -> None:
    pairs = plan(CORPUS, format=layout, task=task, max_length=512 if layout == "sentence-pair" else 64)
    first, second = owners(CORPUS, pairs)
    is_random = pairs.labels == random_label
    assert (first[is_random] != second[is_random]).all()
    assert (first[~is_random] == second[~is_random]).all()
    starts = np.flatnonzero(np.diff(CORPUS.document_of, prepend=-1))
    has_many = np.array([len(document) > 1 for document in CORPUS.documents])
    begins = np.isin(pairs.ranges[:, 2], starts) & has_many[second]
    assert not begins[is_random].any()


@pytest.mark.parametrize("layout", ["segment-pair", "sentence-pair"])
@pytest.mark.parametrize("task", ["nsp", "three-way"])
def test_length_does_not_give_random_segments_away(layout: str, task: str) -> None:
    plans = [plan(CORPUS, format=layout, task=task, max_length=64, seed=seed) for seed in range(3)]
    ranges, labels = np.concatenate([p.ranges for p in plans]), np.concatenate([p.labels for p in plans])
    lengths = ranges[:, 1::2] - ranges[:, ::2]
    for feature in (lengths[:, 0], lengths[:, 1], lengths.sum(1)):
        for label in range(1, labels.max() + 1):
            assert stats.ks_2samp(feature[labels == 0], feature[labels == label]).pvalue > UNLIKELY


@pytest.mark.parametrize("is_opening", [True, False])
def test_the_position_of_a_second_segment_in_its_document_does_not_reveal_random_ones(is_opening: bool) -> None:
    plans = [plan(CORPUS, task="nsp", max_length=64, seed=seed) for seed in range(3)]
    ranges, labels = np.concatenate([p.ranges for p in plans]), np.concatenate([p.labels for p in plans])
    kind = np.concatenate([p.opens_document for p in plans]) == is_opening
    starts = np.flatnonzero(np.diff(CORPUS.document_of, prepend=-1))
    depth = ranges[:, 2] - starts[CORPUS.document_of[ranges[:, 2]]]
    assert stats.ks_2samp(depth[kind & (labels == 0)], depth[kind & (labels == 1)]).pvalue > UNLIKELY


def test_random_segments_may_come_from_every_shard() -> None:
    pairs = plan(CORPUS, task="nsp", max_length=64)
    shard_starts = outline_shards(CORPUS.shards).shard_starts
    shard = np.searchsorted(shard_starts, pairs.ranges, "right") - 1
    is_random = pairs.labels == 1
    table = np.histogram2d(shard[is_random, 0], shard[is_random, 2], bins=3)[0]
    assert (table > 100).all()


def tell_order_by(feature: str, **options: Any) -> float:
    """The p-value of a feature of the first segment being the same in both orders."""
    last_of_sentence = np.append(np.diff(CORPUS.sentence_of) > 0, True)
    plans = [plan(CORPUS, task="sop", max_length=64, seed=seed, **options) for seed in range(5)]
    ranges, labels = np.concatenate([p.ranges for p in plans]), np.concatenate([p.labels for p in plans])
    if feature == "length":
        values = ranges[:, 1] - ranges[:, 0]
        return float(stats.ks_2samp(values[labels == 0], values[labels == 1]).pvalue)
    is_ragged = ~last_of_sentence[ranges[:, 1] - 1]
    table = [[((labels == label) & (is_ragged == state)).sum() for state in (False, True)] for label in (0, 1)]
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("feature", ["length", "ragged end"])
def test_order_cannot_be_predicted_without_reading(feature: str) -> None:
    assert tell_order_by(feature) > UNLIKELY
    assert tell_order_by(feature, fill="overfill") > UNLIKELY
    assert tell_order_by(feature, fill="overfill", fill_from="start") < UNLIKELY  # as it can in the official data


def test_a_tenth_of_the_sequences_wants_to_be_shorter_by_any_amount() -> None:
    corpus = build_corpus([[1] * 400_000])  # sentences of one token: a sequence is exactly as long as wanted
    wanted = plan(corpus, task="sop", max_length=67).lengths[:-1] - 3
    short = wanted[wanted < 64]
    expected_share = 0.1 * 62 / 63  # one draw in 63 is the full length
    assert stats.binomtest(len(short), len(wanted), expected_share).pvalue > UNLIKELY
    assert stats.chisquare(np.bincount(short, minlength=64)[2:]).pvalue > UNLIKELY


def test_the_cut_between_segments_is_uniform() -> None:
    corpus = build_corpus([[1] * 6] * 6000)
    pairs = plan(corpus, task="sop", max_length=64, short_rate=0.0)
    is_swapped = pairs.labels == 1
    earlier = np.where(is_swapped, pairs.ranges[:, 3] - pairs.ranges[:, 2], pairs.ranges[:, 1] - pairs.ranges[:, 0])
    assert stats.chisquare(np.bincount(earlier, minlength=6)[1:6]).pvalue > UNLIKELY


def test_merging_a_lone_sentence_keeps_the_text_that_dropping_it_loses() -> None:
    corpus = build_corpus([[50, 10, 10] * 5] * 200)  # a sentence of 50 tokens alone overfills a sequence
    merged = plan(corpus, task="sop", max_length=43, short_rate=0.0)
    dropped = plan(corpus, task="sop", max_length=43, short_rate=0.0, single_sentence="drop")
    held = [(p.ranges[:, 1] - p.ranges[:, 0] + p.ranges[:, 3] - p.ranges[:, 2]).sum() for p in (merged, dropped)]
    assert held[1] < 0.8 * held[0]
    assert (owners(corpus, dropped)[0] == owners(corpus, dropped)[1]).all()


@pytest.mark.parametrize("fill_from", ["start", "either"])
def test_text_replaced_by_a_random_segment_is_used_again(fill_from: str) -> None:
    found = plan(CORPUS, task="nsp", negatives="draw", fill_from=fill_from, max_length=64)
    is_read = np.zeros(len(CORPUS.document_of), np.bool_)
    for (first, first_end, second, second_end), label in zip(found.ranges, found.labels, strict=True):
        is_read[first:first_end] = True
        if label == 0:  # else it is a stranger's
            is_read[second:second_end] = True
    assert is_read.mean() > 0.91  # the ends of documents and what is trimmed are lost to all pairs


def test_lead_pairs_are_those_that_hold_a_documents_beginning() -> None:
    pairs = plan(build_corpus([[5] * 6] * 50), task="sop", max_length=23, short_rate=0.0)
    starts_document = np.isin(pairs.ranges[:, [0, 2]], np.arange(0, 1500, 30)).any(1)
    assert (pairs.opens_document == starts_document).all()
    assert 0 < pairs.opens_document.sum() < len(pairs)


def test_full_and_doc_sentences_contain_every_token_once_in_complete_sentences() -> None:
    for layout in ("full-sentences", "doc-sentences"):
        runs = plan(CORPUS, format=layout, task="none", max_length=64)
        assert runs.ranges[0, 0] == 0
        assert (runs.ranges[1:, 0] == runs.ranges[:-1, 1]).all()
        assert runs.ranges[-1, 1] == len(CORPUS.document_of)
        starts = np.flatnonzero(np.diff(CORPUS.sentence_of, prepend=-1))
        assert np.isin(runs.ranges[:, 0], starts).all()
        assert runs.lengths.max() <= 64
        crossing = CORPUS.document_of[runs.ranges[:, 0]] != CORPUS.document_of[runs.ranges[:, 1] - 1]
        assert crossing.any() == (layout == "full-sentences")


def test_full_sentences_leave_no_room_for_another_sentence() -> None:
    runs = plan(CORPUS, format="full-sentences", task="none", max_length=64)
    lengths = np.bincount(CORPUS.sentence_of)
    next_sentence = CORPUS.sentence_of[runs.ranges[1:, 0]]
    begins_document = np.diff(CORPUS.document_of, prepend=-1)[runs.ranges[1:, 0]] > 0
    assert (runs.lengths[:-1] + lengths[next_sentence] + begins_document > 64).all()


def test_full_sentences_have_a_separator_at_each_border_of_documents() -> None:
    stream = build_stream(CORPUS, segments=SegmentOptions(format="full-sentences", task="none", max_length=64))
    for sequence in read_sequences(stream.rows(0)):
        text = sequence[1:-1]
        assert sequence[0] == CLS
        assert sequence[-1] == SEP
        assert text[0] != SEP
        addresses = text[text != SEP] - FIRST
        assert (np.diff(addresses) == 1).all()
        borders = np.flatnonzero(np.diff(CORPUS.document_of[addresses]))
        assert np.flatnonzero(text == SEP).tolist() == [border + 1 + k for k, border in enumerate(borders)]


def test_a_sentence_longer_than_the_room_is_cut_into_windows() -> None:
    runs = plan(build_corpus([[100]]), format="doc-sentences", task="none", max_length=42)
    assert runs.ranges[:, :2].tolist() == [[0, 40], [40, 80], [80, 100]]


def test_the_layout_is_cls_a_sep_b_sep() -> None:
    rows = build_stream(CORPUS).rows(0)
    pairs = read_sequences(rows)
    for number, sequence in enumerate(pairs):
        middle, last = np.flatnonzero(sequence == SEP)
        assert sequence[0] == CLS
        assert last == len(sequence) - 1
        assert 1 < middle < last - 1
        segments = rows.segment_ids[number, : len(sequence)]
        assert segments.tolist() == [0] * (middle + 1) + [1] * (last - middle)
        for text in (sequence[1:middle], sequence[middle + 1 : last]):
            assert (np.diff(text) == 1).all()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"format": "full-sentences", "task": "sop"}, "conflicting-options"),
        ({"format": "doc-sentences", "task": "nsp"}, "conflicting-options"),
        ({"format": "sentence-pair", "short_rate": 0.1}, "conflicting-options"),
        ({"format": "sentence-pair", "fill": "overfill"}, "conflicting-options"),
        (
            {"format": "segment-pair", "task": "none", "single_sentence": "random_doc"},
            "conflicting-options",
        ),
        ({"max_length": 4}, "out-of-range"),
        ({"short_rate": 1.5}, "out-of-range"),
        ({"copies": 0}, "out-of-range"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(options: dict[str, Any], code: str) -> None:
    with refuses(ConfigError, code):
        SegmentOptions(**options)


def test_a_corpus_without_pairs_or_without_random_segments_is_refused_with_a_fix() -> None:
    with refuses(DataError, "no-pairs"):
        plan(build_corpus([[5]] * 20), task="sop")
    with refuses(DataError, "one-document"):
        plan(build_corpus([[5] * 20]), task="nsp")
    with refuses(DataError, "one-document", at="segments.single_sentence"):
        plan(build_corpus([[5] * 20]), task="sop", single_sentence="random_doc")


TINY = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6), min_size=2, max_size=8)
COMBINATIONS = [
    (layout, task)
    for layout in ("segment-pair", "sentence-pair", "full-sentences", "doc-sentences")
    for task in ("sop", "nsp", "three-way", "none")
    if layout.endswith("pair") or task == "none"
]


@given(TINY, st.sampled_from(COMBINATIONS), st.integers(8, 40), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_any_tiny_corpus_gives_complete_sequences_or_a_reason(
    documents: list[list[int]], combination: tuple[str, str], max_length: int, num_shards: int, packed: bool, seed: int
) -> None:
    layout, task = combination
    corpus = build_corpus(documents, num_shards=min(num_shards, len(documents)))
    options: Any = {"format": layout, "task": task, "max_length": max_length}
    batch = BatchOptions(sequences=4, is_packed=packed)
    if layout.endswith("pair") and all(len(document) == 1 for document in documents):
        with refuses(NoSequencesError, "no-pairs"):
            build_stream(corpus, segments=SegmentOptions(**options), batch=batch, seed=seed)
        return
    stream = build_stream(corpus, segments=SegmentOptions(**options), batch=batch, seed=seed)
    for step in range(3):
        rows = stream.rows(step)
        sequences = read_sequences(rows)
        assert len(sequences) == 4
        for sequence in sequences:
            assert len(sequence) <= max_length
            assert sequence[0] == CLS
            assert sequence[-1] == SEP
            assert (sequence == CLS).sum() == 1
            assert (sequence[sequence >= FIRST] - FIRST < sum(map(sum, documents))).all()
        assert (rows.targets.labels >= FIRST).all()


@pytest.mark.slow
def test_a_pass_over_a_hundred_million_tokens_is_planned_in_seconds() -> None:
    rng = np.random.default_rng(0)
    sentences, documents = rng.integers(1, 50, 4_000_000), rng.integers(1, 40, 200_000)
    documents = documents[: np.searchsorted(np.cumsum(documents), len(sentences))]
    outline = Outline(offsets(sentences[: documents.sum()]), offsets(documents), np.array([0, int(sentences.sum())]))
    for task in ("sop", "nsp"):
        options = SegmentOptions(task=task, max_length=128)  # type: ignore[arg-type]
        plan_segments(outline, options, hash_integers(0))  # compiles
        started_at = time.perf_counter()
        found = plan_segments(outline, options, hash_integers(1))
        assert time.perf_counter() - started_at < 5
        assert outline.sentence_starts[-1] > 95_000_000
        assert sum(column.nbytes for column in vars(found).values()) < 60e6
