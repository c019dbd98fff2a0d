"""Progress: quiet for short work, lines with rate and time left where there is no terminal."""

import pytest

from litebert.core import progress
from litebert.core.progress import ProgressBar


def test_short_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("reading", total=1e6) as shown:
        shown.move_to(5e5)
    assert capsys.readouterr().err == ""


def test_long_work_without_a_terminal_shows_share_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 1.0, 4.0, 5.0, 20.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with ProgressBar("reading", total=10e6) as shown:
        for position in (1e6, 4e6, 5e6):
            shown.move_to(position)
        shown.move_to(8e6, "3.0 MB/s of text")
    assert capsys.readouterr().err.splitlines() == [
        "reading: 40% (4.0 of 10.0 MB), 1.0 MB/s, 6 s left",
        "reading: 80% (8.0 of 10.0 MB), 3.0 MB/s of text, 5 s left",
    ]


def test_quiet_work_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 100.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with ProgressBar("reading", total=10e6, is_quiet=True) as shown:
        shown.move_to(4e6)
    assert capsys.readouterr().err == ""
