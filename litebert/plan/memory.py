"""What one device holds while it trains, when the model is spread over several."""

from dataclasses import dataclass

from litebert.model.config import ModelConfig
from litebert.model.cost import Keeping, activation_memory, working_memory
from litebert.plan.traffic import BYTES, Parameters, count, padded
from litebert.training.options import Parallel

MOMENTS = 2  # LAMB and AdamW keep two numbers for each parameter


@dataclass(frozen=True)
class Spreading:
    """How a model is laid over devices."""

    parallel: Parallel
    num_devices: int


@dataclass(frozen=True)
class Load:
    """What a device computes at once."""

    micro_batch: int  # sequences
    length: int
    mlm_rate: float
    accumulates: bool  # whether other parts of the step come before or after it


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of tensors on one device, by what they are; an allocator takes more than it hands out."""

    weights: int
    gradients: int
    optimizer: int
    gathered: int  # FSDP: whole weights and gradients, beside this device's shards of them
    activations: int
    working: int

    @property
    def states(self) -> int:
        """What outlives a step."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        return self.states + self.gathered + self.activations + self.working


def device_memory(
    config: ModelConfig, parameters: Parameters, spreading: Spreading, load: Load, keeping: Keeping
) -> DeviceMemory:
    """What training takes of one device."""
    weights, trained = (
        BYTES * count_shard(parameters, spreading, trained_only=trained_only) for trained_only in (False, True)
    )
    batch = {"batch_size": load.micro_batch, "length": load.length}
    return DeviceMemory(
        weights=weights,
        gradients=trained,
        optimizer=MOMENTS * trained,
        gathered=BYTES * count_gathered(parameters, spreading, accumulates=load.accumulates),
        activations=activation_memory(config, **batch, mlm_rate=load.mlm_rate, keeping=keeping),
        working=working_memory(config, **batch, mlm_rate=load.mlm_rate, keeping=keeping),
    )


def count_shard(parameters: Parameters, spreading: Spreading, *, trained_only: bool) -> int:
    """The parameters that a device keeps from step to step: all of them, or its shard."""
    shapes = [shape for group in parameters.groups for shape in (group.trained if trained_only else group.shapes)]
    if spreading.parallel == "ddp" or spreading.num_devices == 1:
        return count(shapes)
    return padded(shapes, spreading.num_devices) // spreading.num_devices


def count_gathered(parameters: Parameters, spreading: Spreading, *, accumulates: bool) -> int:
    """Whole parameters and gradients that FSDP has on a device at once, beside the shards.

    The root stays gathered through a step. Of the blocks, one is computed while the next comes. Their gradients wait
    whole for the last part of a step; where there is but one part, they leave at once, two messages under way.
    """
    if spreading.parallel == "ddp" or spreading.num_devices == 1:
        return 0
    blocks = sorted((count(block.shapes) for block in parameters.blocks), reverse=True)
    weights = count(parameters.root.shapes) + sum(blocks[:2])
    gradients = count(parameters.root.trained) + (sum(blocks) if accumulates else sum(blocks[:2]))
    return weights + gradients
