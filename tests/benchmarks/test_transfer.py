"""benchmarks/transfer.py compares like with like, goes on where it stopped, and tells what its runs allow to say."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import transfer
from transferring import report as reporting
from transferring.cases import Case, draw
from transferring.report import FIGURE, Row, write_control, write_line

from litebert.tasks.squad.reading import Question

CASE = Case("animals", "Animals", "classification", "animals", 1, has_control=True)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_rows(tmp_path / "data" / "animals", invent_rows())
    for module in (transfer, reporting):
        monkeypatch.setattr(module, "CASES", (CASE,))
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
    kept = {file.name: file.read_bytes() for file in out.glob("*.json")}
    assert sorted(kept) == ["animals-longer.json", "animals-pretrained.json", "animals-random.json"]
    facts = {name: json.loads(text) for name, text in kept.items()}
    assert [sorted(one["outcome"]["scores"]) for one in facts.values()] == [["1", "2"]] * 3
    trained = {file.read_bytes() for file in out.glob("runs/*/*/metrics.jsonl")}
    assert len(trained) == 6  # seeds, beginnings and the control differ
    assert not list(out.rglob("*.safetensors"))
    page.parent.mkdir()
    page.write_text("# Results\n\nbefore\n")
    for _ in range(2):  # the second time its own part is replaced
        call(monkeypatch, "report", out, "--page", page)
        text = page.read_text()
        assert text.startswith("# Results\n\nbefore\n")
        assert text.count("| Animals | accuracy | 16 | 16 |") == 1
    assert "| Animals | 1 | 32 | 128 | 3.0e-04 | 0 |" in text
    assert "- Animals, 3 epochs: " in text
    assert (page.parent / FIGURE).stat().st_size > 5000


def test_runs_with_a_kept_file_are_not_repeated(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    call(monkeypatch, "run", tiny_checkpoint, "--out", first, "--data", data, "--seeds", 1)
    second.mkdir()
    for file in first.glob("*.json"):
        shutil.copy(file, second)
    call(monkeypatch, "run", tiny_checkpoint, "--out", second, "--data", data, "--seeds", 2)
    assert sorted(file.name for file in second.glob("runs/*/*")) == ["seed-2"] * 3
    for file in first.glob("*.json"):
        before, after = (
            json.loads((folder / file.name).read_text())["outcome"]["scores"] for folder in (first, second)
        )
        assert after == {**after, **before}
        assert set(after) == {"1", "2"}


def test_another_number_of_examples_needs_another_folder(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", tiny_checkpoint, "--out", tmp_path / "out", "--data", data, "--seeds", 1]
    call(monkeypatch, *words)
    with pytest.raises(SystemExit, match="made with another case, num_train, num_dev: begin in a new folder"):
        call(monkeypatch, *words, "--scale", 0.5)


def test_runs_of_two_checkpoints_are_not_one_table(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    call(monkeypatch, "run", tiny_checkpoint, "--out", out, "--data", data, "--seeds", 1)
    monkeypatch.setattr(reporting, "CASES", (CASE, replace(CASE, name="plants")))
    other = json.loads((out / "animals-pretrained.json").read_text()) | {"weights": "of another"}
    (out / "plants-pretrained.json").write_text(json.dumps(other))
    with pytest.raises(SystemExit, match="mixes runs of 2 checkpoints"):
        call(monkeypatch, "report", out, "--page", tmp_path / "results.md")


def make_row(random: list[float], pretrained: list[float], control: tuple[float, ...] = ()) -> Row:
    scores = {"random": random, "pretrained": pretrained}
    return Row(CASE, "accuracy", 16, 16, 50.0, 60.0, scores, {"epochs": 3.0}, control)


@pytest.mark.parametrize(
    ("random", "pretrained", "verdict"),
    [
        ([61, 62, 63], [64, 70, 71], "helps"),
        ([61, 62, 65], [64, 70, 71], "no clear difference"),
        ([70, 71, 72], [61, 62, 63], "harms"),
        ([50, 51, 52], [57, 58, 59], "both at chance"),
        ([61], [71], "too few seeds"),
    ],
)
def test_a_difference_counts_if_no_seed_contradicts_it(
    random: list[float], pretrained: list[float], verdict: str
) -> None:
    assert make_row(random, pretrained).verdict == verdict


def test_every_row_says_how_many_seeds_it_is_the_median_of() -> None:
    assert "| 3 | 62.0 (61.0–63.0) |" in write_line(make_row([61, 62, 63], [64, 70, 71]))
    assert "| 1 | 61.0 (61.0–61.0) |" in write_line(make_row([61], [71]))


@pytest.mark.parametrize(
    ("random", "pretrained", "control", "words"),
    [
        ([61, 62, 63], [64, 70, 71], (62, 63, 63.5), "every pre-trained seed is still above"),
        ([61, 62, 63], [64, 70, 71], (63, 65, 66), "time makes up for it"),
        ([61, 62, 65], [64, 70, 71], (63, 65, 66), "no clear difference"),
        ([61, 62, 63], [64, 70, 71], (80, 81, 82), "time does more than pre-training"),
        ([61, 62, 63], [64, 70, 71], (63,), "too few seeds to say more"),
        ([50, 51, 52], [50, 51, 52], (51, 52, 53), "all at chance"),
    ],
)
def test_the_control_says_what_more_time_makes_up_for(
    random: list[float], pretrained: list[float], control: tuple[float, ...], words: str
) -> None:
    (line,) = (line for line in write_control([make_row(random, pretrained, control)]) if line[:1] == "-")
    assert line.endswith(f"; {words}.")
    assert write_control([make_row(random, pretrained)]) == []


def test_questions_about_a_paragraph_are_drawn_together_or_not_at_all() -> None:
    rows = [Question(str(n), "Who?", f"paragraph {n // 5}") for n in range(50)]
    drawn = draw(rows, 13)
    assert [len([row for row in drawn if row.context == context]) for context in {row.context for row in drawn}] == [
        5,
        5,
    ]
    assert [int(row.id) for row in drawn] == sorted(int(row.id) for row in drawn)
    assert draw([replace(row, text="other") for row in rows], 13)[0].id == drawn[0].id
    assert len(draw(rows, 3)) == 5  # never nothing
    assert len(draw(list(range(50)), 13)) == 13
