"""Converts a batch of groups to the inputs of a model or an engine."""

from torch import Tensor

from litebert.model.engine import HeadInputs
from litebert.tasks.group_batch import GroupBatch


def to_inputs(batch: GroupBatch, allowed: Tensor | None = None, mask_id: int = -1) -> HeadInputs:
    return HeadInputs(batch.token_ids, batch.segment_ids, batch.mask, allowed, mask_id)
