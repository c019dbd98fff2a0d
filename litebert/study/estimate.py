"""What a study would cost: by the estimates of `litebert recipes plan` for training, by arithmetic for the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litebert.core.processes import list_processors
from litebert.model.cost import training_flops_per_token
from litebert.plan.devices import THIS_CPU, Device, load_device
from litebert.plan.plan import WAYS, plan_run
from litebert.study.arms import ArmRun
from litebert.study.spec import TaskSpec


@dataclass(frozen=True)
class Cost:
    """What one arm with one seed would take on some devices."""

    train_hours: float | None  # None: it fits on none of them
    task_hours: float
    flops: float  # of training
    tokens: int
    num_uncounted: int  # tasks whose length depends on data that nobody has looked at

    @property
    def hours(self) -> float:
        """All of it, as far as it is known."""
        return (self.train_hours or 0.0) + self.task_hours


def threads_of_one(jobs: int) -> int:
    """The share of the cores that each of some jobs has."""
    return max(1, len(list_processors()) // jobs)


def load_share(device_name: str, jobs: int) -> Device:
    """A device as each of some jobs side by side has it: of this CPU, its share of the cores."""
    if device_name == THIS_CPU and jobs > 1:
        import torch

        torch.set_num_threads(threads_of_one(jobs))
    return load_device(device_name)


def estimate_end(runs: Sequence[ArmRun], hours: Mapping[str, float], jobs: int) -> float:
    """The hours until the last run ends: `jobs` at a time, in their order, each after the one it starts from."""
    waiting, ends, now = list(runs), dict[str, float](), 0.0
    while waiting:
        unfinished = {run.name for run in waiting} | {name for name, end in ends.items() if end > now}
        ready = next((run for run in waiting if run.starts_from not in unfinished), None)
        if ready and sum(end > now for end in ends.values()) < jobs:
            ends[ready.name] = now + hours[ready.name]
            waiting.remove(ready)
        else:
            now = min(end for end in ends.values() if end > now)
    return max(ends.values(), default=0.0)


def estimate_arm(run: ArmRun, device: Device, num_devices: int = 1) -> Cost:
    """The cost of one run. The recipe's own way of spreading is taken if it fits, else the fastest that does."""
    task_hours = [estimate_task(run, task, device) for task in run.at_scale.tasks]
    known = sum(hours for hours in task_hours if hours is not None)
    if not run.at_scale.is_trained:
        return Cost(0.0, known, 0.0, 0, 0)
    plan = plan_run(run.recipe, device, num_devices).after(run.starts_at)
    own = WAYS.index((run.recipe.train.parallel, run.recipe.train.recompute))
    way = own if all(stage.ways[own].fits for stage in plan.stages) else plan.best
    return Cost(
        None if way is None else plan.hours(way), known, plan.total_flops, plan.total_tokens, task_hours.count(None)
    )


def estimate_task(run: ArmRun, task: TaskSpec, device: Device) -> float | None:
    """The hours of fine-tuning for a task, which one device does, if every text were as long as allowed.

    None: it runs by epochs.
    """
    recipe = run.recipe_of(task)
    options = recipe.train
    if not options.steps:
        return None
    length = min(options.max_length, run.model.max_positions)
    flops = training_flops_per_token(run.model, length, mlm_rate=0.0) * options.steps * options.batch_size * length
    speed = device.peak_flops(device.choose_dtype(recipe.runtime.dtype)) * device.efficiency
    return task.seeds * flops / speed / 3600
