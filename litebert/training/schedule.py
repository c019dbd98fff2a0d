"""The learning rate as a function of the step: warm-up, then polynomial decay, by the official clock.

Google's decay counts from step 0, not from the end of the warm-up. The rate therefore rises to the peak, and drops to
(1 - warmup / total) of it when the warm-up ends. The released models were trained with that drop, and so are ours.
"""

from dataclasses import dataclass

from litebert.core.errors import ConfigError
from litebert.core.ranges import NonNegativeFloat, NonNegativeInt, check_values


@dataclass(frozen=True)
class ScheduleOptions:
    """How the learning rate changes over a run."""

    warmup_steps: NonNegativeInt = 3125
    start_warmup_step: NonNegativeInt = 0  # where the warm-up begins, for a run that continues another
    power: NonNegativeFloat = 1.0
    end_learning_rate: NonNegativeFloat = 0.0

    def __post_init__(self) -> None:
        check_values(self)


def check_schedule(options: ScheduleOptions, total_steps: int) -> None:
    """The warm-up must end before the run does."""
    end = options.start_warmup_step + options.warmup_steps
    if end > total_steps:
        raise ConfigError(
            "warm-up-too-long",
            f"schedule.warmup_steps = {options.warmup_steps}: the warmup would end at step {end}, but the run "
            f"has {total_steps} steps; shorten it or raise train.steps",
        )


def learning_rate(step: float, *, peak: float, total_steps: int, options: ScheduleOptions) -> float:
    """The rate of the update made at `step` (the first is step 0); a run limited by hours is between two steps."""
    warmed_steps = step - options.start_warmup_step
    if warmed_steps < 0:
        return 0.0  # Google's formula would be negative
    if warmed_steps < options.warmup_steps:
        return peak * warmed_steps / options.warmup_steps
    remaining = 1 - min(step / total_steps, 1)
    decayed: float = (peak - options.end_learning_rate) * remaining**options.power
    return decayed + options.end_learning_rate
