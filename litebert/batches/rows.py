"""From planned sequences to rows of token ids: packing, special tokens, text and masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.epoch import SequenceTable
from litebert.batches.masking import mask_tokens
from litebert.batches.masking_kernels import SPECIAL, KeyedSpans, Targets, Vocabulary
from litebert.batches.options import BatchOptions, MaskingOptions
from litebert.batches.row_kernels import FlatRows, SpecialIds, copy_pieces, pack_rows, write_special_tokens
from litebert.batches.segments import Outline, ShardArrays
from litebert.core.errors import ConfigError


@dataclass(frozen=True)
class RowPlan:
    """The position of each sequence in the rows of a batch (S sequences in B rows of width T), from left to right."""

    sequences: SequenceTable
    rows: NDArray[np.int64]  # (S,)
    starts: NDArray[np.int64]  # (S,) flat index of each sequence's [CLS]
    num_rows: int
    width: int
    is_packed: bool
    first_row: int = 0  # within the rows of all ranks

    def take_share(self, rank: int, world_size: int) -> "RowPlan":
        """The rows of one rank."""
        if world_size == 1:
            return self
        if self.num_rows < world_size:
            raise ConfigError(
                "too-few-rows",
                f"a batch of {self.num_rows} rows cannot be divided among {world_size} processes; "
                "increase batch.sequences or batch.tokens",
            )
        first, stop = (self.num_rows * k // world_size for k in (rank, rank + 1))
        chosen = slice(*np.searchsorted(self.rows, [first, stop]).tolist())
        return RowPlan(
            sequences=self.sequences.take(chosen),
            rows=self.rows[chosen] - first,
            starts=self.starts[chosen] - first * self.width,
            num_rows=stop - first,
            width=self.width,
            is_packed=self.is_packed,
            first_row=self.first_row + first,
        )


def plan_rows(sequences: SequenceTable, options: BatchOptions, max_length: int) -> RowPlan:
    """One row per sequence, or, if packed, several sequences per row."""
    lengths, multiple = sequences.lengths, options.width_multiple
    if not options.is_packed:
        rows = np.arange(len(lengths))
        width = min(-(-int(lengths.max()) // multiple) * multiple, max_length)
        return RowPlan(sequences, rows, rows * width, len(lengths), width, is_packed=False)
    rows, columns = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    longest_first = np.argsort(-lengths, kind="stable")
    num_rows = pack_rows(lengths, longest_first, max_length, rows, columns)
    width = min(-(-int((columns + lengths).max()) // multiple) * multiple, max_length)
    starts = rows * width + columns
    order = np.argsort(starts)
    return RowPlan(sequences.take(order), rows[order], starts[order], num_rows, width, is_packed=True)


@dataclass(frozen=True)
class Rows:
    """A batch as numpy arrays, including why each token was masked (which `Batch` omits)."""

    token_ids: NDArray[np.int64]  # (B, T) after masking
    segment_ids: NDArray[np.int64]  # (B, T)
    targets: Targets
    plan: RowPlan


class Text(NamedTuple):
    """A corpus to copy tokens from."""

    shards: tuple[ShardArrays, ...]
    outline: Outline


@dataclass(frozen=True)
class RowWriter:
    """Writes planned rows: copies their text from the corpora and masks it."""

    texts: Sequence[Text]
    special: SpecialIds
    vocabulary: Vocabulary
    masking: MaskingOptions
    separates_documents: bool = False  # whether a sequence may cross documents, with a [SEP] at each border

    def write(self, plan: RowPlan, *, rate: float) -> Rows:
        """The rows of a plan, with this share of their tokens masked."""
        sequences, size = plan.sequences, plan.num_rows * plan.width
        flat = FlatRows(
            token_ids=np.full(size, self.special.pad_id),
            segment_ids=np.zeros(size, np.int64),
            word_codes=np.full(size, SPECIAL, np.uint8),
        )
        for corpus, text in enumerate(self.texts):
            own = slice(None) if len(self.texts) == 1 else sequences.corpora == corpus
            self._write_text(text, sequences.ranges[own], plan.starts[own], flat)
        targets = mask_tokens(
            flat.token_ids,
            flat.word_codes,
            KeyedSpans(plan.starts, sequences.lengths, sequences.mask_keys),
            self.masking,
            self.vocabulary,
            rate=rate,
        )
        shape = plan.num_rows, plan.width
        return Rows(flat.token_ids.reshape(shape), flat.segment_ids.reshape(shape), targets, plan)

    def _write_text(self, text: Text, ranges: NDArray[np.int64], starts: NDArray[np.int64], flat: FlatRows) -> None:
        """Write the sequences of one corpus: special tokens first, then the text of each shard."""
        borders = np.empty(0, np.int64)
        most_pieces = 2 * len(ranges)
        if self.separates_documents:
            borders = text.outline.borders
            most_pieces += int((ranges[:, 1] - ranges[:, 0]).sum())
        pieces = np.empty((most_pieces, 3), np.int64)
        pieces = pieces[: write_special_tokens(ranges, starts, borders, self.special, flat, pieces)]
        shard_starts = text.outline.shard_starts
        used = np.unique(np.searchsorted(shard_starts, pieces[:, 0], "right") - 1) if len(text.shards) > 1 else [0]
        for number in used:
            shard, base, stop = text.shards[number], shard_starts[number], shard_starts[number + 1]
            copy_pieces(np.asarray(shard.token_ids), np.asarray(shard.word_starts), base, stop, pieces, flat)
