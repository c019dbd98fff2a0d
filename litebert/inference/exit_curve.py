"""The trade-off of early exit: score, layers and seconds at every patience, and at every depth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from litebert.core.errors import ConfigError
from litebert.inference.evaluation import evaluate
from litebert.inference.export_folder import is_export
from litebert.inference.predictor import Predictor
from litebert.tasks.finetuning import Dataset

Way = Literal["patience", "depth", "all"]


@dataclass(frozen=True)
class CurvePoint:
    """The score and cost of one patience or depth."""

    way: Way
    value: int  # the patience, or the number of layers
    score: float
    mean_layers: float
    seconds: float  # for all examples


def draw_curve(
    load: Callable[[int, int], Predictor],
    dataset: Dataset,
    examples: Sequence[Any],
    say: Callable[[CurvePoint], None] = lambda _: None,
) -> list[CurvePoint]:
    """Points for all layers, for every patience and, for checkpoints, for every depth.

    `load` takes (patience, layers).
    """
    whole = load(0, 0)
    whole.check_exits()
    if any(example.label is None for example in examples):
        raise ConfigError("no-labels", "the exit curve needs labelled examples", option="data")
    num_layers = whole.checkpoint.config.num_layers
    ways: list[tuple[Way, int]] = [("all", num_layers)]
    ways += [("patience", value) for value in range(1, num_layers - 1)]
    if not is_export(whole.checkpoint.path):  # the graph of an export cannot be truncated
        ways += [("depth", value) for value in range(1, num_layers)]
    points = []
    for way, value in ways:
        predictor = load(value if way == "patience" else 0, value if way == "depth" else 0)
        layers: list[int] = []
        predictor.report_layers = layers.extend
        evaluate(predictor, dataset, examples[:8])  # opens sessions
        layers.clear()
        started_at = time.perf_counter()
        facts, _ = evaluate(predictor, dataset, examples)
        seconds = time.perf_counter() - started_at
        # an export reports its layers even if it computed all of them
        mean_layers = float(np.mean(layers)) if way == "patience" else float(value)
        points.append(CurvePoint(way, value, facts["scores"][dataset.task.metric], mean_layers, seconds))
        say(points[-1])
    return points
