"""Batch: the tensors of a training step, built from the numpy rows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from litebert.batches.row_kernels import number_positions
from litebert.batches.rows import Rows

# what `Batch.split` slices by; it shifts first_tokens, mlm_positions and first_row
_PER_ROW = ("token_ids", "segment_ids", "mask", "position_ids", "sequence_ids", "dropout_seeds")
_PER_SEQUENCE = ("sentence_labels", "opens_document", "origins")
_PER_TARGET = ("mlm_labels",)


@dataclass(frozen=True)
class Batch:
    """B rows of T tokens with S sequences (S = B unless packed), M of whose tokens are predicted."""

    token_ids: Tensor  # (B, T) int64
    segment_ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True = real token
    position_ids: Tensor | None  # (B, T) int64 within its sequence; None when a row is one sequence
    sequence_ids: Tensor | None  # (B, T) int64: 1, 2, ... for the sequences packed in a row, 0 = padding
    first_tokens: Tensor  # (S,) int64 flat index (row * T + column) of each sequence's [CLS]
    mlm_positions: Tensor  # (M,) int64 flat indices
    mlm_labels: Tensor  # (M,) int64
    sentence_labels: Tensor | None  # (S,) int64: 0 original order, 1 swapped or random (three-way: 2 random)
    opens_document: Tensor | None = None  # (S,) bool: has a document's opening, which reveals its order; None: unknown
    origins: Tensor | None = None  # (S, 3) int64: corpus, segmentation of it, number of the sequence; None: unknown
    first_row: int = 0  # of a micro-batch: the number of its first row within the whole batch
    dropout_seeds: tuple[int, ...] | None = None  # in training, one per row; None: torch's global generator drops

    @property
    def num_sequences(self) -> int:
        return len(self.first_tokens)

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {name: value.to(device, non_blocking=True) for name, value in values.items() if hasattr(value, "to")}
        return replace(self, **moved)

    def split(self, row_bounds: Sequence[int]) -> list["Batch"]:
        """Micro-batches of the rows between each two bounds; they share the memory of this batch."""
        if len(row_bounds) == 2:
            return [self]
        flat_bounds = [row * self.token_ids.shape[1] for row in row_bounds]
        bounds = torch.tensor(flat_bounds)
        sequence_bounds = torch.searchsorted(self.first_tokens, bounds).tolist()
        target_bounds = torch.searchsorted(self.mlm_positions, bounds).tolist()
        micro_batches = []
        for k, first_flat in enumerate(flat_bounds[:-1]):
            rows, sequences, targets = (slice(*b[k : k + 2]) for b in (row_bounds, sequence_bounds, target_bounds))
            values: dict[str, Any] = {
                "first_tokens": self.first_tokens[sequences] - first_flat,
                "mlm_positions": self.mlm_positions[targets] - first_flat,
                "first_row": self.first_row + row_bounds[k],
            }
            for names, span in ((_PER_ROW, rows), (_PER_SEQUENCE, sequences), (_PER_TARGET, targets)):
                for name in names:
                    whole = getattr(self, name)
                    values[name] = None if whole is None else whole[span]
            micro_batches.append(Batch(**values))
        return micro_batches


def build_batch(rows: Rows) -> Batch:
    """The tensors of rows, sharing their memory."""
    plan, sequences = rows.plan, rows.plan.sequences
    position_ids = sequence_ids = None
    if plan.is_packed:
        within, numbers = np.zeros((2, plan.num_rows, plan.width), np.int64)
        number_positions(plan.rows, plan.starts, sequences.lengths, within.reshape(-1), numbers.reshape(-1))
        position_ids, sequence_ids = torch.from_numpy(within), torch.from_numpy(numbers)
        mask = sequence_ids > 0
    else:
        mask = torch.arange(plan.width) < torch.from_numpy(sequences.lengths)[:, None]
    has_task = bool(len(sequences.labels)) and bool(sequences.labels[0] >= 0)
    origins = np.stack([sequences.corpora, sequences.segmentations, sequences.numbers], axis=1, dtype=np.int64)
    return Batch(
        token_ids=torch.from_numpy(rows.token_ids),
        segment_ids=torch.from_numpy(rows.segment_ids),
        mask=mask,
        position_ids=position_ids,
        sequence_ids=sequence_ids,
        first_tokens=torch.from_numpy(plan.starts),
        mlm_positions=torch.from_numpy(rows.targets.positions),
        mlm_labels=torch.from_numpy(rows.targets.labels),
        sentence_labels=torch.from_numpy(sequences.labels.astype(np.int64)) if has_task else None,
        opens_document=torch.from_numpy(sequences.opens_document),
        origins=torch.from_numpy(origins),
        first_row=plan.first_row,
    )
