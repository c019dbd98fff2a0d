"""Plot of accuracy against computed layers, for early exit and for truncation."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path
from litebert.inference.exit_curve import CurvePoint

_STYLES = {"patience": ("#0b6e99", "o", "early exit, by patience"), "depth": ("#b5651d", "s", "only the first layers")}


def check_drawing() -> None:
    """Raise if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ConfigError("missing-package", "plotting needs matplotlib: pip install 'litebert[plots]'")


def plot_exit_curve(points: Sequence[CurvePoint], path: Path, *, metric: str, title: str) -> None:
    """Write a PNG."""
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    panel = figure.add_subplot()
    whole = next(point for point in points if point.way == "all")
    panel.axhline(100 * whole.score, color="#888888", linewidth=1, linestyle="--")
    panel.plot([whole.mean_layers], [100 * whole.score], "D", color="#444444", label="all layers")
    for way, (color, marker, label) in _STYLES.items():
        chosen = sorted((p for p in points if p.way == way), key=lambda point: point.mean_layers)
        if not chosen:
            continue
        x, y = [point.mean_layers for point in chosen], [100 * point.score for point in chosen]
        panel.plot(x, y, marker=marker, color=color, label=label, linewidth=1.5, markersize=4)
        if way == "patience":
            for point in chosen:
                place = (point.mean_layers, 100 * point.score)
                panel.annotate(str(point.value), place, (0, 6), textcoords="offset points", fontsize=7, ha="center")
    panel.set_xlabel("mean number of layers per text")
    panel.set_ylabel(f"{metric.replace('_', ' ')}, points")
    panel.set_title(title)
    panel.grid(alpha=0.3)
    panel.legend()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
