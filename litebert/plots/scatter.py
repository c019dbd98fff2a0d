"""Scatter plot of predicted against true numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path


def plot_numbers(pairs: Sequence[tuple[float, float]], path: Path, *, title: str) -> None:
    """Write a PNG with a point per (true, predicted) pair, and the identity line."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("missing-package", "plotting needs matplotlib: pip install 'litebert[plots]'") from error
    right, answered = np.array(pairs, dtype=np.float64).T
    figure = Figure(figsize=(5, 5), layout="constrained")
    panel = figure.add_subplot()
    panel.scatter(right, answered, s=12, alpha=0.4, linewidths=0)
    limits = [min(right.min(), answered.min()), max(right.max(), answered.max())]
    panel.plot(limits, limits, color="gray", linewidth=1, linestyle="--")
    panel.set_xlabel("true")
    panel.set_ylabel("predicted")
    panel.set_title(title)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
