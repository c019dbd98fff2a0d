"""Advice from a plan: which overrides to add, and what to change if nothing fits."""

from litebert.plan.devices import Device
from litebert.plan.plan import WAYS, Plan, list_stage_spans, plan_run
from litebert.plan.summary import describe_seconds
from litebert.pretraining.recipe import Recipe


def advise(recipe: Recipe, plan: Plan) -> list[str]:
    """Sentences, the most important first."""
    if plan.best is None:
        return [f"The recipe does not fit: {suggest_fix(plan)}."]
    return [*_advise_settings(recipe, plan), *_advise_batch(plan), *_advise_format(recipe, plan)]


def suggest_fix(plan: Plan) -> str:
    """A sentence on what to change if no way fits."""
    needed = min(way.memory.total for stage in plan.stages for way in stage.ways if not way.fits)
    usable = plan.machine.device.usable_bytes
    words = ["a device with more memory"]
    if any(not stage.is_shared for stage in plan.stages):
        words.append("more devices with train.parallel=fsdp")
    if plan.machine.dtype == "fp32" and faster_format(plan.machine.device):
        words.append(f"runtime.dtype={faster_format(plan.machine.device)}")
    words.append("a shorter segments.max_length")
    return (
        f"a single sequence needs {needed / 1e9:.1f} GB and {usable / 1e9:.1f} GB are usable; try {', or '.join(words)}"
    )


def faster_format(device: Device) -> str | None:
    """The 16-bit format that is faster than fp32 on this device, preferring bf16; None if there is none."""
    formats = ((device.tflops.bf16, "bf16"), (device.tflops.fp16, "fp16"))
    return next((name for peak, name in formats if peak and peak > 1.2 * device.tflops.fp32), None)


def _advise_settings(recipe: Recipe, plan: Plan) -> list[str]:
    assert plan.best is not None
    parallel, recompute = WAYS[plan.best]
    time = _describe_hours(plan.hours(plan.best))
    words = [f"train.parallel={parallel}"] if parallel != recipe.train.parallel else []
    if recompute != recipe.train.recompute:
        words.append(f"train.recompute={str(recompute).lower()}")
    ways = [stage.ways[plan.best] for stage in plan.stages]
    if [num_parts for num_parts, _ in _list_cuts(recipe, plan)] != [way.num_parts for way in ways]:
        # the largest micro-batch of any stage: it fits in every stage and does not increase the number of micro-batches
        words.append(f"train.micro_batch={max(way.micro_batch for way in ways)}")
    if not words:
        return [f"The recipe's settings are the best for this hardware: {time}."]
    return [f"Add {' '.join(words)} ({_say_why(recipe, plan)}): {time}."]


def _say_why(recipe: Recipe, plan: Plan) -> str:
    own = WAYS.index((recipe.train.parallel, recipe.train.recompute))
    wanted = [stage.ways[own] for stage in plan.stages]
    if not all(way.fits for way in wanted):
        return "the recipe's own settings do not fit"
    for (_, asked), way in zip(_list_cuts(recipe, plan), wanted, strict=True):
        if asked > way.largest_micro_batch:
            return f"the recipe's micro-batch of {asked:,} does not fit"
    return "the fastest settings that fit"


def _list_cuts(recipe: Recipe, plan: Plan) -> list[tuple[int, int]]:
    """Number and size of micro-batches per stage with the recipe's own settings."""
    return [
        stage.batching.cut(plan.machine.num_devices, span.recipe.train.micro_batch)
        for stage, span in zip(plan.stages, list_stage_spans(recipe), strict=True)
    ]


def _advise_batch(plan: Plan) -> list[str]:
    batches, num_devices = [stage.batching.num_rows for stage in plan.stages], plan.machine.num_devices
    if min(batches) < num_devices:
        few = f"A batch of {min(batches):,} sequences"
        return [f"{few} cannot be split across {num_devices:,} devices: training would not start."]
    return [
        f"{rows:,} sequences do not divide evenly across {num_devices:,} devices: some devices will idle."
        for rows in dict.fromkeys(batches)
        if rows % num_devices
    ]


def _advise_format(recipe: Recipe, plan: Plan) -> list[str]:
    machine = plan.machine
    other = faster_format(machine.device)
    if machine.dtype != "fp32" or other is None or recipe.train.hours:  # with train.hours the time is fixed
        return []
    best = (changed := plan_run(recipe, machine.device, machine.num_devices, dtype=other)).best
    if best is None:
        return []
    return [
        f"With {other} instead of fp32 (runtime.dtype={other}), the run takes {_describe_hours(changed.hours(best))}."
    ]


def _describe_hours(hours: float) -> str:
    """Hours, as machines are rented; minutes or seconds for a run that takes less."""
    return f"{hours:,.1f} hours" if hours >= 1 else describe_seconds(3600 * hours)
