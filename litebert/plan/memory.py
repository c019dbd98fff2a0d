"""Training memory per device when a model is distributed over several."""

from collections.abc import Sequence
from dataclasses import dataclass

from litebert.model.config import ModelConfig
from litebert.model.cost import ActivationStorage, activation_memory, working_memory
from litebert.plan.traffic import BYTES, Parameters, Shape, count, padded
from litebert.training.options import Parallel

MOMENTS = 2  # per parameter, in LAMB and AdamW; Muon has one per matrix


@dataclass(frozen=True)
class Distribution:
    """How a model is distributed over devices."""

    parallel: Parallel
    num_devices: int


@dataclass(frozen=True)
class Load:
    """The work of a device in one forward and backward pass."""

    micro_batch: int  # sequences
    length: int
    mlm_rate: float
    accumulates: bool  # whether a step has more than one micro-batch


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of tensors on one device by kind; the allocator reserves somewhat more."""

    weights: int
    gradients: int
    optimizer: int
    gathered: int  # FSDP: gathered weights and gradients, in addition to this device's shards
    activations: int
    working: int

    @property
    def states(self) -> int:
        """Weights, gradients and optimizer state."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        return self.states + self.gathered + self.activations + self.working


def device_memory(
    config: ModelConfig, parameters: Parameters, distribution: Distribution, load: Load, storage: ActivationStorage
) -> DeviceMemory:
    """The training memory of one device."""
    groups = parameters.groups
    weights = BYTES * count_shard([shape for group in groups for shape in group.shapes], distribution)
    trained = BYTES * count_shard([shape for group in groups for shape in group.trained], distribution)
    batch = {"batch_size": load.micro_batch, "length": load.length}
    return DeviceMemory(
        weights=weights,
        gradients=trained,
        optimizer=MOMENTS * trained - BYTES * count_shard(parameters.matrices, distribution),
        gathered=BYTES * count_gathered(parameters, distribution, accumulates=load.accumulates),
        activations=activation_memory(config, **batch, mlm_rate=load.mlm_rate, storage=storage),
        working=working_memory(config, **batch, mlm_rate=load.mlm_rate, storage=storage),
    )


def count_shard(shapes: Sequence[Shape], distribution: Distribution) -> int:
    """How many of these parameters a device stores between steps: all, or those of its shard."""
    if distribution.parallel == "ddp" or distribution.num_devices == 1:
        return count(shapes)
    return padded(shapes, distribution.num_devices) // distribution.num_devices


def count_gathered(parameters: Parameters, distribution: Distribution, *, accumulates: bool) -> int:
    """The number of parameters and gradients that FSDP holds unsharded on a device at once, in addition to shards.

    The root group stays gathered during a step. One block is computed while the next is being gathered. Block
    gradients stay unsharded until the last micro-batch of a step; with a single micro-batch they are reduced at once,
    two at a time.
    """
    if distribution.parallel == "ddp" or distribution.num_devices == 1:
        return 0
    blocks = sorted((count(block.shapes) for block in parameters.blocks), reverse=True)
    weights = count(parameters.root.shapes) + sum(blocks[:2])
    gradients = count(parameters.root.trained) + (sum(blocks) if accumulates else sum(blocks[:2]))
    return weights + gradients
