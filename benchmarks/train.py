"""Pre-training steps: ours compared with transformers' AlbertForPreTraining on identical batches, interleaved.

    python benchmarks/train.py [--quick] [--compiled] [--only NAME ...] [--rounds 7] [--json results.json]

Both in fp32 and in bf16 (transformers under autocast, as in its Trainer), fused AdamW, no dropout, 15 % masked tokens
and sentence order. Each contender has its own process, so that none inherits another's heap; they step in turn. Ratios
are of medians, in wall-clock time and in the processor time of a step: on a busy machine trust the latter. Memory is
the peak minus the memory after imports. bf16 needs a processor with instructions for it (AVX512_BF16, AMX): without
them it is several times slower, and is skipped.
--compiled adds transformers under torch.compile (a minute of warm-up each); --quick runs fewer rounds and no ablation.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads must not spin while another contender runs

import torch
from rich.console import Console
from rich.table import Table
from suite.machine import describe_in_line, describe_machine, list_instructions
from training.batches import make_full_batch, make_real_batches, pad_like_a_collator
from training.without import WITHOUT

from litebert.batches.batch import Batch
from litebert.model.config import ModelConfig
from litebert.model.cost import training_flops_per_token
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.objectives.masked_lm import MaskedLM

Step = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A model shape and a batch without padding."""

    preset: str
    length: int
    batch_size: int
    floor: float  # minimum ratio of our tokens/s to transformers', both in fp32
    bf16_floor: float  # minimum ratio of ours in bf16 to transformers' in fp32
    memory_floor: float | None = None  # target share of transformers' memory

    @property
    def num_tokens(self) -> int:
        return self.batch_size * self.length


CASES = {
    "base-128": Case("albert-base-v2", 128, 8, floor=1.2, bf16_floor=2.4, memory_floor=0.65),
    "base-512": Case("albert-base-v2", 512, 4, floor=1.2, bf16_floor=2.4, memory_floor=0.4),
    "small-128": Case("albert-tiny", 128, 16, floor=2.5, bf16_floor=5.0),
}


class Contender(NamedTuple):
    """A training step and the batches it is measured on."""

    library: str  # litebert, transformers, compiled; peak = matrix multiplies
    case: Case
    layout: str = "full"  # or the layout for batches of real lengths
    without: str = ""  # the technique that is disabled
    dtype: str = "fp32"  # or bf16


class Sample(NamedTuple):
    """The time of one step."""

    wall: float
    cpu: float


@dataclass
class Result:
    """The measurements of every contender in one comparison, and the number of tokens per step of each."""

    title: str
    tokens: dict[str, int]
    samples: dict[str, list[Sample]]
    memory: dict[str, float] = field(default_factory=dict)  # megabytes above imports

    def rate(self, name: str, clock: int = 0) -> float:
        """Tokens per second, in wall-clock time or in processor time divided by the number of threads."""
        seconds = statistics.median(sample[clock] for sample in self.samples[name])
        return self.tokens[name] / seconds * (torch.get_num_threads() if clock else 1)

    def spread(self, name: str) -> float:
        """(slowest - fastest) / median, in wall-clock time."""
        walls = [sample.wall for sample in self.samples[name]]
        return (max(walls) - min(walls)) / statistics.median(walls)


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    console, machine = Console(width=130), describe_machine()
    report: dict[str, Any] = {"machine": machine, "threads": arguments.threads}
    console.print(f"{describe_in_line(machine)}, {arguments.threads} threads")
    rounds = arguments.rounds or (2 if arguments.quick else 7)
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
    return parser.parse_args()


def run_case(console: Console, name: str, rounds: int, arguments: argparse.Namespace) -> dict[str, Any]:
    case = CASES[name]
    if arguments.quick and case.memory_floor is None:
        case = replace(case, batch_size=case.batch_size // 2)
    dtypes = ("fp32", "bf16") if has_fast_bf16() else ("fp32",)
    contenders = {
        f"{who} {dtype}": Contender(who, case, dtype=dtype)
        for dtype in dtypes
        for who in ("transformers", "litebert", "peak")
    }
    if arguments.compiled:
        contenders["transformers compiled"] = Contender("compiled", case)
    result = interleave(f"{name}: {case.batch_size} x {case.length}", contenders, case.num_tokens, rounds)
    peaks = {
        dtype: PEAK_FLOP / statistics.median(sample.cpu for sample in result.samples.pop(f"peak {dtype}"))
        for dtype in dtypes
    }
    rows = print_rates(console, result)
    needed = training_flops_per_token(preset(case.preset), case.length)
    for row in rows:
        peak = peaks["bf16" if row["who"].endswith("bf16") else "fp32"]
        row["share_of_peak"] = needed * row["tokens_per_second_by_cpu_time"] / (peak * arguments.threads)
    shares = ", ".join(f"{row['who']} {row['share_of_peak']:.0%}" for row in rows)
    limits = ", ".join(f"{dtype} {peak / 1e9:.0f}" for dtype, peak in peaks.items())
    console.print(f"  needed FLOPs, share of what matrix multiplies reach ({limits} GFLOP/s per core): {shares}")
    memory_shares = {dtype: result.memory[f"litebert {dtype}"] / result.memory["transformers fp32"] for dtype in dtypes}
    memory = ", ".join(f"{dtype} {share:.2f}" for dtype, share in memory_shares.items())
    floor = f" (floor {case.memory_floor})" if case.memory_floor else ""
    console.print(f"  memory, share of theirs in fp32: {memory}{floor}")
    console.print(f"  speed floors over theirs in fp32: fp32 {case.floor}, bf16 {case.bf16_floor}\n")
    return {
        "rates": rows,
        "peak_gflops_per_core": {dtype: peak / 1e9 for dtype, peak in peaks.items()},
        "memory_shares": memory_shares,
    }


def has_fast_bf16() -> bool:
    """Whether the processor has bf16 instructions; torch computes it without them too, but slowly."""
    return bool({"avx512_bf16", "amx_bf16"} & set(list_instructions()))


def run_real_text(console: Console, rounds: int) -> dict[str, Any]:
    """Sentences of real lengths: the cost of padding. The measure is real tokens per second."""
    case = replace(CASES["small-128"], batch_size=8)
    contenders = {"transformers, padded": Contender("transformers", case, "padded")}
    contenders |= {
        f"litebert, {layout}": Contender("litebert", case, layout) for layout in ("padded", "sorted", "packed")
    }
    contenders["litebert, nothing to pad"] = Contender("litebert", case)
    real = make_real_batches(preset(case.preset).vocab_size)
    num_tokens = sum(int(batch.mask.sum()) for batch in real["padded"])
    tokens = dict.fromkeys(contenders, num_tokens) | {"litebert, nothing to pad": case.num_tokens}
    result = interleave("real text, small shape, real tokens", contenders, tokens, rounds)
    rows = print_rates(console, result)
    for layout, batches in real.items():
        cells = sum(batch.token_ids.numel() for batch in batches)
        console.print(f"  {layout}: {1 - num_tokens / cells:.0%} of the cells are padding")
    return {"rates": rows}


def run_ablation(console: Console, name: str, rounds: int) -> list[dict[str, Any]]:
    """The step with each technique disabled in turn, to show what it gains."""
    case = replace(CASES[name], batch_size=CASES[name].batch_size // 2)
    contenders = {"litebert": Contender("litebert", case)}
    contenders |= {f"without {without}": Contender("litebert", case, without=without) for without in WITHOUT}
    return print_rates(
        console, interleave(f"ablation, {name}: {case.batch_size} x {case.length}", contenders, case.num_tokens, rounds)
    )


def interleave(title: str, contenders: dict[str, Contender], tokens: int | dict[str, int], rounds: int) -> Result:
    """Run all contenders in turn, round after round; the first round is a warm-up."""
    counts = tokens if isinstance(tokens, dict) else dict.fromkeys(contenders, tokens)
    result = Result(title, counts, {name: [] for name in contenders})
    spawning = multiprocessing.get_context("spawn")
    lines: dict[str, Connection] = {}
    for name, contender in contenders.items():
        lines[name], far_end = spawning.Pipe()
        spawning.Process(target=serve, args=(far_end, contender, torch.get_num_threads()), daemon=True).start()
        far_end.close()
    for line in lines.values():
        line.recv()  # ready
    for number in range(rounds + 1):
        for name, line in lines.items():
            line.send("step")
            wall, cpu, result.memory[name] = line.recv()
            if number:
                result.samples[name].append(Sample(wall, cpu))
    for line in lines.values():
        line.send("stop")
    return result


def serve(line: Connection, contender: Contender, threads: int) -> None:
    """The main loop of a contender's process: one step per request."""
    torch.set_num_threads(threads)
    if contender.library in ("transformers", "compiled"):
        from transformers import AlbertForPreTraining  # noqa: F401 (so that the import is not measured)
    multiply_in(contender.dtype)()  # nor the libraries' own buffers
    before = read_peak_memory()
    step = build_step(contender)
    line.send("built")
    while line.recv() == "step":
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        line.send((time.perf_counter() - wall, time.process_time() - cpu, read_peak_memory() - before))


def build_step(contender: Contender) -> Step:
    if contender.library == "peak":
        return multiply_in(contender.dtype)
    config = preset(contender.case.preset)
    if contender.layout == "full":
        batches = [make_full_batch(contender.case.batch_size, contender.case.length, config.vocab_size)]
    else:
        batches = make_real_batches(config.vocab_size)[contender.layout]
    if contender.library == "litebert":
        return build_ours(config, batches, dtype=contender.dtype, without=contender.without)
    return build_theirs(config, batches, dtype=contender.dtype, is_compiled=contender.library == "compiled")


def build_ours(config: ModelConfig, batches: list[Batch], *, dtype: str = "fp32", without: str = "") -> Step:
    """A training step over each of these batches; `without` disables one of our techniques."""
    model = build_model(config, ["mlm", "sentence"])
    model.encoder.training_dtype = torch.bfloat16 if dtype == "bf16" else None
    is_fused = without != "fused AdamW"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=is_fused, foreach=None if is_fused else False)

    def step() -> None:
        for batch in batches:
            MaskedLM().batch_loss(model, batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    def step_without() -> None:
        with WITHOUT[without]():
            step()

    return step_without if without else step


def build_theirs(config: ModelConfig, batches: list[Batch], *, dtype: str = "fp32", is_compiled: bool = False) -> Step:
    """The same step with transformers, with batches as from a collator."""
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
    forward = torch.compile(model) if is_compiled else model
    inputs = [pad_like_a_collator(batch) for batch in batches]

    def step() -> None:
        for batch in inputs:
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
                loss = forward(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


PEAK_SIZE = 1536
PEAK_FLOP = 4 * 2 * PEAK_SIZE**3


def multiply_in(dtype: str) -> Step:
    matrix = torch.ones(PEAK_SIZE, PEAK_SIZE, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32)

    def multiply() -> None:
        for _ in range(4):
            torch.mm(matrix, matrix)

    return multiply


def print_rates(console: Console, result: Result) -> list[dict[str, Any]]:
    """A table on the terminal, and its rows; ratios are relative to the first."""
    table = Table(title=result.title, title_justify="left")
    for column in ("", "tokens/s", "ratio", "tokens/s by CPU time", "ratio", "spread", "MB"):
        table.add_column(column, justify="right" if column else "left")
    reference, rows = next(iter(result.samples)), []
    for name, samples in result.samples.items():
        wall, cpu = result.rate(name), result.rate(name, clock=1)
        row = {
            "who": name,
            "tokens_per_second": wall,
            "ratio": wall / result.rate(reference),
            "tokens_per_second_by_cpu_time": cpu,
            "ratio_by_cpu_time": cpu / result.rate(reference, clock=1),
            "memory_mb": result.memory[name],
            "samples": samples,
        }
        rows.append(row)
        cells = (f"{wall:,.0f}", f"{row['ratio']:.2f}", f"{cpu:,.0f}", f"{row['ratio_by_cpu_time']:.2f}")
        table.add_row(name, *cells, f"{result.spread(name):.0%}", f"{row['memory_mb']:.0f}")
    console.print(table)
    return rows


def read_peak_memory() -> float:
    """The peak memory of this process in megabytes. (getrusage would include its parent's.)"""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
