"""Figures: nothing in them covers anything else, and marks say what bars say."""

import pytest
from matplotlib.transforms import Bbox

from litebert.study.figures import draw_picture
from litebert.study.panels import Dot, DotPanel, Line, LinePanel, Panel, list_panels
from litebert.study.results import Results
from litebert.study.spec import FigureSpec, load_study
from tests.study.test_claims import make_results

LONG = "held-out masked words of a panel whose title is so long that it needs two lines (ours)"


def make_lines(number: int) -> LinePanel:
    lines = [Line(f"arm {color} of a study", color, [1, 2], [color, color + 1]) for color in range(number)]
    return LinePanel(LONG, "step", lines)


def make_dots(number: int, chance: float | None = None) -> DotPanel:
    dots = [Dot(f"arm {place}", (1.0, 2.0), 1.5, 1.0, 3.0) for place in range(number)]
    return DotPanel(LONG, dots, level=0.5, chance=chance)


@pytest.mark.parametrize("panel", [make_lines(2), make_lines(3), make_lines(8), make_dots(3), make_dots(3, chance=0.4)])
def test_a_legend_covers_neither_the_title_nor_the_panel(panel: Panel) -> None:
    figure = draw_picture([panel, panel])
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        entries = Bbox.union([text.get_window_extent() for text in legend.get_texts()])
        room = axes.title.get_window_extent().y0 - entries.y1
        assert 0 < room < 12 * figure.dpi / 72  # less than a line
        assert axes.get_window_extent().y1 < entries.y0


def test_sizes_of_another_order_do_not_stand_on_one_axis() -> None:
    figure = FigureSpec(kind="values", of=("parameters",))
    for size, papers in ((8.0, [10.0, 9.0]), (0.5, [None, None])):
        results = make_results({arm: [{"parameters": size}] for arm in "ab"})
        (panel,) = list_panels(figure, results)
        assert isinstance(panel, DotPanel)
        assert [dot.paper for dot in panel.dots] == papers


def test_no_line_is_broken_inside_an_equation() -> None:
    dots = [Dot("attention shared, E = H", (1.0, 2.0), 1.5, 1.0, 3.0)]
    (axes,) = draw_picture([DotPanel("Masked tokens: points against “not shared, E = H”", dots, level=0.5)]).axes
    for text in (axes.title.get_text(), axes.get_yticklabels()[0].get_text()):
        assert "\n" in text
        assert "E\u00a0=\u00a0H" in text


def test_long_names_of_arms_leave_room_for_title_and_legend() -> None:
    panel = DotPanel(LONG, [Dot("without a task, on as many pieces as all others", (1.0, 2.0), 1.5, 1.0, 3.0)], 0.5)
    figure = draw_picture([panel, panel])
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = [axes.title, *axes.get_legend().get_texts(), *axes.get_yticklabels()]  # type: ignore[union-attr]
        seen = Bbox.union([text.get_window_extent() for text in texts])
        assert figure.bbox.x0 <= seen.x0
        assert seen.x1 <= figure.bbox.x1
    left, right = (axes.get_window_extent() for axes in figure.axes)
    assert left.x1 < figure.axes[1].get_yticklabels()[0].get_window_extent().x0 < right.x0


def test_a_panel_keeps_its_height_whatever_stands_in_its_legend() -> None:
    heights = []
    for number in (2, 8):
        figure = draw_picture([make_lines(number)])
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_window_extent().height)
    assert heights[1] == pytest.approx(heights[0], rel=0.03)


def test_marks_of_differences_are_taken_seed_by_seed() -> None:
    """As the bar beside them is; of a seed that the reference lacks, from its mean."""
    seeds = {
        "a": [{"mlm": 30.0}, {"mlm": 34.0}],
        "b": [{"mlm": 31.0}, {"mlm": 35.5}, {"mlm": 40.0}],
    }
    (panel,) = list_panels(FigureSpec(kind="differences", of=("mlm",)), make_results(seeds))
    assert isinstance(panel, DotPanel)
    assert [dot.seeds for dot in panel.dots] == [(0.0, 0.0), (1.0, 1.5, 8.0)]
    (panel,) = list_panels(FigureSpec(kind="values", of=("mlm",)), make_results(seeds))
    assert isinstance(panel, DotPanel)
    assert [dot.seeds for dot in panel.dots] == [(30.0, 34.0), (31.0, 35.5, 40.0)]


def test_differences_of_curves_are_taken_seed_by_seed_where_both_have_been_measured() -> None:
    study = load_study("figure-2b")
    curves = {
        ("with", 1): {"x": [10, 20, 30], "y": [1.0, 2.0, 3.0]},
        ("with", 2): {"x": [10, 20, 30], "y": [5.0, 6.0, 7.0]},
        ("removed", 1): {"x": [10, 20, 25, 30], "y": [1.0, 2.5, 2.7, 4.0]},
        ("removed", 2): {"x": [10, 20, 25, 30], "y": [5.0, 6.0, 6.2, 7.5]},
        ("removed", 3): {"x": [10, 20, 25, 30], "y": [9.0, 9.0, 9.0, 9.0]},  # the reference has no such seed
    }
    reports = [
        {"arm": arm, "seed": seed, "series": {"mlm": series}, "values": {}} for (arm, seed), series in curves.items()
    ]
    results = Results(study, "laptop", tuple(reports))
    (panel,) = list_panels(FigureSpec(kind="series-differences", of=("mlm",)), results)
    assert isinstance(panel, LinePanel)
    (line,) = panel.lines
    assert (line.x, line.y) == ([10, 20, 30], [0.0, 0.25, 0.75])
    assert (line.low, line.high) == ([0.0, 0.0, 0.5], [0.0, 0.5, 1.0])
