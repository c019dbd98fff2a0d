"""Choose an engine: the one named by the user, or the fastest on this machine by a short benchmark."""

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Literal, NamedTuple

import torch

from litebert.core.errors import ConfigError, suggest
from litebert.inference.engines.graphs import BatchEngine, EngineName
from litebert.model.engine import HeadInputs, HeadName

EngineChoice = Literal["auto", "torch", "onnx", "openvino"]
PACKAGES: dict[EngineName, tuple[str, ...]] = {
    "torch": ("torch",),
    "onnx": ("onnxruntime", "onnx"),
    "openvino": ("openvino", "onnx"),
}
LENGTHS = (16, 64)  # tokens of the texts that are timed: a phrase and a paragraph
ROUNDS = 5
Build = Callable[[EngineName], BatchEngine]


class Trial(NamedTuple):
    """The head and maximum text length with which engines are timed."""

    head: HeadName
    max_length: int


def choose_engine(wanted: str, possible: Sequence[EngineName], build: Build, trial: Trial) -> BatchEngine:
    """The engine with this name; for "auto", the fastest supported and installed one."""
    if wanted not in ("auto", *PACKAGES):
        raise ConfigError(
            "unknown-value", f"unknown engine '{wanted}'; {suggest(wanted, ('auto', *PACKAGES))}", option="engine"
        )
    if wanted != "auto":
        if wanted not in possible:
            raise ConfigError(
                "unsupported-engine",
                f"engine '{wanted}' cannot run this model: use {' or '.join(possible)}",
                option="engine",
            )
        return build(wanted)  # type: ignore[arg-type]
    engines = [build(name) for name in possible if is_installed(name)]
    if not engines:
        raise ConfigError("missing-package", "no installed engine can run this model: pip install 'litebert[export]'")
    return engines[0] if len(engines) == 1 else min(_time_all(engines, trial), key=lambda one: one[1])[0]


def is_installed(name: EngineName) -> bool:
    return all(find_spec(package) is not None for package in PACKAGES[name])


def _time_all(engines: Sequence[BatchEngine], trial: Trial) -> Iterator[tuple[BatchEngine, float]]:
    """Each engine with its time in seconds for the same texts: the best of several interleaved rounds."""
    seconds = {engine.name: [float("inf")] * len(LENGTHS) for engine in engines}
    for number in range(1 + ROUNDS):
        for engine in engines:
            for place, length in enumerate(LENGTHS):
                spent = _time_once(engine, trial.head, min(length, trial.max_length))
                if number:  # the first round is a warm-up
                    seconds[engine.name][place] = min(seconds[engine.name][place], spent)
    for engine in engines:
        yield engine, sum(seconds[engine.name])


def _time_once(engine: BatchEngine, head: HeadName, length: int) -> float:
    token_ids = torch.zeros(1, length, dtype=torch.long)
    mask = torch.ones(1, length, dtype=torch.bool)
    inputs = HeadInputs(token_ids, torch.zeros_like(token_ids), mask, mask, mask_id=-1)
    started_at = time.perf_counter()
    engine.run(head, inputs)
    return time.perf_counter() - started_at
