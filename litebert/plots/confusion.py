"""A picture of which labels are taken for which."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path

_MAX_NUMBERS = 20  # labels up to which each field shows its count
_MAX_NAME = 24


def plot_confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], path: Path, *, title: str) -> None:
    """Write a PNG: a row for each true label, shaded by the share of it that was taken for each label."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("drawing needs matplotlib: pip install 'litebert[plots]'") from error
    matrix = np.asarray(counts)
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    size = 2.5 + 0.45 * len(labels)
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    panel = figure.add_subplot()
    panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [label if len(label) <= _MAX_NAME else f"{label[: _MAX_NAME - 1]}…" for label in labels]
    panel.set_xticks(range(len(labels)), names, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(labels)), names)
    panel.set_xlabel("answered")
    panel.set_ylabel("right")
    panel.set_title(title)
    if len(labels) <= _MAX_NUMBERS:
        for row, column in np.ndindex(*matrix.shape):
            color = "white" if shares[row, column] > 0.5 else "black"
            panel.text(column, row, f"{matrix[row, column]:,}", ha="center", va="center", color=color)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
