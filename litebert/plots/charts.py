"""Small inline SVG line charts that use the web page's width, font and colours, light or dark."""

import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Matplotlib writes colours as hex numbers. These are placeholders, replaced by the page's colours afterwards.
PAGE_COLORS = {"#010101": "currentColor", "#020202": "var(--grid)"}
INK, GRID = PAGE_COLORS
# Removed from the page: links to other sites, fixed sizes, fonts, and ids that repeat between charts
_UNWANTED = (
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r"<style.*?</style>", re.DOTALL),
    re.compile(r' xmlns(?::\w+)?="[^"]*"'),
    re.compile(r'(?<=<svg)[^>]*?(?= viewBox)|(?<=\") version="1.1"'),
    re.compile(r"font-family: [^;]*; "),
    re.compile(r' id="[a-zA-Z0-9.]+_\d+"'),
)
_WIDTH, _HEIGHT = 3.8, 2.7  # inches; only their ratio and the relative font size matter


@dataclass(frozen=True)
class Line:
    """One line of a chart. `color` is the name of a colour variable of the page, such as "trained"."""

    label: str
    x: Sequence[float] | NDArray[np.float64]
    y: Sequence[float] | NDArray[np.float64]
    color: str
    is_dashed: bool = False
    has_points: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart: its lines, the names of its axes, and a level to compare with."""

    title: str
    lines: Sequence[Line]
    x_label: str = "step"
    is_share: bool = False  # y is a share, written in percent
    level: float | None = None  # a thin horizontal line, such as a baseline
    level_label: str = ""
    mark_x: float | None = None  # a thin vertical line
    has_whole_x: bool = False  # ticks at integers only


def draw_chart(chart: Chart) -> str:
    """The chart as an <svg> element."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("missing-package", "plotting needs matplotlib: pip install 'litebert[plots]'") from error
    with matplotlib.rc_context(svg_settings(chart.title)):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        colors = _draw(figure.add_subplot(), chart)
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return fit_into_page(target.getvalue(), chart.title, colors)


def svg_settings(title: str) -> dict[Any, Any]:
    """Text stays text (selectable, in the page's font), and ids depend on nothing but the title."""
    return {"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 10}


def _draw(panel: "Axes", chart: Chart) -> dict[str, str]:
    colors = {f"#0303{number:02x}": f"var(--{line.color})" for number, line in enumerate(chart.lines)}
    for color, line in zip(colors, chart.lines, strict=True):
        panel.plot(
            line.x,
            line.y,
            color=color,
            linestyle="--" if line.is_dashed else "-",
            marker="o" if line.has_points or len(line.y) < 3 else None,
            markersize=4,
            linewidth=2,
            label=line.label,
        )
    if chart.level is not None:
        panel.axhline(chart.level, color=INK, linewidth=1, linestyle=":", label=chart.level_label)
    if chart.mark_x is not None:
        panel.axvline(chart.mark_x, color=INK, linewidth=1, linestyle=":")
    _style(panel, chart)
    return colors


def _style(panel: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    panel.set_xlabel(chart.x_label, color=INK)
    panel.tick_params(colors=INK, length=0)
    panel.grid(color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[:].set_visible(False)
    panel.legend(frameon=False, labelcolor=INK, fontsize=9)
    if chart.is_share:
        panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if chart.has_whole_x:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))


def fit_into_page(svg: str, title: str, colors: dict[str, str]) -> str:
    """An <svg> element without unwanted attributes; `colors` replace the placeholder colours."""
    svg = svg[svg.index("<svg") :]
    for unwanted in _UNWANTED:
        svg = unwanted.sub("", svg)
    svg = svg.replace("xlink:href", "href").replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)
    for number, color in {**PAGE_COLORS, **colors}.items():
        svg = svg.replace(number, color)
    return svg
