"""The learning rate as a function of the step: warm-up, then polynomial decay, by the official clock.

Google's decay counts from step 0, not from the end of the warm-up, which merely replaces it while it lasts. The rate
therefore climbs towards the peak and drops to (1 - warmup / total) of it the moment the warm-up ends. The released
models were trained with that drop, and so are ours.
"""

import math
from dataclasses import dataclass

from litebert.core.errors import ConfigError


@dataclass(frozen=True)
class ScheduleOptions:
    """How the learning rate moves over a run."""

    warmup_steps: int = 3125
    start_warmup_step: int = 0  # where the warm-up begins, for a run that goes on with another corpus or length
    power: float = 1.0
    end_learning_rate: float = 0.0

    def __post_init__(self) -> None:
        for key in ("warmup_steps", "start_warmup_step"):
            if getattr(self, key) < 0:
                raise ConfigError(f"schedule.{key}: {getattr(self, key)} must be 0 or above")
        for key in ("power", "end_learning_rate"):
            if not 0 <= getattr(self, key) < math.inf:
                raise ConfigError(f"schedule.{key}: {getattr(self, key)} must be a finite number, 0 or above")


def check_schedule(options: ScheduleOptions, total_steps: int) -> None:
    """Refuse a warm-up that the run would not live to see the end of."""
    end = options.start_warmup_step + options.warmup_steps
    if end > total_steps:
        raise ConfigError(
            f"schedule.warmup_steps: the warm-up ends at step {end}, after the run's {total_steps} steps; "
            f"shorten it or raise train.steps"
        )


def learning_rate(step: float, *, peak: float, total_steps: int, options: ScheduleOptions) -> float:
    """The rate of the update made at `step` (the first is step 0); `step_by_clock` gives fractions of steps."""
    warmed_steps = step - options.start_warmup_step
    if warmed_steps < 0:
        return 0.0  # Google's formula goes below
    if warmed_steps < options.warmup_steps:
        return peak * warmed_steps / options.warmup_steps
    remaining = 1 - min(step / total_steps, 1)
    decayed: float = (peak - options.end_learning_rate) * remaining**options.power
    return decayed + options.end_learning_rate


def step_by_clock(elapsed_seconds: float, *, total_seconds: float, total_steps: int) -> float:
    """The step, with its fraction, where a run of given hours stands: the schedule then follows the clock."""
    return total_steps * min(elapsed_seconds / total_seconds, 1)
