"""Confusion matrix plot."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_LABELS = 60  # with more, those with the most errors are shown: a larger picture needs gigabytes
_MAX_NUMBERS = 20  # with more labels, cells do not show their counts
_MAX_NAME = 24
_NUMBERED = "Labels are numbered in the order of report.json."
# Matplotlib's own font lacks Chinese, Japanese and Korean; most systems have one of these.
_WIDE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans GB", "Heiti TC", "Arial Unicode MS"),
    *("Microsoft YaHei", "SimHei", "SimSun", "Malgun Gothic"),
)


def plot_confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], path: Path, *, title: str) -> None:
    """Write a PNG: one row per true label, shaded by the share predicted as each label.

    Of many labels it shows those with the most errors.
    """
    figure = draw_confusion(counts, labels, title=title)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


def draw_confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], *, title: str) -> "Figure":
    """The figure. Labels that no installed font can render are numbered."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("missing-package", "plotting needs matplotlib: pip install 'litebert[plots]'") from error
    matrix = np.asarray(counts)
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    shown = _choose_labels(matrix)
    if len(shown) < len(labels):
        title = f"{title}: the {len(shown)} of {len(labels)} labels with the most errors"
    matrix, shares, labels = matrix[np.ix_(shown, shown)], shares[np.ix_(shown, shown)], [labels[n] for n in shown]
    size = 2.5 + 0.45 * len(labels)
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    panel = figure.add_subplot()
    panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    fonts = list_fonts()
    can_write = can_be_written(labels, fonts)
    names = [_shorten(label) if can_write else str(n + 1) for n, label in zip(shown, labels, strict=True)]
    panel.set_xticks(range(len(labels)), names, rotation=45, ha="right", rotation_mode="anchor", family=fonts)
    panel.set_yticks(range(len(labels)), names, family=fonts)
    panel.set_xlabel("predicted" if can_write else f"predicted\n{_NUMBERED}")
    panel.set_ylabel("true")
    if can_be_written([title], fonts):
        panel.set_title(title, family=fonts)
    if len(labels) <= _MAX_NUMBERS:
        for row, column in np.ndindex(*matrix.shape):
            color = "white" if shares[row, column] > 0.5 else "black"
            panel.text(column, row, f"{matrix[row, column]:,}", ha="center", va="center", color=color)
    return figure


def _choose_labels(matrix: NDArray[np.int64]) -> list[int]:
    """The indices of the labels to show, in their order."""
    num_errors = matrix.sum(0) + matrix.sum(1) - 2 * np.diag(matrix)
    return sorted(np.argsort(-num_errors, kind="stable")[:_MAX_LABELS].tolist())


def list_fonts() -> list[str]:
    """The default font and installed CJK fonts; each character is taken from the first font that has it."""
    from matplotlib.font_manager import FontProperties, fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [FontProperties().get_name(), *(name for name in _WIDE_FONTS if name in installed)]


def can_be_written(texts: Iterable[str], fonts: Sequence[str]) -> bool:
    """Whether every character is in one of the fonts; line breaks are ignored."""
    from matplotlib.font_manager import findfont, get_font

    letters = {ord(letter) for text in texts for letter in _shorten(text)} - {ord("\n")}
    return not letters.difference(*(get_font(findfont(name)).get_charmap() for name in fonts))


def _shorten(label: str) -> str:
    return label if len(label) <= _MAX_NAME else f"{label[: _MAX_NAME - 1]}…"
