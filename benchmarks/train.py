"""Pre-training steps: ours beside transformers' AlbertForPreTraining on identical batches, interleaved in one run.

    python benchmarks/train.py [--quick] [--compiled] [--only NAME ...] [--rounds 7] [--json results.json]

fp32, fused AdamW for both, no dropout, 15 % masked words and sentence order. Ratios are of medians, over wall-clock
time and over the processor time that a step took: on a busy machine trust the second. --compiled adds torch.compile of
transformers (a minute of warm-up each); --quick takes smaller batches and fewer rounds, and no ablation.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from training.batches import make_full_batch, make_real_batches, pad_like_a_collator
from training.without import WITHOUT

from litebert.data.batch import Batch
from litebert.model.config import ModelConfig
from litebert.model.cost import training_flops_per_token
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.tasks.pretraining import pretraining_loss

Step = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A model shape and a batch without padding."""

    preset: str
    length: int
    batch_size: int
    floor: float  # times transformers' tokens/s
    memory_floor: float | None  # share of transformers' memory

    @property
    def config(self) -> ModelConfig:
        return replace(preset(self.preset), hidden_dropout_rate=0.0, attention_dropout_rate=0.0)

    @property
    def batch(self) -> Batch:
        return make_full_batch(self.batch_size, self.length, self.config.vocab_size)

    @property
    def num_tokens(self) -> int:
        return self.batch_size * self.length


CASES = {
    "base-128": Case("albert-base", 128, 8, floor=1.2, memory_floor=0.65),
    "base-512": Case("albert-base", 512, 4, floor=1.2, memory_floor=0.4),
    "small-128": Case("albert-tiny", 128, 16, floor=2.5, memory_floor=None),
}


class Sample(NamedTuple):
    """What one step took."""

    wall: float
    cpu: float


@dataclass
class Result:
    """Samples of every contender of one comparison, and how many tokens a step of each trains on."""

    title: str
    tokens: dict[str, int]
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def rate(self, name: str, clock: int = 0) -> float:
        """Tokens a second, by wall clock or by processor time spread over the threads."""
        seconds = statistics.median(sample[clock] for sample in self.samples[name])
        return self.tokens[name] / seconds * (torch.get_num_threads() if clock else 1)

    def spread(self, name: str) -> float:
        """(slowest - fastest) / median, of wall-clock time."""
        walls = [sample.wall for sample in self.samples[name]]
        return (max(walls) - min(walls)) / statistics.median(walls)


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    if arguments.measure_memory:
        print(measure_memory(*arguments.measure_memory))
        return
    console, report = Console(width=130), {}
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"torch {torch.__version__}, {arguments.threads} threads, {load}")
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    for name in arguments.only or [*CASES, "real-text", *([] if arguments.quick else ["ablation"])]:
        if name in CASES:
            report[name] = run_case(console, name, rounds, arguments)
        elif name == "real-text":
            report[name] = run_real_text(console, rounds)
        else:
            report[name] = {case: run_ablation(console, case, rounds) for case in ("base-128", "small-128")}
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under two minutes on two quiet cores")
    parser.add_argument("--compiled", action="store_true", help="transformers compiled, too")
    parser.add_argument("--only", nargs="+", choices=[*CASES, "real-text", "ablation"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--threads", type=int, default=2, help="one, on a machine that has other things to do")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure-memory", nargs=2, metavar=("WHO", "CASE"), help=argparse.SUPPRESS)
    return parser.parse_args()


def run_case(console: Console, name: str, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    case = CASES[name]
    timed = replace(case, batch_size=case.batch_size // 2) if arguments.quick else case
    steps = {
        "transformers": build_theirs(case.config, [timed.batch]),
        "litebert": build_ours(case.config, [timed.batch]),
    }
    if arguments.compiled:
        steps["transformers compiled"] = build_theirs(case.config, [timed.batch], is_compiled=True)
    result = interleave(
        f"{name}: {timed.batch_size} x {case.length}", {"peak": multiply, **steps}, timed.num_tokens, rounds
    )
    memory = {who: ask_memory(who, name) for who in ("transformers", "litebert")}
    needed = training_flops_per_token(case.config, case.length) * timed.num_tokens
    peak = PEAK_FLOP / statistics.median(sample.wall for sample in result.samples.pop("peak"))
    table = print_rates(console, result)
    for row in table:
        row["share_of_peak"] = needed / timed.num_tokens * row["tokens_per_second"] / peak
        row["memory_mb"] = memory.get(row["who"])
    shares = ", ".join(f"{row['who']} {row['share_of_peak']:.0%}" for row in table)
    console.print(f"  needed FLOPs, share of the measured {peak / 1e9:.0f} GFLOP/s: {shares}")
    share_of_memory = memory["litebert"] / memory["transformers"]
    console.print(
        f"  memory over imports at {case.batch_size} x {case.length}: {memory['litebert']:.0f} of "
        f"{memory['transformers']:.0f} MB = {share_of_memory:.2f}"
        + (f" (floor {case.memory_floor})" if case.memory_floor else "")
        + f"; speed floor x{case.floor}\n"
    )
    return {"rates": table, "peak_gflops": peak / 1e9, "memory_share": share_of_memory}


def run_real_text(console: Console, rounds: int) -> dict[str, Any]:
    """Sentences of real lengths: do we pay for padding? The measure is real tokens a second."""
    config = CASES["small-128"].config
    real = make_real_batches(config.vocab_size)
    num_tokens = sum(int(batch.mask.sum()) for batch in real["padded"])
    full = make_full_batch(8, 128, config.vocab_size)
    steps = {
        "transformers, padded": build_theirs(config, real["padded"]),
        "litebert, padded": build_ours(config, real["padded"]),
        "litebert, sorted by length": build_ours(config, real["sorted"]),
        "litebert, packed": build_ours(config, real["packed"]),
        "litebert, nothing to pad": build_ours(config, [full] * (num_tokens // full.token_ids.numel())),
    }
    tokens = dict.fromkeys(steps, num_tokens) | {"litebert, nothing to pad": num_tokens // 1024 * 1024}
    result = interleave("real text, small shape, real tokens", steps, tokens, max(2, rounds // 2))
    for name in ("padded", "sorted", "packed"):
        cells = sum(batch.token_ids.numel() for batch in real[name])
        console.print(f"  {name}: {1 - num_tokens / cells:.0%} of the cells are padding")
    return {"rates": print_rates(console, result)}


def run_ablation(console: Console, name: str, rounds: int) -> list[dict[str, Any]]:
    """The step without each technique in turn: what it costs to do without."""
    case = CASES[name]
    half = replace(case, batch_size=case.batch_size // 2)
    steps = {"litebert": build_ours(case.config, [half.batch])}
    for without in WITHOUT:
        steps[f"without {without}"] = build_ours(case.config, [half.batch], without=without)
    result = interleave(f"ablation, {name}: {half.batch_size} x {case.length}", steps, half.num_tokens, rounds)
    memory = {who: ask_memory(who, name) for who in steps}
    return print_rates(console, result, reference="litebert", memory=memory)


def build_ours(config: ModelConfig, batches: list[Batch], *, without: str | None = None) -> Step:
    """A training step over these batches; `without` one of our techniques."""
    model = build_model(config, ["mlm", "sentence"])
    is_fused = without != "fused AdamW"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=is_fused, foreach=False if not is_fused else None)
    fill_state(optimizer)

    def step() -> None:
        for batch in batches:
            with WITHOUT[without]() if without else WITHOUT["fused AdamW"]():
                pretraining_loss(model, batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def build_theirs(config: ModelConfig, batches: list[Batch], *, is_compiled: bool = False) -> Step:
    """The same step with transformers, as a collator would feed it."""
    import transformers

    model: Any = transformers.AlbertForPreTraining(
        transformers.AlbertConfig(
            vocab_size=config.vocab_size,
            embedding_size=config.embedding_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.ffn_size,
            classifier_dropout_prob=0.0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    fill_state(optimizer)
    forward = torch.compile(model) if is_compiled else model
    inputs = [pad_like_a_collator(batch) for batch in batches]

    def step() -> None:
        for batch in inputs:
            forward(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def fill_state(optimizer: torch.optim.Optimizer) -> None:
    """Moments exist from the first step on, so that memory measured over one step is that of any step."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()


PEAK_SIZE = 1536
PEAK_FLOP = 4 * 2 * PEAK_SIZE**3
MATRIX = torch.ones(PEAK_SIZE, PEAK_SIZE)


def multiply() -> None:
    for _ in range(4):
        torch.mm(MATRIX, MATRIX)


def interleave(title: str, steps: dict[str, Step], tokens: int | dict[str, int], rounds: int) -> Result:
    """Every contender in turn, round after round; the first round warms up."""
    counts = tokens if isinstance(tokens, dict) else dict.fromkeys(steps, tokens)
    result = Result(title, counts, {name: [] for name in steps})
    for number in range(rounds + 1):
        for name, step in steps.items():
            wall, cpu = time.perf_counter(), time.process_time()
            step()
            sample = Sample(time.perf_counter() - wall, time.process_time() - cpu)
            if number:
                result.samples[name].append(sample)
    return result


def print_rates(
    console: Console, result: Result, *, reference: str | None = None, memory: dict[str, float] | None = None
) -> list[dict[str, Any]]:
    """A table on the terminal, and its rows."""
    reference = reference or next(iter(result.samples))
    table = Table(title=result.title, title_justify="left")
    for column in ("", "tokens/s", "ratio", "tokens/s by CPU time", "ratio", "spread", *(["MB"] if memory else [])):
        table.add_column(column, justify="left" if not column else "right")
    rows = []
    for name in result.samples:
        wall, cpu = result.rate(name), result.rate(name, clock=1)
        wall_ratio, cpu_ratio = wall / result.rate(reference), cpu / result.rate(reference, clock=1)
        cells = [name, f"{wall:,.0f}", f"{wall_ratio:.2f}", f"{cpu:,.0f}", f"{cpu_ratio:.2f}"]
        cells += [f"{result.spread(name):.0%}", *([f"{memory[name]:.0f}"] if memory else [])]
        table.add_row(*cells)
        rows.append(
            {
                "who": name,
                "tokens_per_second": wall,
                "ratio": wall_ratio,
                "ratio_by_cpu_time": cpu_ratio,
                "samples": [sample._asdict() for sample in result.samples[name]],
                **({"memory_mb": memory[name]} if memory else {}),
            }
        )
    console.print(table)
    return rows


def ask_memory(who: str, name: str) -> float:
    """Megabytes over imports of one step, measured in a process of its own."""
    command = [sys.executable, __file__, "--measure-memory", who, name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def measure_memory(who: str, name: str) -> float:
    case = CASES[name]
    if who == "transformers":
        from transformers import AlbertForPreTraining  # noqa: F401 (imported before the measurement begins)
    multiply()  # the libraries' own buffers
    before = read_peak_memory()
    if who == "transformers":
        step = build_theirs(case.config, [case.batch])
    else:
        step = build_ours(case.config, [case.batch], without=who.partition("without ")[2] or None)
    step()
    return read_peak_memory() - before


def read_peak_memory() -> float:
    """The most megabytes that this process has held. (getrusage would count its parent's, too.)"""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
