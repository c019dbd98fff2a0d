"""benchmarks/transfer.py compares like with like, goes on where it stopped, and tells what its runs allow to say."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import transfer
from transfer import Case, Row, draw

from litebert.core.errors import ConfigError
from litebert.tasks.squad.reading import Question

CASE = Case("animals", "Animals", "classification", "animals", 1)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_rows(tmp_path / "data" / "animals", invent_rows())
    monkeypatch.setattr(transfer, "CASES", (CASE,))
    return tmp_path / "data"


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["transfer.py", *map(str, words)])
    transfer.main()


def test_both_beginnings_are_run_once_and_reported(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, page = tmp_path / "out", tmp_path / "docs" / "results.md"
    words = ["run", tiny_checkpoint, "--out", out, "--data", data, "--seeds", 2, "--scale", 0.5]
    call(monkeypatch, *words)
    before = {file: file.read_bytes() for file in out.rglob("seed-*/report.json")}
    assert len(before) == 4
    assert len(set(before.values())) == 4  # seeds and beginnings differ
    assert not list(out.rglob("*.safetensors"))
    call(monkeypatch, *words)
    assert {file: file.read_bytes() for file in out.rglob("seed-*/report.json")} == before
    page.parent.mkdir()
    page.write_text("# Results\n\nbefore\n")
    for _ in range(2):  # the second time its own part is replaced
        call(monkeypatch, "report", out, "--page", page)
        text = page.read_text()
        assert text.startswith("# Results\n\nbefore\n")
        assert text.count("| Animals | accuracy | 16 × 1 | 16 |") == 1
    assert (page.parent / transfer.FIGURE).stat().st_size > 5000


def test_other_numbers_of_examples_cannot_go_on_in_the_same_folder(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", tiny_checkpoint, "--out", tmp_path / "out", "--data", data, "--seeds", 1]
    call(monkeypatch, *words)
    with pytest.raises(ConfigError, match=r"job\.examples"):
        call(monkeypatch, *words, "--scale", 0.5)


def make_row(random: list[float], pretrained: list[float]) -> Row:
    return Row(CASE, "accuracy", 16, 16, 50.0, 60.0, {"random": random, "pretrained": pretrained})


@pytest.mark.parametrize(
    ("random", "pretrained", "verdict"),
    [
        ([61, 62, 63], [64, 70, 71], "helps"),
        ([61, 62, 65], [64, 70, 71], "no clear difference"),
        ([70, 71, 72], [61, 62, 63], "harms"),
        ([50, 51, 52], [57, 58, 59], "both at chance"),
    ],
)
def test_a_difference_counts_if_no_seed_contradicts_it(
    random: list[float], pretrained: list[float], verdict: str
) -> None:
    assert make_row(random, pretrained).verdict == verdict


def test_questions_about_a_paragraph_are_drawn_together() -> None:
    rows = [Question(str(n), "Who?", f"paragraph {n // 5}") for n in range(50)]
    drawn = draw(rows, 15)
    assert len({row.context for row in drawn}) == 3
    assert [int(row.id) for row in drawn] == sorted(int(row.id) for row in drawn)
    assert draw([replace(row, text="other") for row in rows], 15)[0].id == drawn[0].id
