"""`litebert evaluate --exit-curve`: what is lost and won by answering early, as a table and a picture."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebert.infer.exit_curve import CurvePoint


def draw_exit_curve(
    checkpoint: Path,
    task: str,
    data: Path,
    split: str,
    columns: dict[str, Any],
    computing: dict[str, Any],
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure every patience and every depth; print the points, and draw them into `out`."""
    from litebert.infer.evaluation import choose_examples, read_for
    from litebert.infer.exit_curve import draw_curve
    from litebert.infer.predictor import load
    from litebert.study.exit_chart import plot_exit_curve
    from litebert.tasks.reading import ReadOptions

    predictor = load(checkpoint, **computing)
    dataset = read_for(predictor, task, data, ReadOptions(**columns))
    examples = choose_examples(dataset, split, data)
    # the fastest engine is the fastest for all points: no need to measure that again
    chosen = computing | {"engine": predictor.engine.name}
    metric = dataset.task.metric
    if not as_json:
        print(f"{len(examples):,} examples of {data}, {predictor.engine.name}")
        print(f"{'':>12} {metric.replace('_', ' '):>10} {'layers':>7} {'seconds':>8}")
    points = draw_curve(
        lambda patience, layers: load(checkpoint, **chosen, patience=patience, layers=layers),
        dataset,
        examples,
        (lambda _: None) if as_json else _print_point,
    )
    if as_json:
        print(json.dumps([asdict(point) for point in points], indent=2))
    if out:
        plot_exit_curve(points, out, metric=metric, title=f"{checkpoint.name}: answering early")
        print(f"drawn: {out}")


def _print_point(point: "CurvePoint") -> None:
    way = "all layers" if point.way == "all" else f"{point.way} {point.value}"
    print(f"{way:>12} {100 * point.score:10.2f} {point.mean_layers:7.2f} {point.seconds:8.2f}", flush=True)
