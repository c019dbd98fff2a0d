"""The data of the panels in a study's figures; `figures` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from litebert.study.metrics import MATRICES, SERIES, describe
from litebert.study.results import Cell, Results
from litebert.study.spec import FigureSpec

_APART = 10.0  # ratio from which values do not fit on one axis


@dataclass(frozen=True)
class Dot:
    """An arm in a panel of dots."""

    label: str
    seeds: tuple[float, ...]  # empty: only the paper has it
    mean: float | None
    half: float | None  # of a 95 % interval; None: not known
    paper: float | None


@dataclass(frozen=True)
class DotPanel:
    """A metric of all arms: our values with spread, compared with the paper's."""

    title: str
    dots: Sequence[Dot]
    level: float | None = None  # the baseline
    chance: float | None = None
    is_difference: bool = False

    @property
    def num_marks(self) -> int:
        """The number of entries in the legend."""
        has_paper = any(dot.paper is not None for dot in self.dots)
        return 1 + has_paper + (self.level is not None) + (self.chance is not None)


@dataclass(frozen=True)
class Line:
    """A line of a panel, with its range over the seeds."""

    label: str
    color: int  # arms keep their colour from panel to panel
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class LinePanel:
    """Curves over an axis; those of the paper are dashed."""

    title: str
    x_label: str
    lines: Sequence[Line]
    is_paper: bool = False
    is_difference: bool = False


@dataclass(frozen=True)
class MatrixPanel:
    """A value per pair of layers of one arm."""

    title: str
    values: Sequence[Sequence[float]]


Panel = DotPanel | LinePanel | MatrixPanel


def list_panels(figure: FigureSpec, results: Results) -> list[Panel]:
    """The panels of a figure that have numbers to show."""
    if figure.kind in ("values", "differences"):
        dots = [_dot_panel(name, results, is_difference=figure.kind == "differences") for name in figure.of]
        return [panel for panel in dots if panel]
    if figure.kind == "series":
        lines = [_line_panel(name, results, is_paper=is_paper) for name in figure.of for is_paper in (False, True)]
        return [panel for panel in lines if panel.lines]
    if figure.kind == "series-differences":
        gaps = [_gap_panel(name, results) for name in figure.of]
        return [panel for panel in gaps if panel.lines]
    return [panel for name in figure.of for panel in _matrix_panels(name, results)]


def _dot_panel(metric: str, results: Results, *, is_difference: bool) -> DotPanel | None:
    base = results.cell(results.study.reference, metric)
    if not any(results.cell(arm, metric) for arm in results.arms) or (is_difference and base is None):
        return None
    dots = []
    for arm in results.arms:
        cell, paper = results.cell(arm, metric), results.published(arm, metric)
        mean, seeds, half = cell.mean if cell else None, cell.values if cell else (), results.half_width(metric, arm)
        if is_difference:
            assert base is not None
            paper, mean = results.published_difference(arm, metric), results.difference(arm, metric)
            seeds = _differences(cell, base) if cell else ()
            is_reference = arm == results.study.reference
            half = None if is_reference else results.half_width_between(metric, arm, results.study.reference)
        if cell is not None or paper is not None:
            dots.append(Dot(results.title(arm), seeds, mean, half, paper))
    known = describe(metric)
    if is_difference:
        points = "points" if known.unit == "%" else known.unit
        of_reference = f"against “{results.title(results.study.reference)}”"
        return DotPanel(f"{known.title}: {f'{points} ' if points else ''}{of_reference}", dots, is_difference=True)
    if known.is_exact and _is_of_another_order(dots):
        dots = [replace(dot, paper=None) for dot in dots if dot.mean is not None]
    return DotPanel(known.label, dots, results.level(metric), known.chance)


def _is_of_another_order(dots: Sequence[Dot]) -> bool:
    """Whether the paper's values are so much larger that ours would be drawn as a single point."""
    ours = max(dot.mean for dot in dots if dot.mean is not None)
    return ours * _APART < max((dot.paper for dot in dots if dot.paper is not None), default=0.0)


def _differences(cell: Cell, base: Cell) -> tuple[float, ...]:
    """Differences per seed, like their interval; if the reference lacks a seed, from its mean."""
    by_seed = dict(zip(base.seeds, base.values, strict=True))
    return tuple(value - by_seed.get(seed, base.mean) for seed, value in zip(cell.seeds, cell.values, strict=True))


def _line_panel(name: str, results: Results, *, is_paper: bool) -> LinePanel:
    x_label, title = SERIES[name]
    lines = []
    for color, arm in enumerate(results.study.arms):
        published = results.study.arms[arm].series.get(name)
        if is_paper and published:
            lines.append(Line(results.study.arms[arm].title, color, published.x, published.y))
        curve = None if is_paper else results.curve(arm, name)
        if curve:
            lines.append(Line(results.title(arm), color, curve.x, curve.mean, curve.low, curve.high))
    whose = f"{results.study.source}" if is_paper else "ours"
    return LinePanel(f"{title} ({whose})", x_label, lines, is_paper)


def _gap_panel(name: str, results: Results) -> LinePanel:
    """The differences of our arms' curves from the reference's, if the curves are too close to distinguish."""
    x_label, title = SERIES[name]
    reference = results.study.reference
    lines = []
    for color, arm in enumerate(results.study.arms):
        curve = None if arm == reference else results.curve_difference(arm, name)
        if curve:
            lines.append(Line(results.title(arm), color, curve.x, curve.mean, curve.low, curve.high))
    return LinePanel(f"{title}: against “{results.title(reference)}”", x_label, lines, is_difference=True)


def _matrix_panels(name: str, results: Results) -> list[MatrixPanel]:
    panels = []
    for arm in results.arms:
        matrix = results.matrix(arm, name)
        if matrix:
            panels.append(MatrixPanel(f"{MATRICES[name]}: {results.title(arm)}", matrix))
    return panels
