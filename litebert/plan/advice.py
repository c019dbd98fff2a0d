"""What a plan says to do: which words to add to the command, and what to change where nothing fits."""

from litebert.plan.devices import Device
from litebert.plan.plan import WAYS, Plan, plan_run
from litebert.recipe import Recipe


def advise(recipe: Recipe, plan: Plan) -> list[str]:
    """Sentences, the most important first."""
    if plan.best is None:
        return [f"It does not fit: {suggest_remedy(plan)}."]
    return [*_advise_settings(recipe, plan), *_advise_batch(plan), *_advise_format(recipe, plan)]


def suggest_remedy(plan: Plan) -> str:
    """What to change where no way fits."""
    needed = min(way.memory.total for stage in plan.stages for way in stage.ways if not way.fits)
    usable = plan.machine.device.usable_bytes
    words = ["a device with more memory"]
    if any(not stage.is_shared for stage in plan.stages):
        words.append("more devices with train.parallel=fsdp")
    if plan.machine.dtype == "fp32" and faster_format(plan.machine.device):
        words.append(f"runtime.dtype={faster_format(plan.machine.device)}")
    words.append("a shorter segments.max_length")
    return f"one sequence at a time needs {needed / 1e9:.1f} GB of {usable / 1e9:.1f}: take {', or '.join(words)}"


def faster_format(device: Device) -> str | None:
    """The format of two bytes that multiplies faster than fp32 there, bf16 before fp16."""
    formats = ((device.tflops.bf16, "bf16"), (device.tflops.fp16, "fp16"))
    return next((name for peak, name in formats if peak and peak > 1.2 * device.tflops.fp32), None)


def _advise_settings(recipe: Recipe, plan: Plan) -> list[str]:
    assert plan.best is not None
    own = WAYS.index((recipe.train.parallel, recipe.train.recompute))
    way, wanted = plan.stages[0].ways[plan.best], plan.stages[0].ways[own]
    hours = f"{plan.hours(plan.best):,.1f} hours"
    words = [f"train.parallel={way.parallel}"] if way.parallel != recipe.train.parallel else []
    if way.recompute != recipe.train.recompute:
        words.append(f"train.recompute={str(way.recompute).lower()}")
    own_rows = plan.stages[0].batching.rows_per_device(plan.machine.num_devices)
    asked = min(recipe.train.micro_batch or own_rows, own_rows)
    if asked != way.micro_batch:
        words.append(f"train.micro_batch={way.micro_batch}")
    if not words:
        return [f"The recipe is right as it is: {hours}."]
    if not all(stage.ways[own].fits for stage in plan.stages):
        why = "as the recipe stands, it does not fit"
    elif asked > wanted.largest_micro_batch:
        why = f"the recipe's micro-batch of {asked:,} does not fit"
    else:
        why = "it fits, and is the fastest of these"
    return [f"Add {' '.join(words)} ({why}): {hours}."]


def _advise_batch(plan: Plan) -> list[str]:
    rows, num_devices = plan.stages[0].batching.num_rows, plan.machine.num_devices
    if rows < num_devices:
        return [f"A batch of {rows:,} sequences cannot be divided among {num_devices:,} devices: it is refused."]
    if rows % num_devices:
        return [f"{rows:,} sequences do not divide by {num_devices:,} devices: some wait for others."]
    return []


def _advise_format(recipe: Recipe, plan: Plan) -> list[str]:
    machine = plan.machine
    other = faster_format(machine.device)
    if machine.dtype != "fp32" or other is None or recipe.train.hours:  # by the clock, all take the same time
        return []
    best = (changed := plan_run(recipe, machine.device, machine.num_devices, dtype=other)).best
    if best is None:
        return []
    return [f"In {other} instead of fp32 (runtime.dtype={other}), the best way takes {changed.hours(best):,.1f} hours."]
