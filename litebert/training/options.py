"""The [train], [optim] and [init] sections of a recipe.

Does not import torch, so that a recipe can be read and checked without it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from litebert.core.errors import ConfigError
from litebert.core.ranges import DropRate, NonNegativeFloat, NonNegativeInt, PositiveInt, Range, check_values

Parallel = Literal["ddp", "fsdp"]
OptimizerName = Literal["lamb", "lamb-apex", "lamb-nvlamb", "adamw-google", "adamw", "muon"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The run. `steps` is its length; if `tokens` or `hours` is set, only the scale of the schedule and the stages."""

    steps: PositiveInt
    tokens: NonNegativeInt = 0  # stop after this many tokens of text; 0: by steps
    hours: NonNegativeFloat = 0.0  # stop after this many hours, and the schedule follows the clock; 0: by steps
    micro_batch: NonNegativeInt = 0  # sequences computed at once; 0: the whole batch
    save_every: PositiveInt = 1000
    keep_last: PositiveInt = 2  # checkpoints kept in addition to the best one
    evaluate_every: NonNegativeInt = 0  # 0: at each checkpoint
    evaluate_batches: PositiveInt = 16  # validation batches
    log_every: PositiveInt = 1
    loggers: tuple[str, ...] = ()  # tensorboard, wandb
    parallel: Parallel = "ddp"  # with several processes: a copy of the model in each, or sharded (fsdp)
    compile: bool = False  # torch.compile of each block
    recompute: bool = False  # activation checkpointing: keep each layer's input, compute the rest again

    def __post_init__(self) -> None:
        check_values(self)
        if self.tokens and self.hours:
            raise ConfigError(
                "conflicting-options",
                f"tokens = {self.tokens} and hours = {self.hours}: set only one of them",
            )


@dataclass(frozen=True)
class OptimOptions:
    """The optimizer of a run; the learning rate is the peak that the schedule scales."""

    name: OptimizerName = "lamb"
    learning_rate: NonNegativeFloat = 0.00176
    beta1: DropRate = 0.9
    beta2: DropRate = 0.999
    epsilon: NonNegativeFloat = 1e-6
    weight_decay: NonNegativeFloat = 0.01
    clip_norm: Annotated[float, Range(above=0, allows_inf=True)] = 1.0  # inf: never clip

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """The weights to start from."""

    source: str = ""  # any checkpoint, or a name on the hub (in a recipe: init.from); empty: random weights
    continues: bool = False  # with the optimizer state and step of init.from: continue its training
    # "frequencies": the vocabulary's biases start at log frequencies in the corpora. Adam takes thousands of steps to
    # learn them, and until then distorts the encoder to predict frequencies
    word_bias: Literal["zero", "frequencies"] = "zero"
    # "continued": positions first used in a later stage start as an extrapolation of those before them
    new_positions: Literal["drawn", "continued"] = "drawn"

    def __post_init__(self) -> None:
        check_values(self)
        if self.continues and not self.source:
            raise ConfigError(
                "conflicting-options", "continues = true needs init.from: name the checkpoint to continue"
            )
