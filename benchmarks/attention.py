"""Long texts: our full, window and block attention compared with transformers' Longformer, by length.

    python benchmarks/attention.py [--preset cpu-small] [--lengths 512,1024,2048,4096] [--width 128] [--rounds 3]
                                   [--only full,window,block] [--threads 1] [--no-peak] [--json out.json]

Encoders of the preset's shape with random weights process one text of each length: forward without gradients, and
forward and backward. Contenders take turns; a result is the minimum over all rounds, in processor time, because
wall-clock time on a busy machine also measures other programs. "kept" is the memory that autograd keeps for the
backward pass, by count; "peak" is the additional memory that a separate process needs for forward and backward, as
reported by the system. An exponent is the slope of a line through the logarithms from 1,024 tokens on: 1 is linear,
2 quadratic.

    full        our encoder as it is: PyTorch's fused attention kernel, which keeps no scores either
    window      attention = "window": --width tokens on each side, one global token
    block       attention = "block": blocks of twice the width
    longformer  transformers' LongformerModel with the same number of layers and window, unshared
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from torch import Tensor, nn

from litebert.model.config import ModelConfig
from litebert.model.model import build_model
from litebert.model.presets import preset

CONTENDERS = ("full", "window", "block", "longformer")
MODES = ("forward", "forward+backward")


def build(contender: str, config: ModelConfig, width: int) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """A model, and a function that computes its last hidden states from token ids (1, T)."""
    if contender == "longformer":
        from transformers import LongformerConfig, LongformerModel

        theirs = LongformerModel(
            LongformerConfig(
                vocab_size=config.vocab_size,
                hidden_size=config.hidden_size,
                num_hidden_layers=len(config.layer_plan.rows),
                num_attention_heads=config.num_heads,
                intermediate_size=config.ffn_size,
                attention_window=2 * width,
                max_position_embeddings=config.max_positions + 2,
                type_vocab_size=1,
                hidden_act="gelu_new",
                hidden_dropout_prob=config.hidden_dropout_rate,
                attention_probs_dropout_prob=config.attention_dropout_rate,
            )
        )
        first = torch.zeros(1, config.max_positions, dtype=torch.long)
        first[:, 0] = 1  # [CLS] is global
        return theirs, lambda ids: theirs(ids, global_attention_mask=first[:, : ids.shape[1]]).last_hidden_state
    if contender != "full":
        changed = width if contender == "window" else 2 * width
        config = replace(config, attention=contender, attention_width=changed)  # type: ignore[arg-type]
    model = build_model(config)
    return model, lambda ids: model.encoder(ids).hidden


def run(model: nn.Module, compute: Callable[[Tensor], Tensor], mode: str, ids: Tensor) -> None:
    if mode == "forward":
        model.eval()
        with torch.no_grad():
            compute(ids)
    else:
        model.train()
        model.zero_grad()
        compute(ids).sum().backward()


def measure_kept(model: nn.Module, compute: Callable[[Tensor], Tensor], ids: Tensor) -> int:
    """The size in bytes of all storages that a forward pass saves for the backward pass, except parameters."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: list[Tensor] = []
    model.train()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        states = compute(ids)
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in saved}
    del states
    return sum(size for address, size in storages.items() if address not in parameters)


def measure_peak(arguments: argparse.Namespace) -> int:
    """The bytes that forward and backward need in this process, which does nothing else."""
    contender, length = arguments.peak_of.split(",")
    model, compute = build(contender, shape(arguments, int(length)), arguments.width)
    run(model, compute, MODES[1], torch.zeros(1, 64, dtype=torch.long))  # loads libraries, allocates gradients
    before = read_status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    run(model, compute, MODES[1], torch.zeros(1, int(length), dtype=torch.long))
    return read_status("VmHWM") - before


def read_status(field: str) -> int:
    """A memory size of this process in bytes, as reported by the system."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def shape(arguments: argparse.Namespace, max_positions: int) -> ModelConfig:
    return replace(preset(arguments.preset), max_positions=max_positions)


def fit_exponent(lengths: list[int], values: list[float]) -> float:
    points = [(math.log(t), math.log(v)) for t, v in zip(lengths, values, strict=True) if t >= 1024 and v > 0]
    if len(points) < 2:
        return math.nan
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """The measurements of each contender by quantity, one per length."""
    lengths, contenders = arguments.lengths, arguments.only
    built = {name: build(name, shape(arguments, max(lengths)), arguments.width) for name in contenders}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in contenders}
    for length in lengths:
        ids = torch.randint(5, 1000, (1, length), generator=torch.Generator().manual_seed(length))
        for mode in MODES:
            best = dict.fromkeys(contenders, math.inf)
            for turn in range(arguments.rounds + 1):
                for name in contenders:
                    start = time.process_time()
                    run(*built[name], mode, ids)
                    if turn:  # the first round is a warm-up
                        best[name] = min(best[name], time.process_time() - start)
            for name in contenders:
                found[name].setdefault(mode, []).append(best[name])
        for name in contenders:
            found[name].setdefault("kept", []).append(measure_kept(*built[name], ids))
            if arguments.peak:
                found[name].setdefault("peak", []).append(ask_for_peak(arguments, name, length))
        print(f"{length} tokens measured", file=sys.stderr)
    return found


def ask_for_peak(arguments: argparse.Namespace, name: str, length: int) -> int:
    words = [f"--preset={arguments.preset}", f"--width={arguments.width}", f"--threads={arguments.threads}"]
    command = [sys.executable, __file__, *words, f"--peak-of={name},{length}"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def show(arguments: argparse.Namespace, found: dict[str, dict[str, list[float]]]) -> None:
    lengths = arguments.lengths
    print(f"{arguments.preset}, width {arguments.width}, {arguments.threads} threads, {name_processor()}")
    for quantity in next(iter(found.values())):
        is_time = quantity in MODES
        print(f"\n{quantity}, {'milliseconds of processor time' if is_time else 'MB'} (full / contender)")
        print(f"{'':12}" + "".join(f"{length:>18,}" for length in lengths) + f"{'exponent':>12}")
        for name, quantities in found.items():
            values = quantities[quantity]
            against = found["full"][quantity] if "full" in found else values
            cells = [
                f"{value * 1e3 if is_time else value / 1e6:>10,.1f} ({full / value if value else math.nan:5.2f})"
                for value, full in zip(values, against, strict=True)
            ]
            print(f"{name:12}" + "".join(f"{cell:>18}" for cell in cells) + f"{fit_exponent(lengths, values):>12.2f}")


def name_processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--preset", default="cpu-small")
    command.add_argument("--lengths", type=lambda text: [int(n) for n in text.split(",")], default="512,1024,2048,4096")
    command.add_argument("--width", type=int, default=128)
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--only", type=lambda text: text.split(","), default="full,window,block")
    command.add_argument("--threads", type=int, default=1)
    command.add_argument("--no-peak", dest="peak", action="store_false")
    command.add_argument("--json", type=Path)
    command.add_argument("--peak-of", help=argparse.SUPPRESS)
    arguments = command.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.peak_of:
        print(measure_peak(arguments))
        return
    found: dict[str, Any] = measure(arguments)
    show(arguments, found)
    if arguments.json:
        facts = {"preset": arguments.preset, "width": arguments.width, "lengths": arguments.lengths}
        arguments.json.write_text(json.dumps({**facts, "processor": name_processor(), "found": found}, indent=2))


if __name__ == "__main__":
    main()
