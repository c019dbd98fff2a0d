"""`compat = "google"` is the official algorithm: identical for the same draws, and equal in distribution for others."""

import numpy as np
import pytest
from official_data import CounterSource, Masked, Pair, PythonSource, combine, make_pairs, mask
from scipy import stats
from toy_corpus import CLS, FIRST, MASK, SEP, ToyCorpus, build_corpus, build_stream, random_documents, read_sequences

from litebert.batches.google import GOOGLE
from litebert.batches.masking import list_vocabulary, mask_tokens
from litebert.batches.masking_kernels import KeyedSpans
from litebert.batches.options import MaskingOptions, SegmentOptions
from litebert.batches.random_kernels import hash_integers
from litebert.batches.segments import SegmentPlan, outline_shards, plan_segments

CORPUS = build_corpus(random_documents(400), num_shards=2)
VOCABULARY = FIRST + len(CORPUS.document_of)
UNLIKELY = 1e-6


def list_documents(corpus: ToyCorpus) -> list[list[list[int]]]:
    address = iter(range(FIRST, VOCABULARY))
    return [[[next(address) for _ in range(length)] for length in document] for document in corpus.documents]


DOCUMENTS = list_documents(CORPUS)


def plan_officially(task: str, seed: int, max_length: int = 64) -> SegmentPlan:
    options = SegmentOptions(task=task, max_length=max_length, **GOOGLE["segments"])  # type: ignore[arg-type]
    return plan_segments(outline_shards(CORPUS.shards), options, hash_integers(seed))


def read_pairs(plan: SegmentPlan) -> list[Pair]:
    return [
        Pair(list(range(FIRST + a, FIRST + b)), list(range(FIRST + c, FIRST + d)), int(label))
        for (a, b, c, d), label in zip(plan.ranges.tolist(), plan.labels, strict=True)
    ]


@pytest.mark.parametrize("task", ["sop", "nsp"])
@pytest.mark.parametrize("max_length", [16, 64, 512])
def test_segments_equal_the_official_ones_for_the_same_draws(task: str, max_length: int) -> None:
    expected = []
    for index in range(len(DOCUMENTS)):
        source = CounterSource(combine(int(hash_integers(3)), index))
        expected += make_pairs(DOCUMENTS, index, source, max_length=max_length, task=task)
    assert read_pairs(plan_officially(task, 3, max_length)) == expected


@pytest.mark.parametrize("task", ["sop", "nsp"])
def test_segments_agree_with_the_official_ones_in_distribution(task: str) -> None:
    official, ours = [], []
    for seed in range(8):
        source = PythonSource(seed)
        for index in range(len(DOCUMENTS)):
            official += make_pairs(DOCUMENTS, index, source, max_length=64, task=task)
        ours += read_pairs(plan_officially(task, seed))
    labels = [[sum(pair.label == label for pair in pairs) for label in (0, 1)] for pairs in (official, ours)]
    assert stats.chi2_contingency(labels).pvalue > UNLIKELY
    for feature in (lambda pair: len(pair.first), lambda pair: len(pair.second)):
        assert stats.ks_2samp([feature(p) for p in official], [feature(p) for p in ours]).pvalue > UNLIKELY


def test_one_sentence_chunks_lift_the_official_share_of_label_one() -> None:
    labels = plan_officially("sop", 1, max_length=32).labels
    assert stats.binomtest(int(labels.sum()), len(labels), 0.5, alternative="greater").pvalue < UNLIKELY


def mask_officially(
    length: int, count: int, max_predictions: int, seed: int = 5
) -> tuple[list[Masked], list[list[int]], list[list[bool]], list[int]]:
    """Our masks of `count` random sequences of a length, with the sequences, their word starts and keys."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(FIRST, 1000, (count, length))
    token_ids[:, 0], token_ids[:, length // 3], token_ids[:, -1] = CLS, SEP, SEP
    starts = rng.random((count, length)) < 0.75
    codes = np.where(token_ids < FIRST, 2, starts).astype(np.uint8)
    options = MaskingOptions(**{**GOOGLE["masking"], "max_predictions": max_predictions})
    keys = rng.integers(0, 2**63, count).astype(np.uint64)
    spans = KeyedSpans(np.arange(count) * length, np.full(count, length, np.int32), keys)
    output = token_ids.copy()
    vocabulary = list_vocabulary(1000, frozenset(range(FIRST)), MASK, options)
    targets = mask_tokens(output, codes, spans, options, vocabulary, rate=0.15)
    ours = []
    for row in range(count):
        own = targets.positions // length == row
        groups = targets.groups[own]
        order = [np.flatnonzero(own)[groups == group] for group in range(1, groups.max() + 1)]
        ours.append(
            Masked(
                output[row].tolist(),
                (targets.positions[own] % length).tolist(),
                targets.labels[own].tolist(),
                [int(targets.sizes[places[0]]) for places in order],
                [(targets.positions[places] % length).tolist() for places in order],
            )
        )
    return ours, token_ids.tolist(), starts.tolist(), keys.tolist()


@pytest.mark.parametrize(("length", "max_predictions"), [(24, 20), (128, 20), (512, 20), (512, 77)])
def test_masks_equal_the_official_ones_for_the_same_draws(length: int, max_predictions: int) -> None:
    ours, token_ids, starts, keys = mask_officially(length, 20, max_predictions)
    for row, key in enumerate(keys):
        expected = mask(
            token_ids[row],
            starts[row],
            CounterSource(key),
            special=set(range(FIRST)),
            mask_id=MASK,
            vocab_size=1000,
            max_predictions=max_predictions,
        )
        assert ours[row] == expected


@pytest.mark.parametrize("max_predictions", [20, 77])
def test_masks_have_the_published_statistics_at_512(max_predictions: int) -> None:
    ours, _, _, _ = mask_officially(512, 1500, max_predictions)
    assert all(len(row.positions) == max_predictions for row in ours)
    sizes = np.bincount([size for row in ours for size in row.group_sizes], minlength=4)[1:]
    np.testing.assert_allclose(sizes / sizes.sum(), [0.57, 0.26, 0.17], atol=0.02)
    tokens = np.zeros(4)
    for row in ours:
        for size, group in zip(row.group_sizes, row.groups, strict=True):
            tokens[size] += len(group)
    np.testing.assert_allclose(tokens[1:] / tokens.sum(), [0.36, 0.33, 0.31], atol=0.03)


def test_masks_agree_with_the_official_ones_in_distribution() -> None:
    ours, token_ids, starts, _ = mask_officially(128, 1500, 20)
    source = PythonSource(1)
    rules = {"special": set(range(FIRST)), "mask_id": MASK, "vocab_size": 1000}
    official = [
        mask(ids, begins, source, **rules)  # type: ignore[arg-type]
        for ids, begins in zip(token_ids, starts, strict=True)
    ]
    sizes = [
        np.bincount([size for row in rows for size in row.group_sizes], minlength=4)[1:] for rows in (ours, official)
    ]
    assert stats.chi2_contingency(sizes).pvalue > UNLIKELY
    places = [np.bincount([p // 8 for row in rows for p in row.positions], minlength=16) for rows in (ours, official)]
    assert stats.chi2_contingency(places).pvalue > UNLIKELY


def test_official_groups_straddle_the_separator() -> None:
    ours, _, _, _ = mask_officially(64, 400, 20)
    separator = 64 // 3
    assert any(min(group) < separator < max(group) for row in ours for group in row.groups)


def test_the_prediction_cap_holds_in_batches() -> None:
    segments = SegmentOptions(max_length=512, **GOOGLE["segments"])
    stream = build_stream(CORPUS, segments=segments, masking=MaskingOptions(**GOOGLE["masking"]))
    most = 0
    for step in range(stream.steps_per_epoch):
        rows = stream.rows(step)
        counts = np.bincount(np.searchsorted(rows.plan.starts, rows.targets.positions, "right") - 1)
        most = max(most, counts.max())
        assert all(len(sequence) <= 512 for sequence in read_sequences(rows))
    assert most == 20
