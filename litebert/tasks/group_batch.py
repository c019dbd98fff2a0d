"""GroupBatch: a batch of groups as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from litebert.model.engine import HeadInputs
from litebert.tasks.groups import Group


@dataclass(frozen=True)
class GroupBatch:
    """G groups with S sequences in total, each a row of T tokens."""

    token_ids: Tensor  # (S, T) int64
    segment_ids: Tensor  # (S, T) int64
    mask: Tensor  # (S, T) bool, True = real token
    num_first: Tensor  # (S,) int64: the tokens of segment 0, [CLS] and separators included
    group_sizes: Tensor  # (G,) int64: sequences in each group
    targets: Tensor | None  # the groups' targets, concatenated along their first axis; None: unknown

    @property
    def num_groups(self) -> int:
        return len(self.group_sizes)

    def to_inputs(self, allowed: Tensor | None = None, mask_id: int = -1) -> HeadInputs:
        """The inputs of a model's head or an engine."""
        return HeadInputs(self.token_ids, self.segment_ids, self.mask, allowed, mask_id)

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: value.to(device, non_blocking=True) for name, value in values.items() if value is not None}
        )


def build_group_batch(groups: Sequence[Group], pad_id: int) -> GroupBatch:
    """The groups as tensors, padded to their longest sequence."""
    sequences = [sequence for group in groups for sequence in group.sequences]
    lengths = np.array([len(sequence.token_ids) for sequence in sequences])
    mask = np.arange(lengths.max()) < lengths[:, None]  # (S, T)
    token_ids = np.full(mask.shape, pad_id, dtype=np.int64)
    token_ids[mask] = np.concatenate([sequence.token_ids for sequence in sequences])
    num_first = np.array([sequence.num_first for sequence in sequences])
    segment_ids = (mask & (np.arange(mask.shape[1]) >= num_first[:, None])).astype(np.int64)
    targets = [group.target for group in groups if group.target is not None]
    assert not targets or len(targets) == len(groups), "some groups of a batch have no target"
    return GroupBatch(
        token_ids=torch.from_numpy(token_ids),
        segment_ids=torch.from_numpy(segment_ids),
        mask=torch.from_numpy(mask),
        num_first=torch.from_numpy(num_first),
        group_sizes=torch.tensor([len(group.sequences) for group in groups]),
        targets=torch.from_numpy(np.concatenate([np.atleast_1d(t) for t in targets])) if targets else None,
    )


def cut_micro_batches(groups: Sequence[Group], max_sequences: int, pad_id: int) -> list[GroupBatch]:
    """Micro-batches of at most `max_sequences` (0: a single one), each with at least one group."""
    return [build_group_batch(part, pad_id) for part in _iter_parts(groups, max_sequences)]


def _iter_parts(groups: Sequence[Group], max_sequences: int) -> Iterator[list[Group]]:
    part: list[Group] = []
    for group in groups:
        if part and max_sequences and sum(len(g.sequences) for g in [*part, group]) > max_sequences:
            yield part
            part = []
        part.append(group)
    yield part
