"""From sentence offsets to sequences: which stretches of text stand together, in which order, under which label.

A plan is made from the offsets alone; no token id is read. Every sequence is two ranges of token addresses (the second
is empty in the formats of one segment), so a plan of 100 million tokens is a few tens of megabytes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import SegmentOptions
from litebert.batches.pair_kernels import PairRules, Pairs, exchange_seconds, plan_segment_pairs, plan_sentence_pairs
from litebert.batches.randomness import permute
from litebert.batches.relations import SINGLE_SENTENCE, TASK_LABELS, TASKS
from litebert.batches.run_kernels import plan_runs
from litebert.core.errors import DataError

NO_LABEL = -1


class NoSequencesError(DataError):
    """A text of which no sequence of the wanted kind can be made."""


class HasOffsets(Protocol):
    """What of a shard the plan reads."""

    @property
    def sentence_offsets(self) -> NDArray[np.int64]: ...
    @property
    def document_offsets(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class Outline:
    """Where everything begins in a corpus whose shards are laid end to end; a token address counts from its start."""

    sentence_starts: NDArray[np.int64]  # token address of each sentence, and the end
    document_starts: NDArray[np.int64]  # sentence index of each document, and the end
    shard_starts: NDArray[np.int64]  # token address of each shard, and the end


@dataclass(frozen=True)
class SegmentPlan:
    """The sequences of one pass over a corpus, in corpus order (S sequences)."""

    ranges: NDArray[np.int64]  # (S, 4) first start, first stop, second start, second stop, as they will be displayed
    labels: NDArray[np.int8]  # (S,) 0 original order, 1 swapped or random (three-way: 2 random), -1 without a task
    is_lead: NDArray[np.bool_]  # (S,) holds the beginning of a document, whose style gives the order away
    lengths: NDArray[np.int32]  # (S,) tokens with [CLS] and [SEP]

    def __len__(self) -> int:
        return len(self.lengths)


def outline_shards(shards: tuple[HasOffsets, ...]) -> Outline:
    """Lay the offsets of shards end to end; one shard alone stays memory-mapped."""
    token_bases = np.cumsum([0, *(int(shard.sentence_offsets[-1]) for shard in shards)])
    sentence_bases = np.cumsum([0, *(int(shard.document_offsets[-1]) for shard in shards)])
    return Outline(
        _lay_end_to_end([np.asarray(shard.sentence_offsets) for shard in shards], token_bases),
        _lay_end_to_end([np.asarray(shard.document_offsets) for shard in shards], sentence_bases),
        token_bases.astype(np.int64),
    )


def plan_segments(outline: Outline, options: SegmentOptions, key: np.uint64, *, where: str = "corpus") -> SegmentPlan:
    """One pass over the offsets; `key` names everything random about it."""
    num_documents = len(outline.document_starts) - 1
    if options.draws_other_documents and num_documents < 2:
        is_task = options.task in ("nsp", "three-way")
        key_name, remedy = ("task", "sop") if is_task else ("single_sentence", "merge_next")
        raise NoSequencesError(
            f"{where}: segments.{key_name} = '{getattr(options, key_name)}' draws from another document and there is "
            f"only one; use segments.{key_name} = '{remedy}', or add documents"
        )
    plan = (_plan_pairs if options.is_pair else _plan_runs)(outline, options, key)
    if not len(plan):
        raise NoSequencesError(
            f"{where}: not one {options.format} in {num_documents} documents: no two sentences make a pair; "
            "use segments.format = 'doc-sentences' with segments.task = 'none', or split the text into sentences"
        )
    return plan


def _plan_pairs(outline: Outline, options: SegmentOptions, key: np.uint64) -> SegmentPlan:
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
    most = len(outline.sentence_starts) - 1  # each pair takes at least one sentence
    pairs = Pairs(
        np.empty((most, 4), np.int64), np.empty(most, np.int8), np.empty(most, np.bool_), np.empty(most, np.int64)
    )
    plan = plan_segment_pairs if options.format == "segment-pair" else plan_sentence_pairs
    count = plan(outline.sentence_starts, outline.document_starts, rules, key, pairs)
    pairs = Pairs._make(column[:count].copy() for column in pairs)
    if rules.exchanges:
        # what follows the beginning of a document has a style of its own: it is exchanged for its like
        for is_lead in (True, False):
            order = _order_of_exchange(pairs, is_lead, key)
            exchange_seconds(outline.sentence_starts, outline.document_starts, order, pairs, key)
    ranges = pairs.ranges
    lengths = ranges[:, 1] - ranges[:, 0] + ranges[:, 3] - ranges[:, 2] + 3
    return SegmentPlan(ranges, TASK_LABELS[rules.task][pairs.relations], pairs.is_lead, lengths.astype(np.int32))


def _order_of_exchange(pairs: Pairs, is_lead: bool, key: np.uint64) -> NDArray[np.int64]:
    """The waiting pairs of a kind by the length of their second segment, longest first, equals in random order."""
    waiting = np.flatnonzero((pairs.waiting >= 0) & (pairs.is_lead == is_lead))
    waiting = waiting[permute(key, len(waiting))]
    lengths = pairs.ranges[waiting, 3] - pairs.ranges[waiting, 2]
    return waiting[np.argsort(-lengths, kind="stable")]


def _plan_runs(outline: Outline, options: SegmentOptions, key: np.uint64) -> SegmentPlan:
    # a sentence longer than the room becomes several sequences
    most = len(outline.sentence_starts) - 1 + int(outline.sentence_starts[-1]) // options.room
    ranges, lengths, is_lead = np.zeros((most, 4), np.int64), np.empty(most, np.int32), np.empty(most, np.bool_)
    may_cross = options.format == "full-sentences"
    starts = outline.sentence_starts, outline.document_starts
    count = plan_runs(*starts, options.room, options.shortened_share, may_cross, key, ranges, lengths, is_lead)
    labels = np.full(count, NO_LABEL, np.int8)
    return SegmentPlan(ranges[:count].copy(), labels, is_lead[:count].copy(), lengths[:count].copy())


def _lay_end_to_end(offsets: list[NDArray[np.int64]], bases: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(offsets) == 1:
        return offsets[0]
    moved = [part[:-1] + base for part, base in zip(offsets, bases[:-1], strict=True)]
    return np.concatenate([*moved, bases[-1:]]).astype(np.int64)
