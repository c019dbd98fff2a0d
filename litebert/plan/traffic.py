"""The communication volume of one training step, for training/distributed.py.

tests/training/test_collectives.py counts the messages of real steps and compares.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from litebert.model.config import HeadSpec, ModelConfig
from litebert.training.options import OptimizerName, Parallel

BYTES = 4  # weights and gradients are communicated in fp32 whatever the compute format
Shape = tuple[int, ...]


class ParameterGroup(NamedTuple):
    """Parameters that FSDP gathers together: their shapes, and those of them that are trained."""

    shapes: tuple[Shape, ...]
    trained: tuple[Shape, ...]


class Parameters(NamedTuple):
    """A model's parameters as FSDP groups them: the root group and one group per block."""

    root: ParameterGroup
    blocks: tuple[ParameterGroup, ...]  # empty if layers are shared: then the root contains them, gathered once
    matrices: tuple[Shape, ...] = ()  # those that Muon orthogonalizes; none with other optimizers

    @property
    def groups(self) -> tuple[ParameterGroup, ...]:
        return (self.root, *self.blocks)

    @property
    def num_stored(self) -> int:
        return sum(count(group.shapes) for group in self.groups)

    @property
    def num_trained(self) -> int:
        return sum(count(group.trained) for group in self.groups)

    @property
    def num_tensors(self) -> int:
        return sum(len(group.trained) for group in self.groups)


class Message(NamedTuple):
    """One kind of collective operation in a step: how many, and the bytes of the full tensors."""

    kind: Literal["all-reduce", "all-gather", "reduce-scatter"]
    about: str
    number: int | None  # None for DDP, which groups gradients into buckets
    num_bytes: int

    def sent_bytes(self, num_devices: int) -> float:
        """Bytes that each device sends: a ring sends all but one of N shards, and an all-reduce takes two rounds."""
        rounds = 2 if self.kind == "all-reduce" else 1
        return rounds * self.num_bytes * (num_devices - 1) / num_devices


@cache
def list_parameters(
    config: ModelConfig, heads: tuple[HeadSpec, ...], *, trains_pooler: bool, optimizer: OptimizerName = "lamb"
) -> Parameters:
    """The parameters that `training.distributed.parallelize` would find in a model."""
    from litebert.model.model import build_model
    from litebert.training.optimizers import is_layer_matrix

    model = build_model(config, heads, device="meta")
    blocks = [] if model.encoder.is_shared else [*model.encoder.attention, *model.encoder.ffn]
    in_blocks = {id(parameter) for block in blocks for parameter in block.parameters()}
    pooler = model.encoder.pooler
    frozen = {id(parameter) for parameter in pooler.parameters()} if pooler and not trains_pooler else set()
    rest = [parameter for parameter in model.parameters() if id(parameter) not in in_blocks]
    root = ParameterGroup(
        tuple(tuple(parameter.shape) for parameter in rest),
        tuple(tuple(parameter.shape) for parameter in rest if id(parameter) not in frozen),
    )
    shapes = [tuple(tuple(parameter.shape) for parameter in block.parameters()) for block in blocks]
    named = model.named_parameters() if optimizer == "muon" else ()
    matrices = tuple(tuple(parameter.shape) for name, parameter in named if is_layer_matrix(name, parameter))
    return Parameters(root, tuple(ParameterGroup(block, block) for block in shapes), matrices)


def list_messages(parameters: Parameters, parallel: Parallel, num_devices: int, *, num_parts: int) -> list[Message]:
    """The collective operations of a step with `num_parts` micro-batches, except for a few scalars."""
    if num_devices == 1:
        return []
    if parallel == "ddp":
        return [Message("all-reduce", "gradients", None, BYTES * parameters.num_trained)]
    messages = [
        Message("all-gather", "weights", 1, BYTES * padded(parameters.root.shapes, num_devices)),
        Message("reduce-scatter", "gradients", 1, BYTES * padded(parameters.root.trained, num_devices)),
    ]
    if parameters.blocks:
        # weights for forward and backward of every micro-batch; gradients only after the last
        uses = num_parts * 2
        gathered = sum(padded(block.shapes, num_devices) for block in parameters.blocks)
        num_blocks = len(parameters.blocks)
        messages += [
            Message("all-gather", "blocks' weights", uses * num_blocks, BYTES * uses * gathered),
            Message("reduce-scatter", "blocks' gradients", num_blocks, BYTES * gathered),
        ]
    if parameters.matrices:
        num_bytes = BYTES * padded(parameters.matrices, num_devices)
        messages.append(Message("all-gather", "momenta", len(parameters.matrices), num_bytes))
    return messages


def count(shapes: Sequence[Shape]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def padded(shapes: Sequence[Shape], num_devices: int) -> int:
    """The number of parameters as FSDP sends them: rows in equal shards, padded at the end."""
    return sum(-(-shape[0] // num_devices) * num_devices * math.prod(shape[1:]) for shape in shapes)
