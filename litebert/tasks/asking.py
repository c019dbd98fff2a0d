"""How a batch of groups is put to a model or to an engine."""

from torch import Tensor

from litebert.model.reading import ReadInputs
from litebert.tasks.group_batch import GroupBatch


def to_inputs(batch: GroupBatch, allowed: Tensor | None = None, mask_id: int = -1) -> ReadInputs:
    return ReadInputs(batch.token_ids, batch.segment_ids, batch.mask, allowed, mask_id)
