"""The model as it was trained, in torch: on any device, and the one that all others are compared with."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from litebert.core.runtime import Runtime
from litebert.inference.engines.engine import EngineName
from litebert.inference.outputs import BATCH_COST, BATCH_TOKENS
from litebert.model.model import Model
from litebert.model.reading import ReadHead, ReadInputs

ACCELERATOR_BATCH_COST = 1024  # a GPU is not filled by less: an estimate, not measured


@dataclass(frozen=True)
class TorchEngine:
    """A model on its device."""

    model: Model
    runtime: Runtime
    name: EngineName = "torch"
    batch_tokens: int = BATCH_TOKENS

    @property
    def batch_cost(self) -> int:
        return BATCH_COST if self.runtime.device.type == "cpu" else ACCELERATOR_BATCH_COST

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        device = self.runtime.device
        token_ids, segment_ids, mask = (part.to(device) for part in inputs[:3])
        allowed = None if inputs.allowed is None else inputs.allowed.to(device)
        inputs = inputs._replace(token_ids=token_ids, segment_ids=segment_ids, mask=mask, allowed=allowed)
        is_reduced = self.runtime.dtype != torch.float32
        with torch.autocast(device.type, dtype=self.runtime.dtype, enabled=is_reduced):
            return self.model.read(head, inputs)

    def can_exit(self, head: ReadHead) -> bool:
        return head == "classification"
