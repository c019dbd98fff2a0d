"""The progress display of a run."""

import io
import os

import pytest
from rich.console import Console

from litebert.core.view import LiveView, PlainView, Status, draw_status, format_seconds, open_view

STATUS = Status(
    step=1500,
    total_steps=125_000,
    progress=0.012,
    values={"loss": 7.123456, "mlm_accuracy": 0.1234, "sentence_accuracy": 0.5},
    tokens_per_second=12_345.6,
    share_of_peak=0.61,
    seconds_left=11_220,
)


def test_a_pipe_gets_one_plain_line_now_and_then() -> None:
    stream = io.StringIO()
    with open_view("nano", stream=stream, plain_seconds=1000) as view:
        assert isinstance(view, PlainView)
        for _ in range(5):
            view.show(STATUS)
        view.say("saved checkpoint step-1500")
    assert stream.getvalue().splitlines() == [
        "nano: step 1,500/125,000, loss 7.123, mlm acc. 12.3%, sentence acc. 50.0%, tokens/s 12,346, "
        "of peak 61%, left 3 h 07 min",
        "saved checkpoint step-1500",
    ]


def test_a_reader_who_leaves_does_not_stop_the_work() -> None:
    output, input_ = os.pipe()
    os.close(output)
    with os.fdopen(input_, "w") as stream, open_view("nano", stream=stream) as view:
        view.say("one line is refused")
        view.say("and no other is tried")


def test_the_last_step_is_always_shown() -> None:
    stream = io.StringIO()
    with open_view("nano", stream=stream, plain_seconds=1000) as view:
        view.show(Status(step=9, total_steps=10, progress=0.9))
        view.show(Status(step=10, total_steps=10, progress=1.0))
    assert stream.getvalue().splitlines() == ["nano: step 9/10", "nano: step 10/10"]


@pytest.mark.parametrize("width", [60, 100, 140])
def test_the_live_view_shows_every_figure_at_every_width(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(draw_status("nano", STATUS))
    text = console.export_text()
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for figure in ("nano", "1,500/125,000", "7.123", "12.3%", "50.0%", "12,346", "61%", "3 h 07 min"):
        assert figure in text


def test_a_terminal_gets_the_live_view() -> None:
    stream = io.StringIO()
    view = LiveView("nano", Console(file=stream, force_terminal=True, width=100))
    with view:
        view.show(STATUS)
        view.say("saved [checkpoint] step-1500")
    assert "1,500/125,000" in stream.getvalue()
    assert "saved [checkpoint] step-1500" in stream.getvalue()  # not taken for markup


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (425, "7 min 05 s"),
        (3599.9, "1 h 00 min"),
        (90_061, "25 h 01 min"),
    ],
)
def test_durations_read_naturally(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
