"""From sentence offsets to sequences: which stretches of text form a sequence, in which order, with which label.

A plan is made from the offsets alone; no token id is read. Every sequence is two ranges of token addresses (the second
is empty in the formats with one segment), so the plan of 100 million tokens takes a few tens of megabytes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import SegmentOptions
from litebert.batches.random_kernels import permute
from litebert.batches.segment_kernels import (
    SINGLE_SENTENCE,
    TASKS,
    PairRules,
    Pairs,
    exchange_seconds,
    plan_runs,
    plan_segment_pairs,
    plan_sentence_pairs,
)
from litebert.core.errors import DataError

NO_LABEL = -1

# Task -> the label of IN_ORDER, SWAPPED, RANDOM. Official ALBERT gives a random document label 1 in SOP too; the
# three-way task is StructBERT's (Wang et al. 2019).
TASK_LABELS = np.array([[-1, -1, -1], [0, 1, 1], [0, 1, 1], [0, 1, 2]], np.int8)


class NoSequencesError(DataError):
    """The text yields no sequence of the requested kind."""


class ShardArrays(Protocol):
    """The arrays of a shard that batches are made from."""

    @property
    def token_ids(self) -> NDArray[np.generic]: ...
    @property
    def word_starts(self) -> NDArray[np.uint8]: ...
    @property
    def sentence_offsets(self) -> NDArray[np.int64]: ...
    @property
    def document_offsets(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class Outline:
    """The offsets of a corpus whose shards are concatenated. A token address counts from the corpus's first token."""

    sentence_starts: NDArray[np.int64]  # token address of each sentence, and the end
    document_starts: NDArray[np.int64]  # sentence index of each document, and the end
    shard_starts: NDArray[np.int64]  # token address of each shard, and the end

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """The token address of each document."""
        return np.asarray(self.sentence_starts[self.document_starts[:-1]])


@dataclass(frozen=True)
class SegmentPlan:
    """The sequences of one pass over a corpus, in corpus order (S sequences)."""

    ranges: NDArray[np.int64]  # (S, 4) first start, first stop, second start, second stop, as they will be displayed
    labels: NDArray[np.int8]  # (S,) 0 original order, 1 swapped or random (three-way: 2 random), -1 without a task
    opens_document: NDArray[np.bool_]  # (S,) contains a document's opening, whose style reveals the order
    lengths: NDArray[np.int32]  # (S,) tokens with [CLS] and [SEP]

    def __len__(self) -> int:
        return len(self.lengths)


def outline_shards(shards: tuple[ShardArrays, ...]) -> Outline:
    """The offsets of all shards as one corpus; those of a single shard stay memory-mapped."""
    token_bases = np.cumsum([0, *(int(shard.sentence_offsets[-1]) for shard in shards)]).astype(np.int64)
    sentence_bases = np.cumsum([0, *(int(shard.document_offsets[-1]) for shard in shards)]).astype(np.int64)
    if len(shards) == 1:
        return Outline(np.asarray(shards[0].sentence_offsets), np.asarray(shards[0].document_offsets), token_bases)
    sentences = [shard.sentence_offsets[:-1] + base for shard, base in zip(shards, token_bases[:-1], strict=True)]
    documents = [shard.document_offsets[:-1] + base for shard, base in zip(shards, sentence_bases[:-1], strict=True)]
    return Outline(
        np.concatenate([*sentences, token_bases[-1:]]),
        np.concatenate([*documents, sentence_bases[-1:]]),
        token_bases,
    )


def plan_segments(outline: Outline, options: SegmentOptions, key: np.uint64, *, where: str = "corpus") -> SegmentPlan:
    """The sequences of one pass over a corpus; `key` seeds everything random about it."""
    num_documents = len(outline.document_starts) - 1
    if options.draws_other_documents and num_documents < 2:
        is_task = options.task in ("nsp", "three-way")
        name, fix = ("task", "sop") if is_task else ("single_sentence", "merge_next")
        raise NoSequencesError(
            "one-document",
            f"{where}: segments.{name} = '{getattr(options, name)}' draws from another document, but there is "
            f"only one; use segments.{name} = '{fix}', or add documents",
        )
    plan = (_plan_pairs if options.is_pair else _plan_runs)(outline, options, key)
    if not len(plan):
        raise NoSequencesError(
            "no-pairs",
            f"{where}: {num_documents} documents yield no {options.format}: no two sentences form a pair; "
            "use segments.format = 'doc-sentences' with segments.task = 'none', or split the text into sentences",
        )
    return plan


def _plan_pairs(outline: Outline, options: SegmentOptions, key: np.uint64) -> SegmentPlan:
    sentences, documents = outline.sentence_starts, outline.document_starts
    rules = PairRules(
        room=options.room,
        short_rate=options.shortened_share,
        task=TASKS.index(options.task),
        single_sentence=SINGLE_SENTENCE.index(options.single_sentence),
        overfills=options.fill == "overfill",
        fills_from_either_end=options.fill_from == "either",
        is_target_per_document=options.target_per == "document",
        exchanges=options.negatives == "exchange",
    )
    most = len(sentences) - 1  # each pair uses up at least one sentence
    pairs = Pairs(
        np.empty((most, 4), np.int64), np.empty(most, np.int8), np.empty(most, np.bool_), np.empty(most, np.int64)
    )
    plan = plan_segment_pairs if options.format == "segment-pair" else plan_sentence_pairs
    count = plan(sentences, documents, rules, key, pairs)
    pairs = Pairs._make(column[:count].copy() for column in pairs)
    if rules.exchanges:
        # the text after a document's opening has a distinct style, so openings are exchanged only among themselves
        for is_opening in (True, False):
            chosen = np.flatnonzero((pairs.exchanging >= 0) & (pairs.opens_document == is_opening))
            chosen = chosen[permute(key, len(chosen))]  # random among equal lengths
            longest_first = np.argsort(pairs.ranges[chosen, 2] - pairs.ranges[chosen, 3], kind="stable")
            exchange_seconds(sentences, documents, chosen[longest_first], pairs, key)
    ranges = pairs.ranges
    lengths = ranges[:, 1] - ranges[:, 0] + ranges[:, 3] - ranges[:, 2] + 3
    labels = TASK_LABELS[rules.task][pairs.relations]
    return SegmentPlan(ranges, labels, pairs.opens_document, lengths.astype(np.int32))


def _plan_runs(outline: Outline, options: SegmentOptions, key: np.uint64) -> SegmentPlan:
    # a sentence longer than the room becomes several sequences
    most = len(outline.sentence_starts) - 1 + int(outline.sentence_starts[-1]) // options.room
    ranges, lengths, opens_document = np.zeros((most, 4), np.int64), np.empty(most, np.int32), np.empty(most, np.bool_)
    count = plan_runs(
        outline.sentence_starts,
        outline.document_starts,
        options.room,
        options.shortened_share,
        options.format == "full-sentences",
        key,
        ranges,
        lengths,
        opens_document,
    )
    labels = np.full(count, NO_LABEL, np.int8)
    return SegmentPlan(ranges[:count].copy(), labels, opens_document[:count].copy(), lengths[:count].copy())
