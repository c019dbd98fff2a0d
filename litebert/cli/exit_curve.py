"""`litebert evaluate --exit-curve`: accuracy and time of early exit, as a table and a plot."""

import sys
from dataclasses import asdict
from pathlib import Path

from litebert.cli.printing import print_json
from litebert.inference.task_request import TaskRequest


def show_exit_curve(request: TaskRequest, out: Path | None, *, as_json: bool) -> None:
    """Measure every patience and every depth; print the points, and plot them to `out`."""
    from litebert.inference.exit_curve import measure_exit_curve
    from litebert.plots.exit_chart import check_drawing, plot_exit_curve

    if out:
        check_drawing()  # fail before minutes of measuring
    curve = measure_exit_curve(request)
    if as_json:
        print_json([asdict(point) for point in curve.points])
    else:
        print(f"{curve.split}, {curve.num_examples:,} examples of {request.data}, {curve.engine}")
        print(f"{'':>12} {curve.metric.replace('_', ' '):>10} {'layers':>7} {'seconds':>8}")
        for point in curve.points:
            way = "all layers" if point.way == "all" else f"{point.way} {point.value}"
            print(f"{way:>12} {100 * point.score:10.2f} {point.mean_layers:7.2f} {point.seconds:8.2f}")
    if out:
        plot_exit_curve(curve.points, out, metric=curve.metric, title=f"{Path(request.checkpoint).name}: early exit")
        print(f"plot: {out}", file=sys.stderr if as_json else sys.stdout)
