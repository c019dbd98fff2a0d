"""From pairs to batches: the text of each pair between its special tokens, sorted by length, with or without masks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.batch import Batch, build_batch
from litebert.batches.masking import Sequences, Targets, Vocabulary, list_vocabulary, mask_tokens
from litebert.batches.options import BatchOptions, MaskingOptions
from litebert.batches.randomness import combine, hash_integers
from litebert.batches.rows import Layout, Rows, SpecialIds, blank_canvas, draw_sequences, lay_out
from litebert.evaluation.intrinsic.pairs import PairTable
from litebert.evaluation.intrinsic.passages import Passages
from litebert.text.tokenizer import Tokenizer

_TOKENS = 8192  # in a batch, padding included
_NO_TARGETS = Targets._make(np.empty(0, kind) for kind in (np.int64, np.int64, np.int32, np.int8, np.int8))


class NumberedBatch(NamedTuple):
    """A batch, and which pair of its table each row is."""

    numbers: NDArray[np.int64]
    batch: Batch


@dataclass(frozen=True)
class Typesetter:
    """Writes pairs of one text with one vocabulary."""

    passages: Passages
    length: int
    special: SpecialIds
    vocabulary: Vocabulary
    masking: MaskingOptions
    seed: int

    def iter_batches(self, pairs: PairTable, *, is_masked: bool = False) -> Iterator[NumberedBatch]:
        """The pairs, the longest first, so that what does not fit the memory fails at once."""
        lengths = pairs.lengths
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            rows = max(1, _TOKENS // int(lengths[order[start]]))
            numbers = order[start : start + rows]
            layout = lay_out(lengths[numbers], BatchOptions(sequences=len(numbers)), self.length)
            yield NumberedBatch(numbers, build_batch(self._write(pairs, numbers, layout, is_masked)))
            start += rows

    def _write(self, pairs: PairTable, numbers: NDArray[np.int64], layout: Layout, is_masked: bool) -> Rows:
        canvas = blank_canvas(layout, self.special.pad_id)
        draw_sequences(self.passages.text, pairs.ranges[numbers], layout.starts, self.special, canvas)
        targets = _NO_TARGETS
        if is_masked:
            key = hash_integers(self.seed)
            keys = np.array([combine(key, np.uint64(number)) for number in numbers], np.uint64)
            sequences = Sequences(layout.starts, layout.lengths, keys)
            targets = mask_tokens(
                canvas.token_ids,
                canvas.word_codes,
                sequences,
                self.masking,
                self.vocabulary,
                rate=self.masking.rate,
            )
        shape = layout.num_rows, layout.width
        return Rows(
            token_ids=canvas.token_ids.reshape(shape),
            segment_ids=canvas.segment_ids.reshape(shape),
            layout=layout,
            targets=targets,
            labels=pairs.labels[numbers].astype(np.int8),
            is_lead=pairs.is_lead[numbers],
            is_packed=False,
        )


def build_typesetter(passages: Passages, tokenizer: Tokenizer, *, length: int, seed: int) -> Typesetter:
    """For pairs of `length` tokens; masks are the paper's: n-grams of up to three words, 15 %, 80/10/10."""
    masking = MaskingOptions()
    return Typesetter(
        passages,
        length,
        SpecialIds(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id),
        list_vocabulary(tokenizer.vocab_size, tokenizer.special_ids, tokenizer.mask_id, masking),
        masking,
        seed,
    )
