"""Batch: what a training step reads. The first tensor of the way from text to loss appears here."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from litebert.batches.rows import Rows, number_positions


@dataclass(frozen=True)
class Batch:
    """B rows of T tokens holding S sequences (S = B unless packed), M of their tokens to be predicted."""

    token_ids: Tensor  # (B, T) int64
    segment_ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True = real token
    position_ids: Tensor | None  # (B, T) int64 within its sequence; None when a row is one sequence
    sequence_ids: Tensor | None  # (B, T) int64: 1, 2, ... for the sequences packed in a row, 0 = padding
    first_tokens: Tensor  # (S,) int64 flat index (row * T + column) of each sequence's [CLS]
    mlm_positions: Tensor  # (M,) int64 flat indices
    mlm_labels: Tensor  # (M,) int64
    sentence_labels: Tensor | None  # (S,) int64: 0 original order, 1 swapped or random (three-way: 2 random)
    is_lead: Tensor | None = None  # (S,) bool: begins a document, which gives sentence order away; None: not known
    first_row: int = 0  # where this is a part: its first row's number in the whole batch
    dropout_seeds: tuple[int, ...] | None = None  # in training, one per row; None: torch's global generator drops

    @property
    def num_sequences(self) -> int:
        return len(self.first_tokens)

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {name: value.to(device, non_blocking=True) for name, value in values.items() if hasattr(value, "to")}
        return replace(self, **moved)


def build_batch(rows: Rows) -> Batch:
    """The tensors of rows, sharing their memory."""
    layout = rows.layout
    position_ids = sequence_ids = None
    if rows.is_packed:
        shape = layout.num_rows, layout.width
        position_ids, sequence_ids = (torch.from_numpy(part.reshape(shape)) for part in number_positions(layout))
        mask = sequence_ids > 0
    else:
        mask = torch.arange(layout.width) < torch.from_numpy(layout.lengths)[:, None]
    has_task = bool(len(rows.labels)) and bool(rows.labels[0] >= 0)
    return Batch(
        token_ids=torch.from_numpy(rows.token_ids),
        segment_ids=torch.from_numpy(rows.segment_ids),
        mask=mask,
        position_ids=position_ids,
        sequence_ids=sequence_ids,
        first_tokens=torch.from_numpy(layout.starts),
        mlm_positions=torch.from_numpy(rows.targets.positions),
        mlm_labels=torch.from_numpy(rows.targets.labels),
        sentence_labels=torch.from_numpy(rows.labels.astype(np.int64)) if has_task else None,
        is_lead=torch.from_numpy(rows.is_lead),
        first_row=layout.first_row,
    )
