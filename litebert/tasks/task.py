"""What the training loop asks of a task: its heads, its loss on a part of a batch, and what the sums of all parts mean.

A batch may be computed in parts, on one machine or many. So that the parts add up to exactly the batch, a loss is
divided by the counts of the whole batch, which are known before any part is computed.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor

from litebert.model.config import HeadSpec
from litebert.model.model import Model

Counts = Mapping[str, int]


class PartLoss(NamedTuple):
    """The loss of one part, and what is summed over parts."""

    loss: Tensor
    sums: dict[str, Tensor]


class Part(Protocol):
    """What a task computes at once: the tensors of a batch, or of a part of one."""

    def to(self, device: torch.device | str) -> Self: ...


AnyPart = TypeVar("AnyPart", bound=Part)
_TaskPart = TypeVar("_TaskPart", bound=Part, contravariant=True)


class Task(Protocol[_TaskPart]):
    """Something to learn from parts of one kind."""

    @property
    def heads(self) -> tuple[HeadSpec, ...]: ...

    def count(self, part: _TaskPart) -> dict[str, int]:
        """What a part contributes to the counts that losses are divided by."""
        ...

    def loss(self, model: Model, part: _TaskPart, totals: Counts) -> PartLoss:
        """The part's share of the batch's loss."""
        ...

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        """The metrics of a batch, or of several."""
        ...
