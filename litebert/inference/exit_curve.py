"""What is lost and won by answering early: scores, layers and seconds at every patience, and at every depth."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from litebert.core.errors import ConfigError
from litebert.inference.engines.engine import Engine, EngineName
from litebert.inference.evaluation import evaluate
from litebert.inference.exported import is_export
from litebert.inference.predictor import Predictor
from litebert.model.reading import ReadHead, ReadInputs
from litebert.tasks.finetuning import Dataset

Way = Literal["patience", "depth", "all"]


@dataclass(frozen=True)
class CurvePoint:
    """One way to answer, and what came of it."""

    way: Way
    value: int  # the patience, or the number of layers
    score: float
    mean_layers: float
    seconds: float  # for all examples


@dataclass(frozen=True)
class _Counting:
    """An engine that notes how many layers texts needed."""

    engine: Engine
    layers: list[int]

    @property
    def name(self) -> EngineName:
        return self.engine.name

    @property
    def batch_cost(self) -> int:
        return self.engine.batch_cost

    @property
    def batch_tokens(self) -> int:
        return self.engine.batch_tokens

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        outputs = self.engine.read(head, inputs)
        self.layers.extend(outputs["layers"].tolist())
        return outputs

    def can_exit(self, head: ReadHead) -> bool:
        return self.engine.can_exit(head)


def draw_curve(
    load: Callable[[int, int], Predictor],
    dataset: Dataset,
    examples: Sequence[Any],
    say: Callable[[CurvePoint], None] = lambda _: None,
) -> list[CurvePoint]:
    """Points for all layers, for every patience and, of a checkpoint, for every depth.

    `load` takes (patience, layers).
    """
    whole = load(0, 0)
    whole.check_exits()
    if any(example.label is None for example in examples):
        raise ConfigError("a curve needs labels to score by")
    num_layers = whole.checkpoint.config.num_layers
    ways: list[tuple[Way, int]] = [("all", num_layers)]
    ways += [("patience", value) for value in range(1, num_layers - 1)]
    if not is_export(whole.checkpoint.path):  # which has the layers it has
        ways += [("depth", value) for value in range(1, num_layers)]
    points = []
    for way, value in ways:
        points.append(_measure(load, way, value, dataset, examples))
        say(points[-1])
    return points


def _measure(
    load: Callable[[int, int], Predictor], way: Way, value: int, dataset: Dataset, examples: Sequence[Any]
) -> CurvePoint:
    predictor = load(value if way == "patience" else 0, value if way == "depth" else 0)
    layers: list[int] = []
    if way == "patience":
        counting = _Counting(predictor.engine, layers)
        predictor = Predictor(predictor.checkpoint, predictor.runtime, counting, predictor.tokenizer)
    evaluate(predictor, dataset, examples[:8])  # opens sessions
    layers.clear()
    started_at = time.perf_counter()
    facts, _ = evaluate(predictor, dataset, examples)
    seconds = time.perf_counter() - started_at
    mean_layers = float(np.mean(layers)) if layers else float(value)
    return CurvePoint(way, value, facts["scores"][dataset.task.metric], mean_layers, seconds)
