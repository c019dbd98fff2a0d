"""Masking: the rate, p(n), whole words, 80/10/10, and what must never be touched."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refuses
from scipy import stats
from toy_corpus import (
    CLS,
    FIRST,
    MASK,
    SEP,
    ToyCorpus,
    build_corpus,
    build_stream,
    random_documents,
    read_sequences,
    unmask,
)

from litebert.batches.options import BatchOptions, MaskingOptions, SegmentOptions
from litebert.batches.rows import Rows
from litebert.core.errors import ConfigError

CORPUS = build_corpus(random_documents(600), num_shards=2)
UNLIKELY = 1e-6


def rows_of(corpus: ToyCorpus = CORPUS, *, max_length: int = 128, steps: int = 6, **options: Any) -> list[Rows]:
    stream = build_stream(
        corpus,
        segments=SegmentOptions(max_length=max_length),
        masking=MaskingOptions(**options),
        batch=BatchOptions(sequences=64),
    )
    return [stream.rows(step) for step in range(steps)]


def list_groups(rows: Rows) -> list[NDArray[np.int64]]:
    """The flat positions of each group."""
    sequence = np.searchsorted(rows.plan.starts, rows.targets.positions, "right")
    keys = sequence * 10_000 + rows.targets.groups
    order = np.argsort(keys, kind="stable")
    borders = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(rows.targets.positions[order], borders)


def begins_word(corpus: ToyCorpus, rows: Rows) -> NDArray[np.bool_]:
    """By flat position: does a word begin here? The first text of a segment does, even where trimming cut a word."""
    flat = unmask(rows)
    is_text = flat >= FIRST
    starts = np.zeros(len(flat), bool)
    starts[is_text] = corpus.is_word_start[flat[is_text] - FIRST]
    return starts | (is_text & np.isin(np.roll(flat, 1), (CLS, SEP)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [6 / 11, 3 / 11, 2 / 11]),
        ({"max_ngram": 2}, [2 / 3, 1 / 3]),
        ({"max_ngram": 1}, [1.0]),
        ({"max_ngram": 4}, [12 / 25, 6 / 25, 4 / 25, 3 / 25]),
        ({"kind": "whole-word"}, [1.0]),
        ({"kind": "span", "max_span": 3}, [1 / 2.44, 0.8 / 2.44, 0.64 / 2.44]),
    ],
)
def test_groups_have_n_words_as_often_as_p_of_n_says(options: dict[str, Any], expected: list[float]) -> None:
    counts = np.zeros(len(expected))
    corpus = build_corpus([[25] * 40] * 150)  # every segment has room for the longest group
    for rows in rows_of(corpus, **options, max_length=256, steps=8):
        starts = begins_word(corpus, rows)
        for group in list_groups(rows):
            assert (np.diff(group) == 1).all()
            counts[starts[group].sum() - 1] += 1
    assert counts.sum() > 3000
    if len(expected) > 1:
        assert stats.chisquare(counts, np.array(expected) * counts.sum()).pvalue > 1e-3
        # and the test can tell: the reversed p(n), or a uniform one, fails
        for wrong in (expected[::-1], np.full(len(expected), 1 / len(expected))):
            assert stats.chisquare(counts, np.array(wrong) * counts.sum()).pvalue < UNLIKELY


@pytest.mark.parametrize(
    ("kind", "token_share"), [("ngram", 0), ("whole-word", 0), ("token", 0), ("span", 0), ("ngram", 0.5)]
)
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_masked_share_is_the_rate(kind: str, token_share: float, rate: float) -> None:
    batches = rows_of(kind=kind, token_share=token_share, rate=rate, steps=10)
    masked = np.array([len(rows.targets.positions) for rows in batches])
    text = np.array([(unmask(rows) >= FIRST).sum() for rows in batches])
    error = stats.sem(masked / text)
    assert abs(masked.sum() / text.sum() - rate) < max(4 * error, 0.003)
    assert error < 0.01


@pytest.mark.parametrize("kind", ["ngram", "whole-word", "token", "span"])
def test_at_a_rate_of_nothing_nothing_is_hidden(kind: str) -> None:
    for rows in rows_of(kind=kind, rate=0.0):
        assert len(rows.targets.positions) == 0
        assert MASK not in rows.token_ids


@pytest.mark.parametrize("kind", ["ngram", "whole-word", "token", "span"])
def test_special_tokens_and_padding_are_never_chosen(kind: str) -> None:
    for rows in rows_of(kind=kind, rate=0.5, steps=2):
        assert (rows.targets.labels >= FIRST).all()
        assert len(np.unique(rows.targets.positions)) == len(rows.targets.positions)
        for sequence in read_sequences(rows):
            assert (sequence[0], sequence[-1]) == (CLS, SEP)
        assert (np.diff(rows.targets.positions) > 0).all()


@pytest.mark.parametrize("kind", ["ngram", "whole-word", "span"])
def test_whole_words_are_masked_and_groups_stay_in_their_segment(kind: str) -> None:
    for rows in rows_of(kind=kind, steps=2):
        flat, starts = unmask(rows), begins_word(CORPUS, rows)
        for group in list_groups(rows):
            assert starts[group[0]]
            after = group[-1] + 1
            assert starts[after] or flat[after] < FIRST  # the next word, or [SEP]
            assert (flat[group[0] : after] >= FIRST).all()


def test_token_masking_splits_words() -> None:
    (rows,) = rows_of(kind="token", steps=1)
    assert not begins_word(CORPUS, rows)[rows.targets.positions].all()


def test_in_a_share_of_the_sequences_single_tokens_are_hidden() -> None:
    corpus = build_corpus(random_documents(600), word_start_rate=0.3)
    is_split = []
    for rows in rows_of(corpus, token_share=0.25, steps=10):
        ends = begins_word(corpus, rows) | (unmask(rows) < FIRST)  # the next word, or [SEP]
        split = {
            np.searchsorted(rows.plan.starts, group[0], "right") - 1
            for group in list_groups(rows)
            if not (ends[group[0]] and ends[group[-1] + 1])
        }
        is_split += [row in split for row in range(len(rows.plan.starts))]
    assert stats.binomtest(sum(is_split), len(is_split), 0.25).pvalue > UNLIKELY
    assert stats.binomtest(sum(is_split), len(is_split), 0.15).pvalue < UNLIKELY


def test_four_fifths_become_mask_a_tenth_random_a_tenth_stay() -> None:
    counts = np.zeros(3)
    for rows in rows_of(steps=20):
        now = rows.token_ids.reshape(-1)[rows.targets.positions]
        is_masked, is_kept = now == MASK, now == rows.targets.labels
        counts += [is_masked.sum(), (~is_masked & ~is_kept).sum(), is_kept.sum()]
        assert (rows.targets.actions == np.select([is_masked, is_kept], [0, 2], 1)).all()
    assert stats.chisquare(counts, np.array([0.8, 0.1, 0.1]) * counts.sum()).pvalue > UNLIKELY
    assert stats.chisquare(counts, np.array([0.8, 0.12, 0.08]) * counts.sum()).pvalue < UNLIKELY


def test_one_action_for_a_whole_ngram_or_one_for_each_token() -> None:
    def count_mixed(**options: Any) -> int:
        (rows,) = rows_of(steps=1, **options)
        action = dict(zip(rows.targets.positions, rows.targets.actions, strict=True))
        return sum(len({action[position] for position in group}) > 1 for group in list_groups(rows))

    assert count_mixed(replace_per="ngram") == 0
    assert count_mixed(replace_per="token") > 20


@pytest.mark.parametrize("random_from_all", [False, True])
def test_random_tokens_are_uniform_over_the_ordinary_ids(random_from_all: bool) -> None:
    corpus = build_corpus([[2] * 40] * 3)
    drawn = []
    for rows in rows_of(corpus, steps=20, mask_share=0.0, random_share=1.0, rate=0.5, random_from_all=random_from_all):
        drawn.append(rows.token_ids.reshape(-1)[rows.targets.positions])
    counts = np.bincount(np.concatenate(drawn), minlength=FIRST + 240)
    assert (counts[:FIRST] > 0).all() == random_from_all
    assert (counts[:FIRST] == 0).all() != random_from_all
    assert stats.chisquare(counts[0 if random_from_all else FIRST :]).pvalue > UNLIKELY


def test_every_word_is_equally_likely_to_be_masked() -> None:
    corpus = build_corpus([[30] * 2] * 400, word_start_rate=1.0)  # pairs of 30 + 30 words
    hits = np.zeros(63)
    for rows in rows_of(corpus, steps=30, kind="whole-word", max_length=63):
        full = rows.plan.sequences.lengths == 63
        columns = rows.targets.positions % rows.plan.width
        hits += np.bincount(columns[full[rows.targets.positions // rows.plan.width]], minlength=63)
    text = np.r_[hits[1:31], hits[32:62]]
    assert hits.sum() == text.sum()
    assert stats.chisquare(text).pvalue > UNLIKELY


def test_the_rate_follows_its_schedule() -> None:
    options = MaskingOptions(rate=0.3, final_rate=0.1, rate_steps=100)
    assert [options.rate_at(step) for step in (0, 50, 100, 1000)] == pytest.approx([0.3, 0.2, 0.1, 0.1])
    stream = build_stream(CORPUS, masking=options, batch=BatchOptions(sequences=64))
    shares = [
        len(rows.targets.positions) / (unmask(rows) >= FIRST).sum() for rows in (stream.rows(0), stream.rows(100))
    ]
    assert shares == pytest.approx([0.3, 0.1], abs=0.02)


@pytest.mark.parametrize("copies", [1, 2])
def test_static_copies_come_round_and_dynamic_masks_do_not(copies: int) -> None:
    # one batch is one pass over the corpus: 200 pairs of two sentences
    corpus = build_corpus([[5, 5]] * 200)

    def passes(copies: int | None) -> list[set[bytes]]:
        stream = build_stream(corpus, masking=MaskingOptions(copies=copies), batch=BatchOptions(sequences=200))
        assert stream.steps_per_epoch == 1
        return [{row.tobytes() for row in stream.rows(step).token_ids} for step in range(4)]

    static, dynamic = passes(copies), passes(None)
    assert static[0] == static[copies] == static[2]
    assert (static[0] == static[1]) == (copies == 1)
    assert all(dynamic[0] != other for other in dynamic[1:])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"rate": 1.5}, "out-of-range"),
        ({"mask_share": 0.95}, "conflicting-options"),
        ({"token_share": 1.5}, "out-of-range"),
        ({"final_rate": 0.1}, "conflicting-options"),
        ({"rate_steps": 10}, "conflicting-options"),
        ({"copies": 10, "final_rate": 0.1, "rate_steps": 10}, "conflicting-options"),
        ({"max_predictions": 20}, "conflicting-options"),
        ({"max_ngram": 0}, "out-of-range"),
        ({"copies": 0}, "out-of-range"),
        ({"max_predictions": 0, "fills_budget": True}, "out-of-range"),
        ({"kind": "span", "span_stop_rate": 0.0}, "out-of-range"),
    ],
)
def test_impossible_masks_are_refused(options: dict[str, Any], code: str) -> None:
    with refuses(ConfigError, code):
        MaskingOptions(**options)
