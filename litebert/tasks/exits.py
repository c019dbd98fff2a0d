"""Learning to answer after any layer."""

from collections.abc import Callable

import torch
from torch import Tensor

from litebert.model.early_exit import read_every_layer
from litebert.model.model import Model
from litebert.tasks.group_batch import GroupBatch


def read_layers(model: Model, batch: GroupBatch) -> Tensor:
    """The classifier's logits (L, S, labels) after every layer."""
    return read_every_layer(model, batch.token_ids, batch.segment_ids, batch.mask)


def weigh_layers(logits: Tensor, loss_of: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean loss of all layers' logits (L, S, labels); a layer weighs as much as its number, as PABEE has it."""
    weights = torch.arange(1, len(logits) + 1, device=logits.device, dtype=torch.float32)
    losses = torch.stack([loss_of(layer) for layer in logits])
    return (losses * weights).sum() / weights.sum()
