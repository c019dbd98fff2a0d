"""Estimates the cost of a study: training as in `litebert recipes plan`, tasks by their FLOPs."""

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
    """The cost of one arm with one seed on given devices."""

    train_hours: float | None  # None: it does not fit
    task_hours: float
    flops: float  # of training
    tokens: int
    num_uncounted: int  # tasks whose length depends on unread data

    @property
    def hours(self) -> float:
        """Training and tasks, as far as they are known."""
        return (self.train_hours or 0.0) + self.task_hours


def threads_of_one(jobs: int) -> int:
    """The number of threads for each of several parallel jobs."""
    return max(1, len(list_processors()) // jobs)


def load_share(device_name: str, jobs: int) -> Device:
    """The device of each of several parallel jobs: for this CPU, its share of the cores."""
    if device_name == THIS_CPU and jobs > 1:
        import torch

        torch.set_num_threads(threads_of_one(jobs))
    return load_device(device_name)


def estimate_end(runs: Sequence[ArmRun], hours: Mapping[str, float], jobs: int) -> float:
    """The hours until the last run ends, with `jobs` at a time, in order, each after the run that it starts from."""
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
    """The cost of one run, with the recipe's own distribution if it fits, otherwise with the fastest that does."""
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
    """The hours of fine-tuning for a task on one device, assuming texts of the maximum length.

    None: its length is given in epochs.
    """
    recipe = run.recipe_of(task)
    options = recipe.train
    if not options.steps:
        return None
    length = min(options.max_length, run.model.max_positions)
    flops = training_flops_per_token(run.model, length, mlm_rate=0.0) * options.steps * options.batch_size * length
    speed = device.peak_flops(device.choose_dtype(recipe.runtime.dtype)) * device.efficiency
    return task.seeds * flops / speed / 3600
