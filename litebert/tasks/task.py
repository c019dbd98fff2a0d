"""The contract between the training loop and a task: heads, counts, loss of a micro-batch, metrics.

A batch may be computed in micro-batches, by one or several processes. So that their losses add up to the loss of the
batch, each is divided by the counts of the whole batch, which are known in advance.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor

from litebert.model.config import HeadSpec
from litebert.model.model import Model

Counts = Mapping[str, int]


class BatchLoss(NamedTuple):
    """The loss of a micro-batch, and values to sum over all micro-batches."""

    loss: Tensor
    sums: dict[str, Tensor]


class MicroBatch(Protocol):
    """The tensors of one forward pass: a batch, or some of its rows."""

    def to(self, device: torch.device | str) -> Self: ...


AnyBatch = TypeVar("AnyBatch", bound=MicroBatch)
_TaskBatch = TypeVar("_TaskBatch", bound=MicroBatch, contravariant=True)


class Task(Protocol[_TaskBatch]):
    """A training objective on one kind of micro-batch."""

    @property
    def heads(self) -> tuple[HeadSpec, ...]: ...

    def count(self, batch: _TaskBatch) -> dict[str, int]:
        """The micro-batch's contribution to the counts that divide losses."""
        ...

    def loss(self, model: Model, batch: _TaskBatch, totals: Counts) -> BatchLoss:
        """The micro-batch's contribution to the loss of the batch, whose counts are `totals`."""
        ...

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        """The metrics of one or several batches."""
        ...
