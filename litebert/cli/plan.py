"""`litebert recipes plan`: estimate what a recipe needs on other machines; trains nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from litebert.cli.printing import open_console, print_json
from litebert.cli.words import AsJson, Hardware, NumDevices, Overrides, RecipeName

if TYPE_CHECKING:
    from rich.console import Console

    from litebert.plan.plan import Plan, StagePlan, Way


def plan_recipe(
    recipe: RecipeName,
    overrides: Overrides = None,
    hardware: Hardware = "this-cpu",
    devices: NumDevices = 1,
    efficiency: Annotated[
        float | None, typer.Option(help="Share of peak FLOP/s that training reaches. Default: the hardware's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate memory, communication volume and hours of a recipe on some hardware.

    DDP and FSDP are compared; nothing is trained.

    Examples:
      litebert recipes plan albert-base --hardware a100-80g --devices 8
      litebert recipes plan albert-base batch.sequences=512 train.steps=10000 --hardware v100-32g --json
    """
    from litebert.plan.advice import advise
    from litebert.plan.devices import load_device, with_efficiency
    from litebert.plan.plan import plan_run
    from litebert.pretraining.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    plan = plan_run(resolved, with_efficiency(load_device(hardware), efficiency), devices)
    advice = advise(resolved, plan)
    if as_json:
        print_json(plan.to_json() | {"advice": advice})
    else:
        _print(recipe, plan, advice)


def _print(name: str, plan: "Plan", advice: list[str]) -> None:
    console = open_console()
    machine, device = plan.machine, plan.machine.device
    peak = device.peak_flops(machine.dtype)
    console.print(
        f"[bold]{name} on {machine.num_devices:,} x {device.title}[/bold], {machine.dtype} at {device.efficiency:.0%} "
        f"of {f'{peak / 1e12:,.3g} T' if peak >= 1e12 else f'{peak / 1e9:,.3g} G'}FLOP/s"
    )
    if device.note:
        console.print(f"({device.note})")
    for number, stage in enumerate(plan.stages, start=1):
        _print_stage(console, plan, stage, f"stage {number}: " if len(plan.stages) > 1 else "")
    console.print(f"total       {_count(plan.total_tokens)} tokens, {plan.total_flops:.3g} FLOPs")
    if plan.bert is not None and machine.num_devices > 1:
        _print_comparison(console, plan.stages[0], plan.bert)
    console.print()
    for sentence in advice:
        console.print(sentence, style=None if plan.best is not None else "bold red")


def _print_stage(console: "Console", plan: "Plan", stage: "StagePlan", title: str) -> None:
    from rich import box
    from rich.table import Table

    batching, num_devices = stage.batching, plan.machine.num_devices
    last = stage.first_step + stage.num_steps
    console.print()
    if title:
        console.print(f"[bold]{title}steps {stage.first_step:,} to {last:,}[/bold]")
    sharing = "shared across layers" if stage.is_shared else "not shared"
    console.print(f"model       {stage.num_parameters:,} parameters, {sharing}")
    console.print(
        f"batch       {batching.num_rows:,} x {batching.length} = {_count(batching.num_tokens)} tokens, "
        f"{batching.rows_per_device(num_devices):,} sequences per device"
    )
    console.print(f"work        {stage.flops_per_step:.3g} FLOPs per step, {stage.num_steps:,} steps")
    ways = [way for way in stage.ways if num_devices > 1 or way.parallel == "ddp"]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("on each device", no_wrap=True)
    for way in ways:
        kind = way.parallel.upper() if num_devices > 1 else "one device"
        table.add_column(f"{kind}, recompute" if way.recompute else kind, justify="right")
    for label, show in _rows(plan, stage):
        table.add_row(label, *(show(way) for way in ways))
    console.print(table)


def _rows(plan: "Plan", stage: "StagePlan") -> "list[tuple[str, Callable[[Way], str]]]":
    usable = plan.machine.device.usable_bytes
    is_alone = plan.machine.num_devices == 1
    memory: list[tuple[str, Callable[[Way], str]]] = [
        ("weights", lambda way: _bytes(way.memory.weights)),
        ("gradients", lambda way: _bytes(way.memory.gradients)),
        ("optimizer state", lambda way: _bytes(way.memory.optimizer)),
        ("gathered shards", lambda way: _bytes(way.memory.gathered)),
        ("activations", lambda way: _bytes(way.memory.activations)),
        ("working memory", lambda way: _bytes(way.memory.working)),
        (f"total, of {_bytes(usable)}", lambda way: f"[bold]{_bytes(way.memory.total)}[/bold]"),
    ]
    batch: list[tuple[str, Callable[[Way], str]]] = [
        ("largest micro-batch", lambda way: f"{way.largest_micro_batch:,}" if way.fits else "[red]does not fit[/red]"),
        ("micro-batches per step", lambda way: f"{way.num_parts:,} x {way.micro_batch:,}" if way.fits else "-"),
    ]
    traffic: list[tuple[str, Callable[[Way], str]]] = [
        ("sent per step", lambda way: _bytes(way.sent_bytes)),
        ("communicating", lambda way: _seconds(way.communicating_seconds)),
        ("of which waiting", lambda way: _seconds(way.waiting_seconds)),
    ]
    time: list[tuple[str, Callable[[Way], str]]] = [
        ("computing per step", lambda way: _seconds(way.computing_seconds)),
        ("updating", lambda way: _seconds(way.updating_seconds)),
        ("hours", lambda way: f"[bold]{stage.hours(way):,.1f}[/bold]" if way.fits else "-"),
    ]
    if is_alone:
        return [*memory[:3], *memory[4:], *batch, *time]
    return [*memory, *batch, *time[:-1], *traffic, time[-1]]


def _print_comparison(console: "Console", stage: "StagePlan", bert: "StagePlan") -> None:
    ours, theirs = stage.ways[0], bert.ways[0]
    times = bert.num_trained / stage.num_trained
    console.print(
        f"BERT        of the same width and depth: {bert.num_parameters:,} parameters, {times:.1f} times as many to "
        f"send\n            (DDP: {_bytes(theirs.sent_bytes)} per step instead of {_bytes(ours.sent_bytes)}; "
        f"{_seconds(theirs.communicating_seconds)} instead of {_seconds(ours.communicating_seconds)}), "
        f"{bert.flops_per_step / stage.flops_per_step:.2f} times the FLOPs"
    )


def _bytes(size: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size / 1e3:,.1f} kB" if size else "-"


def _seconds(seconds: float) -> str:
    if not seconds:
        return "-"
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:,.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.3g} µs"


def _count(number: int) -> str:
    for unit, name in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:,.1f}{name}"
    return f"{number:,}"
