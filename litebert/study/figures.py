"""Draws panels as SVG in the colours of a web page, light or dark, or as PNG for documents.

Our results are filled and solid, the paper's hollow and dashed. The palette is Okabe and Ito's, which is safe for
colour-blind readers; no meaning is conveyed by colour alone.
"""

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path
from litebert.plots.charts import GRID, INK, fit_into_page, svg_settings
from litebert.plots.curves import COLORS
from litebert.study.claims import Verdict
from litebert.study.panels import DotPanel, LinePanel, MatrixPanel, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 4.4  # inches of one panel
_LINE_HEIGHT = 3.0
_SIDE = 0.1  # inches of margin, because the page's font may be wider than matplotlib's
_ROW_HEIGHT, _AROUND_ROWS = 0.34, 1.25
_MATRIX_HEIGHT = 3.4
_MAX_NUMBERS = 8  # a matrix of at most this many layers shows its numbers
_MAX_LABEL = 34
_TITLE_WIDTH, _TICK_WIDTH = 46, 20  # characters
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # distinguish curves in addition to colours
_MAX_MARKERS = 12
_LINE_COLUMNS, _DOT_COLUMNS = 2, 3  # of the legend
_LEGEND_ROW, _AROUND_LEGEND = 13, 7  # points (1/72 inch)
_MAX_MARGIN = 5  # half widths
_UNSURE = (COLORS[4], "o")
_OUTCOME_STYLES: dict[str, tuple[str, str]] = {
    "agrees": (COLORS[2], "^"),
    "disagrees": (COLORS[1], "v"),
    "leans": _UNSURE,
    "opposes": _UNSURE,
}


@dataclass(frozen=True)
class Palette:
    """The colours of a figure."""

    ink: str
    grid: str
    ours: str
    lines: tuple[str, ...]


# Placeholders to be replaced by the page's colours
_PAGE_LINES = {f"#0303{number:02x}": f"var(--line-{number})" for number in range(len(COLORS))}
PAGE = Palette(INK, GRID, next(iter(_PAGE_LINES)), tuple(_PAGE_LINES))
PAPER = Palette("#333333", "#dddddd", COLORS[0], COLORS)


def draw_svg(panel: Panel) -> str:
    """A panel as an <svg> element with the page's colours."""
    matplotlib = _load_matplotlib()
    with matplotlib.rc_context(svg_settings(panel.title)):
        figure = _new_figure(_WIDTH, _height(panel))
        _draw(figure.add_subplot(), panel, PAGE)
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return fit_into_page(target.getvalue(), panel.title, _PAGE_LINES)


def write_png(panels: Sequence[Panel], path: Path) -> None:
    """Write panels in two columns as one picture on white."""
    write_figure(draw_picture(panels), path)


def write_figure(figure: "Figure", path: Path) -> None:
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=140, facecolor="white")


def draw_picture(panels: Sequence[Panel]) -> "Figure":
    """Draw panels in two columns, each below its title, with the legend in between."""
    _load_matplotlib()
    columns = min(2, len(panels))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(map(_height, row)) + 0.5 for row in rows]
    figure = _new_figure(_WIDTH * columns * 1.15, sum(heights))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=heights)
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(grid[number // columns, number % columns])
        _draw(axes, panel, PAPER)
        above = _AROUND_LEGEND + _LEGEND_ROW * _count_legend_rows(panel)
        axes.set_title(
            textwrap.fill(_keep_equations(panel.title), _TITLE_WIDTH), fontsize=10, color=PAPER.ink, pad=above
        )
    return figure


def draw_verdicts(studies: Sequence[tuple[str, Sequence[Verdict]]]) -> "Figure":
    """Draw every measured claim of some studies: how far it holds, in half widths of its 95 % interval.

    Between -1 and 1 a claim is inconclusive. Margins beyond the axis, and those of exact metrics, are drawn at its end.
    """
    _load_matplotlib()
    rows: list[tuple[str, Verdict | None]] = []
    for source, verdicts in studies:
        measured = [verdict for verdict in verdicts if verdict.margin is not None]
        rows += [(source, None), *((verdict.claim.text, verdict) for verdict in measured)] if measured else []
    figure = _new_figure(9.6, 0.24 * len(rows) + 1.1)
    axes = figure.add_subplot()
    axes.axvspan(-1, 1, color=PAPER.grid, linewidth=0)
    axes.axvline(0, color=PAPER.ink, linewidth=1)
    for number, (_, verdict) in enumerate(rows):
        if verdict is not None and verdict.margin is not None:
            color, marker = _OUTCOME_STYLES[verdict.outcome]
            margin = max(-_MAX_MARGIN, min(_MAX_MARGIN, verdict.margin))
            axes.plot([0, margin], [number, number], color=color, linewidth=1.2, alpha=0.5)
            axes.plot(margin, number, marker=marker, color=color, markersize=7, markerfacecolor=_fill(marker, color))
    labels = axes.set_yticks(
        range(len(rows)), [_keep_equations(textwrap.shorten(text, 84, placeholder=" …")) for text, _ in rows]
    )
    for tick, (_, verdict) in zip(labels, rows, strict=True):
        tick.label1.set_fontweight("normal" if verdict else "bold")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-_MAX_MARGIN - 0.4, _MAX_MARGIN + 0.4)
    axes.set_xticks(range(-_MAX_MARGIN, _MAX_MARGIN + 1))
    axes.set_xlabel("← against   half widths of the 95 % interval   for →", fontsize=9)
    axes.tick_params(colors=PAPER.ink, length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    for words, outcome in (("agrees", "agrees"), ("inconclusive", "leans"), ("disagrees", "disagrees")):
        color, marker = _OUTCOME_STYLES[outcome]
        style: dict[str, Any] = {"marker": marker, "color": color, "markerfacecolor": _fill(marker, color)}
        axes.plot([], [], linestyle="", label=words, **style)
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    axes.legend(frameon=False, labelcolor=PAPER.ink, fontsize=9, **place)
    return figure


def _fill(marker: str, color: str) -> str:
    """Circles, which are inconclusive, are hollow."""
    return "white" if marker == "o" else color


def _load_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ConfigError("missing-package", "drawing needs matplotlib: pip install 'litebert[plots]'") from error
    return matplotlib


def _new_figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=_SIDE))


def _height(panel: Panel) -> float:
    if isinstance(panel, DotPanel):
        return _AROUND_ROWS + _ROW_HEIGHT * len(panel.dots) + _LEGEND_ROW / 72 * (_count_legend_rows(panel) - 1)
    if isinstance(panel, LinePanel):
        return _LINE_HEIGHT + _LEGEND_ROW / 72 * (_count_legend_rows(panel) - 1)
    return _MATRIX_HEIGHT


def _count_legend_rows(panel: Panel) -> int:
    if isinstance(panel, LinePanel):
        return math.ceil(len(panel.lines) / _LINE_COLUMNS)
    return math.ceil(panel.num_marks / _DOT_COLUMNS) if isinstance(panel, DotPanel) else 0


def _draw(axes: "Axes", panel: Panel, palette: Palette) -> None:
    if isinstance(panel, MatrixPanel):
        _draw_matrix(axes, panel, palette)
        return
    if isinstance(panel, DotPanel):
        _draw_dots(axes, panel, palette)
    else:
        _draw_lines(axes, panel, palette)
    axes.tick_params(colors=palette.ink, length=0, labelsize=9)
    axes.grid(color=palette.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _draw_dots(axes: "Axes", panel: DotPanel, palette: Palette) -> None:
    places = range(len(panel.dots))
    paper = [(dot.paper, place) for place, dot in zip(places, panel.dots, strict=True) if dot.paper is not None]
    if paper:
        values, rows = zip(*paper, strict=True)
        style: dict[str, Any] = {
            "color": palette.ink,
            "linestyle": "--",
            "linewidth": 1,
            "marker": "D",
            "markersize": 6,
        }
        axes.plot(values, rows, markerfacecolor="none", label="the paper", zorder=2, **style)
    for place, dot in zip(places, panel.dots, strict=True):
        if dot.half is not None and dot.mean is not None:
            bar: dict[str, Any] = {"color": palette.ours, "linewidth": 2, "alpha": 0.45, "solid_capstyle": "butt"}
            axes.plot([dot.mean - dot.half, dot.mean + dot.half], [place, place], zorder=3, **bar)
        if len(dot.seeds) > 1:
            axes.plot(dot.seeds, [place] * len(dot.seeds), "|", color=palette.ours, markersize=9, zorder=4)
    measured = [(dot.mean, place) for place, dot in zip(places, panel.dots, strict=True) if dot.mean is not None]
    means, rows = zip(*measured, strict=True)
    axes.plot(means, rows, "o", color=palette.ours, markersize=7, label="ours, seeds |, 95 % —", zorder=5)
    if panel.level is not None:
        axes.axvline(panel.level, color=palette.ink, linewidth=1, linestyle=":", label="baseline", zorder=1)
    if panel.chance is not None:
        axes.axvline(panel.chance, color=palette.ink, linewidth=1, label="chance", zorder=1)
    if panel.is_difference:
        axes.axvline(0, color=palette.ink, linewidth=1, zorder=1)
    axes.set_yticks(places, [_in_two_lines(dot.label) for dot in panel.dots])
    axes.set_ylim(len(panel.dots) - 0.5, -0.5)
    axes.margins(x=0.08)
    _legend_above(axes, palette, num_columns=_DOT_COLUMNS)


def _draw_lines(axes: "Axes", panel: LinePanel, palette: Palette) -> None:
    from matplotlib.ticker import MaxNLocator

    for line in panel.lines:
        color = palette.lines[line.color % len(palette.lines)]
        axes.plot(
            line.x,
            line.y,
            color=color,
            linestyle="--" if panel.is_paper else "-",
            linewidth=1.8,
            marker=_MARKERS[line.color % len(_MARKERS)],
            markevery=max(1, len(line.x) // _MAX_MARKERS),
            markersize=4.5,
            markerfacecolor="none" if panel.is_paper else color,
            label=_short(line.label),
        )
        if line.low and line.low != line.high:
            axes.fill_between(line.x, line.low, line.high, color=color, alpha=0.18, linewidth=0)
    if panel.is_difference:
        axes.axhline(0, color=palette.ink, linewidth=1, zorder=1)
    axes.set_xlabel(panel.x_label, color=palette.ink, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.ticklabel_format(axis="y", style="plain", useOffset=False)
    if panel.x_label == "layer":
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_ylim(bottom=0)
    _legend_above(axes, palette, num_columns=_LINE_COLUMNS)


def _legend_above(axes: "Axes", palette: Palette, *, num_columns: int) -> None:
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": num_columns}
    axes.legend(frameon=False, labelcolor=palette.ink, fontsize=8, handlelength=1.6, columnspacing=1.0, **place)


def _draw_matrix(axes: "Axes", panel: MatrixPanel, palette: Palette) -> None:
    size = len(panel.values)
    axes.imshow(panel.values, cmap="cividis", vmin=min(0.0, *(min(row) for row in panel.values)), vmax=1)
    numbers = [str(number) for number in range(1, size + 1)]
    axes.set_xticks(range(size), numbers)
    axes.set_yticks(range(size), numbers)
    axes.tick_params(colors=palette.ink, length=0, labelsize=9)
    axes.set_xlabel("layer", color=palette.ink, fontsize=9)
    axes.set_ylabel("layer", color=palette.ink, fontsize=9)
    axes.spines[:].set_visible(False)
    if size > _MAX_NUMBERS:
        return
    for row, values in enumerate(panel.values):
        for column, value in enumerate(values):
            color = "black" if value > 0.6 else "white"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=7)


def _short(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"


def _in_two_lines(label: str) -> str:
    return "\n".join(textwrap.wrap(_keep_equations(label), _TICK_WIDTH, max_lines=2, placeholder=" …"))


def _keep_equations(label: str) -> str:
    """The text without possible line breaks inside "E = H"."""
    return label.replace(" = ", "\u00a0=\u00a0")
