"""Pairs as batches: the text of each pair with its special tokens, sorted by length, masked or not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.batch import Batch, build_batch
from litebert.batches.epoch import SequenceTable
from litebert.batches.masking import list_vocabulary
from litebert.batches.options import BatchOptions, MaskingOptions
from litebert.batches.random_kernels import derive_keys, hash_integers
from litebert.batches.row_kernels import SpecialIds
from litebert.batches.rows import RowWriter, plan_rows
from litebert.evaluation.intrinsic.pairs import PairTable
from litebert.evaluation.intrinsic.passages import Passages
from litebert.text.tokenizer import Tokenizer

_TOKENS = 8192  # per batch, padding included


class NumberedBatch(NamedTuple):
    """A batch, and which pair of its table each row is."""

    numbers: NDArray[np.int64]
    batch: Batch


@dataclass(frozen=True)
class PairWriter:
    """Writes the pairs of a text into batches."""

    passages: Passages
    length: int
    writer: RowWriter
    seed: int

    def iter_batches(self, pairs: PairTable, *, is_masked: bool = False) -> Iterator[NumberedBatch]:
        """The pairs, longest first, so that a batch that does not fit in memory fails at once."""
        order = np.argsort(-pairs.lengths, kind="stable")
        start = 0
        while start < len(order):
            rows = max(1, _TOKENS // int(pairs.lengths[order[start]]))
            numbers = order[start : start + rows]
            sequences = SequenceTable(
                ranges=pairs.ranges[numbers],
                labels=pairs.labels[numbers].astype(np.int8),
                opens_document=pairs.is_lead[numbers],
                lengths=pairs.lengths[numbers],
                corpora=np.zeros(len(numbers), np.int16),
                segmentations=np.zeros(len(numbers), np.int32),
                numbers=numbers.astype(np.int32),
                mask_keys=derive_keys(hash_integers(self.seed), numbers),
            )
            plan = plan_rows(sequences, BatchOptions(sequences=len(numbers)), self.length)
            rate = self.writer.masking.rate if is_masked else 0.0
            yield NumberedBatch(numbers, build_batch(self.writer.write(plan, rate=rate)))
            start += rows


def build_pair_writer(passages: Passages, tokenizer: Tokenizer, *, length: int, seed: int) -> PairWriter:
    """A writer of pairs of `length` tokens, masked as in the paper: n-grams of up to three words, 15 %, 80/10/10."""
    masking = MaskingOptions()
    writer = RowWriter(
        texts=[passages.text],
        special=SpecialIds(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id),
        vocabulary=list_vocabulary(tokenizer.vocab_size, tokenizer.special_ids, tokenizer.mask_id, masking),
        masking=masking,
    )
    return PairWriter(passages, length, writer, seed)
