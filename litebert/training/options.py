"""What a recipe says about the run itself: how long, in which pieces, from where, and what is kept."""

import math
from dataclasses import dataclass
from typing import Literal

from litebert.core.errors import ConfigError

Parallel = Literal["ddp", "fsdp"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The run. `steps` is its length, or with `tokens` or `hours` only the scale on which the schedule is written."""

    steps: int
    tokens: int = 0  # stop after so many tokens of text; 0: by steps
    hours: float = 0.0  # stop after so many hours, and let the schedule follow the clock; 0: by steps
    micro_batch: int = 0  # sequences that are computed at once; 0: the whole batch
    save_every: int = 1000
    keep_last: int = 2  # checkpoints kept beside the best one
    evaluate_every: int = 0  # 0: at each checkpoint
    evaluate_batches: int = 16  # held-out batches that are measured
    log_every: int = 1
    loggers: tuple[str, ...] = ()  # tensorboard, wandb
    parallel: Parallel = "ddp"  # with several processes: the model whole in each, or sharded
    compile: bool = False  # torch.compile of each block
    recompute: bool = False  # activation checkpointing: keep each layer's input, compute the rest again

    def __post_init__(self) -> None:
        for key in ("steps", "save_every", "keep_last", "evaluate_batches", "log_every"):
            if getattr(self, key) < 1:
                raise ConfigError(f"train.{key} = {getattr(self, key)} must be at least 1")
        for key in ("tokens", "hours", "micro_batch", "evaluate_every"):
            if getattr(self, key) < 0:
                raise ConfigError(f"train.{key} = {getattr(self, key)} cannot be negative")
        if not math.isfinite(self.hours):
            raise ConfigError(f"train.hours = {self.hours} is no time that ends")
        if self.tokens and self.hours:
            raise ConfigError(
                f"train.tokens = {self.tokens} and train.hours = {self.hours}: a run stops by one of them"
            )


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """Where the weights come from."""

    source: str = ""  # any checkpoint, or a name on the hub (in a recipe: init.from); empty: drawn at random
    continues: bool = False  # with the source's optimizer and step: its training goes on
    # "frequencies": the bias of each word is at first the logarithm of its share of the corpora. Adam would take
    # thousands of steps to bring it there, and meanwhile bends the encoder into saying how often words occur. Read
    # where the weights are drawn at random
    word_bias: Literal["zero", "frequencies"] = "zero"
    # "continued": positions that a later stage's text is the first to reach begin as those before them go on
    new_positions: Literal["drawn", "continued"] = "drawn"

    def __post_init__(self) -> None:
        if self.continues and not self.source:
            raise ConfigError("init.continues = true, but init.from says of nothing what is to go on")
