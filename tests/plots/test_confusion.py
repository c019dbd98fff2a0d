"""The confusion of labels as a picture: each label can be told in it, whatever fonts there are, and nothing warns."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.font_manager import fontManager

from litebert.plots.confusion import draw_confusion, plot_confusion

COUNTS = [[3, 1], [0, 2]]
PLAIN, CHINESE, UNKNOWN = ["good", "b\u00e4d"], ["\u597d", "\u574f"], ["\ue000", "plain"]  # one is nobody's letter


def list_words(labels: list[str], title: str = "run") -> list[str]:
    """The names of the rows, of the columns, of both axes and of the picture."""
    [panel] = draw_confusion(COUNTS, labels, title=title).axes
    ticks = [*panel.get_yticklabels(), *panel.get_xticklabels()]
    return [*(tick.get_text() for tick in ticks), panel.get_xlabel(), panel.get_ylabel(), panel.get_title()]


@pytest.fixture
def chinese_font(tmp_path: Path) -> Iterator[None]:
    """A font of two letters, under the name of one that machines have."""
    builder = pytest.importorskip("fontTools.fontBuilder").FontBuilder(1000)
    pen = pytest.importorskip("fontTools.pens.ttGlyphPen").TTGlyphPen(None)
    builder.setupGlyphOrder([".notdef", "one", "two"])
    builder.setupCharacterMap(
        {ord(letter): glyph for letter, glyph in zip("".join(CHINESE), ("one", "two"), strict=True)}
    )
    builder.setupGlyf(dict.fromkeys((".notdef", "one", "two"), pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys((".notdef", "one", "two"), (1000, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "WenQuanYi Zen Hei", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "letters.ttf")
    known = list(fontManager.ttflist)
    fontManager.addfont(tmp_path / "letters.ttf")
    yield
    fontManager.ttflist[:] = known
    fontManager._findfont_cached.cache_clear()


def test_labels_are_named_in_the_letters_of_the_usual_font() -> None:
    assert list_words(PLAIN) == [*PLAIN, *PLAIN, "predicted", "true", "run"]


def test_labels_are_named_where_a_font_has_their_letters(chinese_font: None) -> None:
    del chinese_font
    assert list_words(CHINESE) == [*CHINESE, *CHINESE, "predicted", "true", "run"]


def test_labels_that_no_font_can_write_are_numbered_and_the_picture_says_where_they_stand() -> None:
    assert list_words(UNKNOWN) == [
        *("1", "2", "1", "2"),
        "predicted\nLabels are numbered in the order of report.json.",
        "true",
        "run",
    ]
    assert list_words(PLAIN, title=UNKNOWN[0])[-1] == ""  # the folder has the name too


@pytest.mark.parametrize("labels", [PLAIN, CHINESE, UNKNOWN, ["two\nlines", "a\tb"], ["\U0001f600", "\x07"]], ids=ascii)
def test_nothing_warns_of_letters(labels: list[str], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_confusion(COUNTS, labels, tmp_path / "c.png", title=labels[0])
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_nothing_warns_where_a_second_font_is_taken(chinese_font: None, tmp_path: Path) -> None:
    del chinese_font
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_confusion(COUNTS, [CHINESE[0], "plain"], tmp_path / "c.png", title=CHINESE[1])


def test_of_many_labels_those_with_errors_are_shown_in_a_small_picture() -> None:
    labels = [f"class {n}" for n in range(600)]
    counts = np.diag(np.full(600, 9))
    counts[3, 500] = counts[500, 7] = 2
    figure = draw_confusion(counts.tolist(), labels, title="run")
    [panel] = figure.axes
    shown = [tick.get_text() for tick in panel.get_yticklabels()]
    assert max(figure.get_size_inches()) < 40
    assert {"class 3", "class 7", "class 500"} < set(shown)
    assert shown == sorted(shown, key=labels.index)
    assert panel.get_title() == "run: the 60 of 600 labels with the most errors"
