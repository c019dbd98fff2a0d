"""The LAMB step: ours compared with the LAMBs on PyPI, interleaved in one run, as ratios of medians.

    python benchmarks/lamb.py [--rounds 9]

Libraries that are not installed are skipped. Installed without their dependencies, they do not affect the environment:
pip install --no-deps pytorch_optimizer torch_optimizer pytorch_ranger pytorch-lamb tensorboardX
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from litebert.training.optimizers import build_optimizer
from litebert.training.options import OptimOptions

Shapes = dict[str, tuple[int, ...]]

LAYER: Shapes = {
    **{f"attention.{part}.weight": (768, 768) for part in ("query", "key", "value", "output")},
    **{f"attention.{part}.bias": (768,) for part in ("query", "key", "value", "output")},
    **{f"{part}.norm.{kind}": (768,) for part in ("attention", "ffn") for kind in ("weight", "bias")},
    "ffn.inner.weight": (3072, 768),
    "ffn.inner.bias": (3072,),
    "ffn.outer.weight": (768, 3072),
    "ffn.outer.bias": (768,),
}
SHAPES: dict[str, Shapes] = {
    "12M (ALBERT-base)": {"word.weight": (30_000, 128), "projection.weight": (768, 128), **LAYER, "pooler": (768, 768)},
    "110M (BERT-base)": {
        "word.weight": (30_522, 768),
        "position.weight": (512, 768),
        **{f"layers.{i}.{name}": shape for i in range(12) for name, shape in LAYER.items()},
        "pooler.weight": (768, 768),
    },
}


class Peer(NamedTuple):
    """A library's LAMB, with the options closest to ours, and the variant of ours with which it should agree."""

    options: dict[str, object]
    dialect: str | None = None


PEERS = {
    "torch_optimizer": Peer({"weight_decay": 0.01, "clamp_value": 1e9}, dialect="lamb"),
    "timm.optim.lamb": Peer({"weight_decay": 0.01, "max_grad_norm": None}, dialect="lamb-apex"),
    "pytorch_optimizer": Peer({"weight_decay": 0.01, "weight_decouple": False}),  # clamps the norm of the weights at 10
    "pytorch_lamb": Peer({"weight_decay": 0.01}),  # also clamps the norm
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=9)
    rounds = arguments.parse_args().rounds
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, median and fastest of {rounds} rounds")
    peers = import_peers()
    report_agreement(peers)
    for title, shapes in SHAPES.items():
        print(f"\n{title}, {sum(torch.Size(shape).numel() for shape in shapes.values()) / 1e6:.1f}M parameters")
        report(time_interleaved(build_steps(shapes, peers), rounds))


def import_peers() -> dict[str, type[torch.optim.Optimizer]]:
    peers = {}
    for library in PEERS:
        try:
            peers[library] = importlib.import_module(library).Lamb
        except ImportError as error:
            print(f"  {library} is left out: {error}")
    return peers


def build_steps(shapes: Shapes, peers: dict[str, type[torch.optim.Optimizer]]) -> dict[str, Callable[[], object]]:
    """A step function for each optimizer, over its own copy of the parameters."""
    steps: dict[str, Callable[[], object]] = {
        name: build_optimizer(build_parameters(shapes).items(), OptimOptions(name=name)).step
        for name in ("lamb", "lamb-apex", "adamw")
    }
    for library, optimizer in peers.items():
        steps[library] = optimizer(list(build_parameters(shapes).values()), lr=1e-3, **PEERS[library].options).step
    return steps


def report_agreement(peers: dict[str, type[torch.optim.Optimizer]]) -> None:
    """Compare the weights after five steps of each library and of the variant of ours with which it should agree."""
    shapes = {"a.weight": (300, 70), "b.weight": (1000,)}
    for library, optimizer in peers.items():
        dialect = PEERS[library].dialect
        if dialect is None:
            continue
        theirs, ours = build_parameters(shapes), build_parameters(shapes)
        steps = [
            optimizer(list(theirs.values()), lr=0.01, **PEERS[library].options).step,
            build_optimizer(ours.items(), OptimOptions(name=dialect, learning_rate=0.01)).step,
        ]
        for _ in range(5):
            for step in steps:
                step()
        difference = max(((theirs[name] - ours[name]).abs().max() / ours[name].abs().max()).item() for name in shapes)
        print(f"  {library} and our {dialect}: weights differ by {difference:.1e} of the largest after 5 steps")


def build_parameters(shapes: Shapes) -> dict[str, Tensor]:
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
            if round_number >= 2:  # the first two rounds cover compilation and page faults
                seconds[name].append(time.perf_counter() - started_at)
    return seconds


def report(seconds: dict[str, list[float]]) -> None:
    ours = statistics.median(seconds["lamb"])
    for name, samples in seconds.items():
        median = statistics.median(samples)
        title = name if name in PEERS else f"litebert {name}"
        print(
            f"  {title:20s} {median * 1e3:8.1f} ms (fastest {min(samples) * 1e3:6.1f})   x{median / ours:.2f} of ours"
        )


if __name__ == "__main__":
    main()
