"""The torch engine: runs on any device, and is the reference for the other engines."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from litebert.core.runtime import Runtime
from litebert.inference.engines.graphs import BATCH_COST, BATCH_TOKENS, EngineName
from litebert.model.engine import HeadInputs, HeadName
from litebert.model.model import Model

ACCELERATOR_BATCH_COST = 1024  # smaller batches do not fill a GPU: an estimate, not measured


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

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        device, dtype = self.runtime.device, self.runtime.dtype
        moved = inputs._replace(
            token_ids=inputs.token_ids.to(device),
            segment_ids=inputs.segment_ids.to(device),
            mask=inputs.mask.to(device),
            allowed=None if inputs.allowed is None else inputs.allowed.to(device),
        )
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            outputs = self.model.run(head, moved)
        reduced = (torch.bfloat16, torch.float16)
        return {name: x.to("cpu", torch.float32 if x.dtype in reduced else x.dtype) for name, x in outputs.items()}

    def can_exit(self, head: HeadName) -> bool:
        return head == "classification"
