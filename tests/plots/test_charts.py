"""Charts inside a page: no size, font, colour or link of their own, and the same bytes every time."""

import re

import pytest

from litebert.plots.charts import Chart, Line, draw_chart

CHART = Chart(
    "A title",
    [Line("one", [1, 2, 3], [0.1, 0.2, 0.4], "accent"), Line("two", [1, 3], [0.1, 0.3], "faint", is_dashed=True)],
    is_share=True,
    level=0.2,
    level_label="chance",
    mark_x=2.5,
    has_whole_x=True,
)


def test_a_chart_takes_its_colours_from_the_page() -> None:
    svg = draw_chart(CHART)
    assert set(re.findall(r"(?:stroke|fill): ([^;\"]+)", svg)) == {
        "none",
        "currentColor",
        "var(--grid)",
        "var(--accent)",
        "var(--faint)",
    }


@pytest.mark.parametrize("unwanted", ["http", "xmlns", "<style", "font-family", "<metadata", "width=", "#0"])
def test_a_chart_brings_nothing_of_its_own(unwanted: str) -> None:
    svg = draw_chart(CHART)
    head = svg[: svg.index(">")]
    assert unwanted not in (head if unwanted == "width=" else svg)


def test_a_chart_is_the_same_every_time() -> None:
    assert draw_chart(CHART) == draw_chart(CHART)
