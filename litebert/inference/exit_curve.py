"""The trade-off of early exit: score, layers and seconds at every patience, and at every depth."""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from litebert.core.errors import ConfigError
from litebert.core.progress import ProgressBar
from litebert.inference.evaluation import evaluate
from litebert.inference.export_folder import is_export
from litebert.inference.task_request import TaskRequest

Way = Literal["patience", "depth", "all"]


@dataclass(frozen=True)
class CurvePoint:
    """The score and cost of one patience or depth."""

    way: Way
    value: int  # the patience, or the number of layers
    score: float
    mean_layers: float
    seconds: float  # for all examples


@dataclass(frozen=True)
class ExitCurve:
    """The points of a model on some examples: all layers, every patience and, for checkpoints, every depth."""

    split: str
    num_examples: int
    engine: str
    metric: str
    points: tuple[CurvePoint, ...]


def measure_exit_curve(request: TaskRequest) -> ExitCurve:
    """Score and time a model at every patience and every depth, with one engine for all of them."""
    whole = request.load()
    dataset, chosen = request.read(whole)
    whole.check_exits()
    if any(example.label is None for example in chosen.examples):
        raise ConfigError("no-labels", "the exit curve needs labelled examples", option="data")
    num_layers, engine = whole.checkpoint.config.num_layers, whole.engine.name
    ways: list[tuple[Way, int]] = [("all", num_layers)]
    ways += [("patience", value) for value in range(1, num_layers - 1)]
    if not is_export(whole.checkpoint.path):  # the graph of an export cannot be truncated
        ways += [("depth", value) for value in range(1, num_layers)]
    points = []
    with ProgressBar("measuring", total=len(ways), unit="points", scale=1) as progress:
        for way, value in ways:
            chosen_way = {"patience": value if way == "patience" else 0, "layers": value if way == "depth" else 0}
            predictor = request.load(engine=engine, **chosen_way)
            layers: list[int] = []
            predictor.report_layers = layers.extend
            evaluate(predictor, dataset, chosen.examples[:8])  # opens sessions
            layers.clear()
            started_at = time.perf_counter()
            facts, _ = evaluate(predictor, dataset, chosen.examples)
            seconds = time.perf_counter() - started_at
            # an export reports its layers even if it computed all of them
            mean_layers = float(np.mean(layers)) if way == "patience" else float(value)
            points.append(CurvePoint(way, value, facts["scores"][dataset.task.metric], mean_layers, seconds))
            progress.move_to(len(points))
    return ExitCurve(chosen.split, len(chosen.examples), engine, dataset.task.metric, tuple(points))
