"""The LAMB step: ours beside the LAMBs on PyPI, interleaved in one run, as ratios of medians.

    python benchmarks/lamb.py [--rounds 9]

Libraries that are not installed are left out: pip install --no-deps pytorch_optimizer torch_optimizer pytorch_ranger
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Parameter

from litebert.train.optim import OptimOptions, build_optimizer

LAYER = {
    **{f"attention.{part}.weight": (768, 768) for part in ("query", "key", "value", "output")},
    **{f"attention.{part}.bias": (768,) for part in ("query", "key", "value", "output")},
    **{f"{part}.norm.{kind}": (768,) for part in ("attention", "ffn") for kind in ("weight", "bias")},
    "ffn.inner.weight": (3072, 768),
    "ffn.inner.bias": (3072,),
    "ffn.outer.weight": (768, 3072),
    "ffn.outer.bias": (768,),
}
SHAPES = {
    "12M (ALBERT-base)": {"word.weight": (30_000, 128), "projection.weight": (768, 128), **LAYER, "pooler": (768, 768)},
    "110M (BERT-base)": {
        "word.weight": (30_522, 768),
        "position.weight": (512, 768),
        **{f"layers.{i}.{name}": shape for i in range(12) for name, shape in LAYER.items()},
        "pooler.weight": (768, 768),
    },
}
# library -> (class, options closest to ours)
PEERS = {
    "pytorch_optimizer": ("Lamb", {"weight_decay": 0.01, "weight_decouple": False}),
    "torch_optimizer": ("Lamb", {"weight_decay": 0.01}),
    "pytorch_lamb": ("Lamb", {"weight_decay": 0.01}),
    "timm.optim.lamb": ("Lamb", {"weight_decay": 0.01, "max_grad_norm": None}),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=9)
    rounds = arguments.parse_args().rounds
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, median and fastest of {rounds} rounds")
    for title, shapes in SHAPES.items():
        print(f"\n{title}, {sum(torch.Size(shape).numel() for shape in shapes.values()) / 1e6:.1f}M parameters")
        report(time_interleaved(build_steps(shapes), rounds))


def build_steps(shapes: dict[str, tuple[int, ...]]) -> dict[str, Callable[[], object]]:
    """A step function for each optimizer, over its own copy of the parameters."""
    steps: dict[str, Callable[[], object]] = {
        "litebert lamb": build_optimizer(build_parameters(shapes).items(), OptimOptions()).step,
        "torch fused AdamW (no ratio)": build_optimizer(
            build_parameters(shapes).items(), OptimOptions(name="adamw")
        ).step,
    }
    for library, (name, options) in PEERS.items():
        try:
            optimizer = getattr(importlib.import_module(library), name)
        except ImportError as error:
            print(f"  ({library} left out: {error})")
            continue
        steps[library] = optimizer(list(build_parameters(shapes).values()), lr=1e-3, **options).step
    return steps


def build_parameters(shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    parameters = {name: Parameter(torch.randn(shape, generator=generator) * 0.02) for name, shape in shapes.items()}
    for parameter in parameters.values():
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 0.01
    return parameters  # type: ignore[return-value]


def time_interleaved(steps: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for round_number in range(rounds + 2):
        for name, step in steps.items():
            started_at = time.perf_counter()
            step()
            if round_number >= 2:  # compilation and first touches of memory
                seconds[name].append(time.perf_counter() - started_at)
    return seconds


def report(seconds: dict[str, list[float]]) -> None:
    ours = statistics.median(seconds["litebert lamb"])
    for name, samples in seconds.items():
        median = statistics.median(samples)
        print(f"  {name:30s} {median * 1e3:8.1f} ms (fastest {min(samples) * 1e3:6.1f})   x{median / ours:.2f} of ours")


if __name__ == "__main__":
    main()
