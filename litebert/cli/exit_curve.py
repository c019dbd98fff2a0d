"""`litebert evaluate --exit-curve`: accuracy and time of early exit, as a table and a plot."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from litebert.inference.task_request import TaskRequest

if TYPE_CHECKING:
    from litebert.inference.exit_curve import CurvePoint


def draw_exit_curve(request: TaskRequest) -> None:
    """Measure every patience and every depth; print the points, and plot them to `out`."""
    from litebert.inference.exit_curve import draw_curve
    from litebert.plots.exit_chart import check_drawing, plot_exit_curve

    if request.out:
        check_drawing()  # fail before minutes of measuring
    predictor = request.load()
    dataset, chosen = request.read(predictor)
    engine, metric = predictor.engine.name, dataset.task.metric
    if not request.as_json:
        print(f"{chosen.split}, {len(chosen.examples):,} examples of {request.data}, {engine}")
        print(f"{'':>12} {metric.replace('_', ' '):>10} {'layers':>7} {'seconds':>8}")
    points = draw_curve(
        # use one engine for all points, without choosing it again
        lambda patience, layers: request.load(engine=engine, patience=patience, layers=layers),
        dataset,
        chosen.examples,
        (lambda _: None) if request.as_json else _print_point,
    )
    if request.as_json:
        print(json.dumps([asdict(point) for point in points], indent=2))
    if request.out:
        plot_exit_curve(points, request.out, metric=metric, title=f"{Path(request.checkpoint).name}: early exit")
        print(f"plot: {request.out}", file=sys.stderr if request.as_json else sys.stdout)


def _print_point(point: "CurvePoint") -> None:
    way = "all layers" if point.way == "all" else f"{point.way} {point.value}"
    print(f"{way:>12} {100 * point.score:10.2f} {point.mean_layers:7.2f} {point.seconds:8.2f}", flush=True)
