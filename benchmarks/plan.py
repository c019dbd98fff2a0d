"""Is `litebert recipes plan` right about this machine? Compares short training runs with its predictions.

    python benchmarks/plan.py [--only NAME ...] [--steps 10] [--threads 2] [--json results.json]

Each run is a separate process: batches without padding, the loop and the optimizer of a real run, a few steps.
Predictions are based on the fastest matrix multiplication and the fastest copy that the process measures between its
steps. Speed is compared in wall-clock time and in the processor time of multiplications and steps: on a busy machine
trust the latter. Memory is the peak minus the memory after imports.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from rich.console import Console
from rich.table import Table
from training.batches import make_full_batch

from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.model.model import build_model
from litebert.objectives.registry import build_objective
from litebert.plan.devices import BILLION, Device, Peaks, load_device
from litebert.plan.plan import Way, plan_run
from litebert.pretraining.recipe import Recipe, load_recipe
from litebert.training.distributed import TaskLoss
from litebert.training.loop import Engine, build_scaler, update
from litebert.training.optimizers import build_optimizer

CASES = {
    "nano": ["nano", "batch.sequences=64"],
    "tiny": ["nano", "model.preset=albert-tiny", "segments.max_length=128", "batch.sequences=16"],
    "base": ["albert-base", "model.preset=albert-base-v2", "segments.max_length=128", "batch.sequences=8"],
    "base, dropout": ["albert-base", "segments.max_length=128", "batch.sequences=8"],
    "base, recompute": ["albert-base", "model.preset=albert-base-v2", "segments.max_length=128", "batch.sequences=8"],
    "bert-base": ["bert-base-lamb", "segments.max_length=128", "batch.sequences=8"],
}
CASES["base, recompute"] += ["train.recompute=true"]
TOY = ["model.hidden_size=16", "model.ffn_size=16", "model.vocab_size=64", "batch.sequences=2"]
MATRIX_SIZE = 1536
COPY_BYTES = 1 << 26


class Spent(NamedTuple):
    """Wall-clock seconds, and processor seconds divided by the number of threads."""

    wall: float
    cpu: float


class Measured(NamedTuple):
    """The measurements of a run's process."""

    steps: list[Spent]
    multiplies: list[Spent]
    copies: list[Spent]
    memory: float  # bytes above imports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2, help="one, on a machine that has other things to do")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console = Console(width=130)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"torch {torch.__version__}, {arguments.threads} threads, {load}")
    report = {}
    for name in arguments.only:
        measured = run_in_own_process(CASES[name], arguments.steps, arguments.threads)
        report[name] = compare(load_recipe(CASES[name][0], CASES[name][1:]), measured)
    print_report(console, report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def run_in_own_process(words: list[str], num_steps: int, num_threads: int) -> Measured:
    spawning = multiprocessing.get_context("spawn")
    near, far = spawning.Pipe()
    process = spawning.Process(target=train, args=(far, words, num_steps, num_threads), daemon=True)
    process.start()
    far.close()
    measured: Measured = near.recv()
    process.join()
    return measured


def train(line: Any, words: list[str], num_steps: int, num_threads: int) -> None:
    """A short run, with multiplications and copies between its steps."""
    torch.set_num_threads(num_threads)
    matrix = torch.ones(MATRIX_SIZE, MATRIX_SIZE)
    source, target = torch.zeros(2, COPY_BYTES, dtype=torch.uint8)
    multiply, copy = lambda: torch.mm(matrix, matrix), lambda: target.copy_(source)
    recipe = load_recipe(words[0], words[1:])
    # memory that libraries allocate on first use does not count for the run
    multiply(), copy()
    build_step(load_recipe("nano", [*TOY, f"optim.name={recipe.optim.name}"]))(0)
    before = read_memory("VmHWM")
    step = build_step(recipe)
    for number in range(2):  # the first step creates the optimizer's state
        step(number)
    spent: dict[str, list[Spent]] = {"steps": [], "multiplies": [], "copies": []}
    for number in range(num_steps):
        spent["steps"].append(clock(lambda: step(number), num_threads))  # noqa: B023 (called at once)
        spent["multiplies"] += [clock(multiply, num_threads) for _ in range(3)]
        spent["copies"] += [clock(copy, num_threads) for _ in range(3)]
    line.send(Measured(**spent, memory=read_memory("VmHWM") - before))


def build_step(recipe: Recipe) -> Callable[[int], object]:
    runtime = choose_runtime(replace(RuntimeOptions(), device="cpu"))
    task = build_objective(recipe)
    model = build_model(recipe.model, task.heads, seed=recipe.seed)
    model.encoder.recompute = recipe.train.recompute
    model.train()
    optimizer = build_optimizer(model.named_parameters(), recipe.optim)
    loss = TaskLoss(model, task)
    engine = Engine(model, loss, optimizer, task, runtime, build_scaler(runtime), recipe.optim.clip_norm, recipe.seed)
    batch = make_full_batch(recipe.batch.sequences, recipe.segments.max_length, recipe.model.vocab_size)
    return lambda step: update(engine, [batch], step, recipe.optim.learning_rate)


def clock(action: Callable[[], object], num_threads: int) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Spent(time.perf_counter() - wall, (time.process_time() - cpu) / num_threads)


def compare(recipe: Recipe, measured: Measured) -> dict[str, Any]:
    """The predicted and the measured values, and the error of the prediction."""
    row: dict[str, Any] = {"memory_mb": compare_values(predict(recipe, measured, 0).memory.total, measured.memory, 1e6)}
    num_tokens = recipe.batch.sequences * recipe.segments.max_length
    for index, clock_name in enumerate(Spent._fields):
        seconds = statistics.median(spent[index] for spent in measured.steps)
        predicted = num_tokens / predict(recipe, measured, index).step_seconds
        row[f"tokens_per_second_{clock_name}"] = compare_values(predicted, num_tokens / seconds)
    row["peak_gflops_wall"] = peak(measured, 0) / 1e9
    return row


def compare_values(predicted: float, measured: float, unit: float = 1.0) -> dict[str, float]:
    return {"predicted": predicted / unit, "measured": measured / unit, "error": predicted / measured - 1}


def predict(recipe: Recipe, measured: Measured, clock_index: int) -> Way:
    """The plan for a machine that multiplies and copies as fast as this one did."""
    copy_seconds = min(spent[clock_index] for spent in measured.copies)
    device: Device = replace(
        this_cpu(),
        tflops=Peaks(fp32=peak(measured, clock_index) / 1e12),
        memory_gb_per_second=2 * COPY_BYTES / copy_seconds / BILLION,
    )
    ways = plan_run(recipe, device, 1).stages[0].ways
    return next(way for way in ways if way.recompute == recipe.train.recompute)


@cache
def this_cpu() -> Device:
    return load_device("this-cpu")


def peak(measured: Measured, clock_index: int) -> float:
    return 2 * MATRIX_SIZE**3 / min(spent[clock_index] for spent in measured.multiplies)


def print_report(console: Console, report: dict[str, dict[str, Any]]) -> None:
    table = Table(title="predicted / measured (error of the prediction)", title_justify="left")
    for column in ("", "tokens/s", "tokens/s by CPU time", "memory MB"):
        table.add_column(column, justify="right" if column else "left")
    for name, row in report.items():
        cells = [row[key] for key in ("tokens_per_second_wall", "tokens_per_second_cpu", "memory_mb")]
        table.add_row(
            name, *(f"{cell['predicted']:,.0f} / {cell['measured']:,.0f} ({cell['error']:+.0%})" for cell in cells)
        )
    console.print(table)


def read_memory(field: str) -> int:
    """Memory of this process in bytes; VmHWM is the peak."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main()
