"""What a study would cost before anything runs: by `litebert plan` for training, by arithmetic for the tasks."""

from dataclasses import dataclass

from litebert.finetune_recipe import load_finetune_recipe
from litebert.model.cost import training_flops_per_token
from litebert.plan.devices import Device
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


def estimate_arm(run: ArmRun, device: Device, num_devices: int = 1) -> Cost:
    """The cost of one run. The recipe's own way of spreading is taken if it fits, else the fastest that does."""
    task_hours = [estimate_task(run, task, device, num_devices) for task in run.at_scale.tasks]
    known = sum(hours for hours in task_hours if hours is not None)
    if not run.at_scale.is_trained:
        return Cost(0.0, known, 0.0, 0, 0)
    plan = plan_run(run.recipe, device, num_devices)
    own = WAYS.index((run.recipe.train.parallel, run.recipe.train.recompute))
    way = own if all(stage.ways[own].fits for stage in plan.stages) else plan.best
    return Cost(
        None if way is None else plan.hours(way), known, plan.total_flops, plan.total_tokens, task_hours.count(None)
    )


def estimate_task(run: ArmRun, task: TaskSpec, device: Device, num_devices: int) -> float | None:
    """The hours of fine-tuning for a task, if every text were as long as allowed; None: it runs by epochs."""
    recipe = load_finetune_recipe(task.task, task.recipe, task.change)
    options = recipe.train
    if not options.steps:
        return None
    model = run.recipe.at(run.recipe.train.steps - 1).model
    length = min(options.max_length, model.max_positions)
    flops = training_flops_per_token(model, length, mlm_rate=0.0) * options.steps * options.batch_size * length
    speed = device.peak_flops(device.choose_dtype(recipe.runtime.dtype)) * device.efficiency * num_devices
    return task.seeds * flops / speed / 3600
