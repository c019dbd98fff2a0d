"""Planning an epoch: which sequences make up each of its batches.

Every corpus is an endless stream of passes over its text, each pass planned anew and shuffled. An epoch takes the next
stretch of each stream (one whole pass, or as much as its weight asks for), shuffles them together, and cuts batches.
All of it follows from (seed, epoch), so any epoch can be planned without those before it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import BatchOptions, StreamOptions
from litebert.batches.randomness import combine, hash_integers, permute
from litebert.batches.segments import Outline, SegmentPlan, plan_segments
from litebert.core.compiled import compiled
from litebert.core.errors import ConfigError

# what a key is for; two purposes never share a generator
_SEGMENTS, _MASKS, _PASS_ORDER, _EPOCH_ORDER = range(4)
# A batch may contain a small corpus several times; far more than that is a typo
_MAX_PASSES = 1000


class SequenceTable(NamedTuple):
    """Planned sequences, a column for each fact (S sequences)."""

    ranges: NDArray[np.int64]  # (S, 4) as in SegmentPlan
    labels: NDArray[np.int8]  # (S,)
    is_lead: NDArray[np.bool_]  # (S,)
    lengths: NDArray[np.int32]  # (S,)
    corpora: NDArray[np.int16]  # (S,) which corpus the ranges speak of
    mask_keys: NDArray[np.uint64]  # (S,) one generator for each sequence

    def take(self, rows: NDArray[np.int64] | slice) -> "SequenceTable":
        return SequenceTable._make(column[rows] for column in self)


@dataclass(frozen=True)
class EpochPlan:
    """The sequences of an epoch in the order of its batches (K batches)."""

    sequences: SequenceTable
    batch_starts: NDArray[np.int64]  # (K + 1,)

    @property
    def num_batches(self) -> int:
        return len(self.batch_starts) - 1

    def batch(self, number: int) -> SequenceTable:
        """The sequences of one batch."""
        return self.sequences.take(slice(self.batch_starts[number], self.batch_starts[number + 1]))


@dataclass(frozen=True)
class EpochPlanner:
    """All that epochs have in common."""

    outlines: Sequence[Outline]
    names: Sequence[str]
    weights: Sequence[float]  # empty: each corpus once an epoch
    options: StreamOptions

    def plan_pass(self, corpus: int, number: int) -> SegmentPlan:
        """The sequences of one pass over one corpus, in corpus order."""
        key = hash_integers(self.options.seed, _SEGMENTS, corpus, self._cut(number))
        return plan_segments(self.outlines[corpus], self.options.segments, key, where=self.names[corpus])

    def plan_epoch(self, epoch: int) -> EpochPlan:
        """The batches of one epoch."""
        first_passes = [self.plan_pass(corpus, 0) for corpus in range(len(self.outlines))]
        counts = self._count_sequences(first_passes)
        stretches = [
            self._take_stretch(corpus, epoch * count, count, first_passes[corpus])
            for corpus, count in enumerate(counts)
        ]
        return _shuffle_and_cut(
            _lay_end_to_end(stretches), self.options.batch, hash_integers(self.options.seed, _EPOCH_ORDER, epoch)
        )

    def _cut(self, number: int) -> int:
        """Which way of cutting the text into sequences a pass has: as static masks mean it, unless it is said apart."""
        return _take_turns(number, self.options.segments.copies or self.options.masking.copies)

    def _count_sequences(self, plans: list[SegmentPlan]) -> list[int]:
        """How many sequences of each corpus an epoch has: always as many as fill one batch at least."""
        total = sum(len(plan) for plan in plans)
        shares = np.asarray(self.weights or [len(plan) for plan in plans])
        shares = shares / shares.sum()
        tokens_a_pass = total * sum(share * plan.lengths.mean() for share, plan in zip(shares, plans, strict=True))
        batch = self.options.batch
        # what is rounded for each corpus may be half a sequence less
        spare = len(plans) if self.weights else 0
        passes = max(1, -(-(batch.sequences + spare) // total), math.ceil(2 * batch.tokens / tokens_a_pass))
        if passes > _MAX_PASSES:
            raise ConfigError(
                f"batch: one batch would hold the text of {', '.join(self.names)} {passes:,} times over ({total:,} "
                "sequences a pass); use a smaller batch, or more text"
            )
        if not self.weights:
            return [len(plan) * passes for plan in plans]
        return [max(1, round(total * passes * share)) for share in shares]

    def _take_stretch(self, corpus: int, start: int, count: int, first_pass: SegmentPlan) -> SequenceTable:
        """`count` sequences of a corpus's endless stream, from number `start` on.

        Passes differ a little in length, as chance cuts them; all count as long as the first one, so that a place in
        the stream can be computed. A longer pass loses the few at the end of its shuffled order, a shorter one wraps.
        """
        nominal = len(first_pass)
        parts = []
        for number in range(start // nominal, -(-(start + count) // nominal)):
            plan = first_pass if self._cut(number) == 0 else self.plan_pass(corpus, number)
            order = permute(hash_integers(self.options.seed, _PASS_ORDER, corpus, number), len(plan))
            begin, end = max(start - number * nominal, 0), min(start + count - number * nominal, nominal)
            chosen = np.take(order, np.arange(begin, end), mode="wrap")
            masks = _take_turns(number, self.options.masking.copies)
            keys = _derive_keys(hash_integers(self.options.seed, _MASKS, corpus, masks), chosen)
            owner = np.full(len(chosen), corpus, np.int16)
            planned = plan.ranges[chosen], plan.labels[chosen], plan.is_lead[chosen], plan.lengths[chosen]
            parts.append(SequenceTable(*planned, owner, keys))
        return _lay_end_to_end(parts)


def _take_turns(number: int, copies: int | None) -> int:
    """Which of some copies a pass has; without a number, each pass has its own."""
    return number if copies is None else number % copies


def _lay_end_to_end(tables: list[SequenceTable]) -> SequenceTable:
    return SequenceTable._make(np.concatenate(columns) for columns in zip(*tables, strict=True))


def _shuffle_and_cut(sequences: SequenceTable, options: BatchOptions, key: np.uint64) -> EpochPlan:
    lengths = sequences.lengths
    order = permute(hash_integers(int(key), 0), len(lengths))
    per_batch = options.sequences or max(1, round(options.tokens / float(lengths.mean())))
    if options.bucket > 1 and not options.is_packed:
        order = _sort_windows(order, lengths, options.bucket * per_batch)
    starts = _cut_batches(lengths[order], options)
    order, starts = _shuffle_batches(order, starts, hash_integers(int(key), 1))
    return EpochPlan(sequences.take(order), starts)


def _sort_windows(order: NDArray[np.int64], lengths: NDArray[np.int32], window: int) -> NDArray[np.int64]:
    """Sort by length within windows, up and down in turn, so that a batch across a border is of one length too."""
    numbers = np.arange(len(order)) // window
    signed = np.where(numbers % 2, -1, 1) * lengths[order]
    return order[np.lexsort((signed, numbers))]


def _cut_batches(lengths: NDArray[np.int32], options: BatchOptions) -> NDArray[np.int64]:
    """Where each batch begins, and where the last one ends; what does not fill a batch is left over."""
    if options.sequences:
        return np.arange(0, len(lengths) + 1, options.sequences, dtype=np.int64)
    return _cut_by_tokens(lengths, options.tokens)


@compiled
def _cut_by_tokens(lengths: NDArray[np.int32], tokens: int) -> NDArray[np.int64]:
    starts = np.empty(len(lengths) + 1, np.int64)
    starts[0] = 0
    count = total = 0
    for k in range(len(lengths)):
        if total + lengths[k] > tokens and k > starts[count]:
            count += 1
            starts[count] = k
            total = 0
        total += lengths[k]
    return starts[: count + 1].copy()


def _shuffle_batches(
    order: NDArray[np.int64], starts: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Batches of all lengths in random order; the sequences follow their batch."""
    batches = permute(key, len(starts) - 1)
    sizes = np.diff(starts)[batches]
    shuffled = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(shuffled[-1]) - np.repeat(shuffled[:-1], sizes)
    return order[np.repeat(starts[:-1][batches], sizes) + within], shuffled


@compiled
def _derive_keys(key: np.uint64, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    keys = np.empty(len(numbers), np.uint64)
    for k in range(len(numbers)):
        keys[k] = combine(key, np.uint64(numbers[k]))
    return keys
