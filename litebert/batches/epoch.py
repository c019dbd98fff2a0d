"""Planning an epoch: which sequences form each of its batches.

Every corpus is an endless stream of passes over its text, each pass planned and shuffled again. An epoch takes the next
sequences of each stream (one full pass, or as many as the corpus's weight says), shuffles them together, and cuts them
into batches. All of it depends only on (seed, epoch), so any epoch can be planned without the earlier ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import BatchOptions, StreamOptions
from litebert.batches.random_kernels import derive_keys, hash_integers, permute
from litebert.batches.segments import Outline, SegmentPlan, plan_segments
from litebert.core.errors import ConfigError

# the purpose of a key; two purposes never share a generator
_SEGMENTS, _MASKS, _PASS_ORDER, _EPOCH_ORDER = range(4)
# A batch may contain a small corpus several times; far more than that is a typo
_MAX_PASSES = 1000


class SequenceTable(NamedTuple):
    """Planned sequences, one column per fact (S sequences)."""

    ranges: NDArray[np.int64]  # (S, 4) as in SegmentPlan
    labels: NDArray[np.int8]  # (S,)
    opens_document: NDArray[np.bool_]  # (S,)
    lengths: NDArray[np.int32]  # (S,)
    corpora: NDArray[np.int16]  # (S,) the corpus that the ranges refer to
    segmentations: NDArray[np.int32]  # (S,) the segmentation of that corpus
    numbers: NDArray[np.int32]  # (S,) the sequence's number in that segmentation
    mask_keys: NDArray[np.uint64]  # (S,) the seed of each sequence's masks

    def take(self, rows: NDArray[np.int64] | slice) -> "SequenceTable":
        return SequenceTable._make([column[rows] for column in self])


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
    """What all epochs have in common."""

    outlines: Sequence[Outline]
    names: Sequence[str]
    weights: Sequence[float]  # empty: each corpus once per epoch
    options: StreamOptions

    def plan_segmentation(self, corpus: int, segmentation: int) -> SegmentPlan:
        """The sequences of one segmentation of one corpus, in corpus order."""
        key = hash_integers(self.options.seed, _SEGMENTS, corpus, segmentation)
        return plan_segments(self.outlines[corpus], self.options.segments, key, where=self.names[corpus])

    def plan_epoch(self, epoch: int) -> EpochPlan:
        """The batches of one epoch."""
        firsts = [self.plan_segmentation(corpus, 0) for corpus in range(len(self.outlines))]
        tables: list[SequenceTable] = []
        for corpus, count in enumerate(self._count_sequences(firsts)):
            tables += self._take_sequences(corpus, epoch * count, count, firsts[corpus])
        sequences = SequenceTable._make([np.concatenate(columns) for columns in zip(*tables, strict=True)])
        return _cut_batches(sequences, self.options.batch, hash_integers(self.options.seed, _EPOCH_ORDER, epoch))

    def _count_sequences(self, plans: list[SegmentPlan]) -> list[int]:
        """How many sequences of each corpus an epoch has: always enough to fill at least one batch."""
        total = sum(len(plan) for plan in plans)
        shares = np.asarray(self.weights or [len(plan) for plan in plans])
        shares = shares / shares.sum()
        tokens_per_pass = total * sum(share * plan.lengths.mean() for share, plan in zip(shares, plans, strict=True))
        batch = self.options.batch
        # rounding may cost each corpus half a sequence
        spare = len(plans) if self.weights else 0
        passes = max(1, -(-(batch.sequences + spare) // total), math.ceil(2 * batch.tokens / tokens_per_pass))
        if passes > _MAX_PASSES:
            raise ConfigError(
                "batch-too-large",
                f"batch: one batch would contain the text of {', '.join(self.names)} {passes:,} times "
                f"({total:,} sequences per pass); use a smaller batch, or more text",
            )
        if not self.weights:
            return [len(plan) * passes for plan in plans]
        return [max(1, round(total * passes * share)) for share in shares]

    def _take_sequences(self, corpus: int, start: int, count: int, first: SegmentPlan) -> list[SequenceTable]:
        """`count` sequences of a corpus's endless stream from number `start` on, one table per pass.

        Passes differ slightly in length, because their segmentation is random. All count as long as the first one, so
        that a place in the stream can be computed: a longer pass loses the last few of its shuffled order, a shorter
        one repeats its first few.
        """
        options, nominal = self.options, len(first)
        segment_copies, mask_copies = options.segments.copies or options.masking.copies, options.masking.copies
        tables = []
        for number in range(start // nominal, -(-(start + count) // nominal)):
            segmentation = number if segment_copies is None else number % segment_copies
            masks = number if mask_copies is None else number % mask_copies
            plan = first if segmentation == 0 else self.plan_segmentation(corpus, segmentation)
            order = permute(hash_integers(options.seed, _PASS_ORDER, corpus, number), len(plan))
            begin, end = max(start - number * nominal, 0), min(start + count - number * nominal, nominal)
            chosen = np.take(order, np.arange(begin, end), mode="wrap")
            tables.append(
                SequenceTable(
                    ranges=plan.ranges[chosen],
                    labels=plan.labels[chosen],
                    opens_document=plan.opens_document[chosen],
                    lengths=plan.lengths[chosen],
                    corpora=np.full(len(chosen), corpus, np.int16),
                    segmentations=np.full(len(chosen), segmentation, np.int32),
                    numbers=chosen.astype(np.int32),
                    mask_keys=derive_keys(hash_integers(options.seed, _MASKS, corpus, masks), chosen),
                )
            )
        return tables


def _cut_batches(sequences: SequenceTable, options: BatchOptions, key: np.uint64) -> EpochPlan:
    """Shuffle sequences and cut them into batches; the last few, which fill no batch, are left out."""
    order = permute(hash_integers(int(key), 0), len(sequences.lengths))

    # Against padding, sort by length within windows of some batches. Directions alternate, so that a batch across the
    # border of two windows has similar lengths too.
    if options.bucket > 1 and not options.is_packed:
        mean_length = float(sequences.lengths.mean())
        per_batch = options.sequences or max(1, round(options.tokens / mean_length))
        windows = np.arange(len(order)) // (options.bucket * per_batch)
        signed_lengths = np.where(windows % 2, -1, 1) * sequences.lengths[order]
        order = order[np.lexsort((signed_lengths, windows))]

    if options.sequences:
        starts = np.arange(0, len(order) + 1, options.sequences, dtype=np.int64)
    else:
        ends = np.cumsum(sequences.lengths[order], dtype=np.int64)
        cuts, used = [0], 0
        while (stop := int(np.searchsorted(ends, used + options.tokens, "right"))) < len(ends):
            cuts.append(stop)  # the first sequence that does not fit
            used = int(ends[stop - 1])
        starts = np.array(cuts, np.int64)

    # the batches in random order, independent of their lengths
    batches = permute(hash_integers(int(key), 1), len(starts) - 1)
    sizes = np.diff(starts)[batches]
    shuffled_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(shuffled_starts[-1]) - np.repeat(shuffled_starts[:-1], sizes)
    return EpochPlan(sequences.take(order[np.repeat(starts[:-1][batches], sizes) + within]), shuffled_starts)
