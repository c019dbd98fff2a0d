"""benchmarks/transfer.py compares like with like, goes on where it stopped, and tells what its runs allow to say."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_tasks import invent_rows, write_rows

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import transfer
from transferring import lessons
from transferring import report as reporting
from transferring.cases import Case, draw, hold_out
from transferring.lessons import Lesson, choose_rate
from transferring.report import FIGURE, Row, write_control, write_line

from litebert.checkpoint import load_checkpoint
from litebert.core.errors import ConfigError, TrainingError
from litebert.tasks.catalog import read_dataset
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
    before = {file: file.read_bytes() for file in out.rglob("seed-*/report.json")}
    final = {file: text for file, text in before.items() if "search" not in file.parts}
    assert (len(before), len(final)) == (2 * 3 + 6, 6)
    assert len(set(final.values())) == 6  # seeds, beginnings and the control differ
    assert not list(out.rglob("*.safetensors"))
    call(monkeypatch, *words)
    assert {file: file.read_bytes() for file in out.rglob("seed-*/report.json")} == before
    page.parent.mkdir()
    page.write_text("# Results\n\nbefore\n")
    for _ in range(2):  # the second time its own part is replaced
        call(monkeypatch, "report", out, "--page", page)
        text = page.read_text()
        assert text.startswith("# Results\n\nbefore\n")
        assert text.count("| Animals | accuracy | 16 | 16 |") == 1
    rates = [json.loads((out / "animals" / one / "transfer.json").read_text()) for one in ("random", "pretrained")]
    chosen = " | ".join(f"{facts['search']['learning_rate']:.1e}" for facts in rates)
    assert f"| Animals | 32 | 1 | 3 | 3.0e-04 | {chosen} |" in text
    assert "- Animals, 3 epochs: " in text
    assert (page.parent / FIGURE).stat().st_size > 5000


def test_other_numbers_of_examples_cannot_go_on_in_the_same_folder(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", tiny_checkpoint, "--out", tmp_path / "out", "--data", data, "--seeds", 1]
    call(monkeypatch, *words)
    with pytest.raises(ConfigError, match=r"job\.examples"):
        call(monkeypatch, *words, "--scale", 0.5)


def make_row(random: list[float], pretrained: list[float], control: tuple[float, ...] = ()) -> Row:
    scores, rates = {"random": random, "pretrained": pretrained}, {"random": 1e-3, "pretrained": 3e-4}
    recipe = {"learning_rate": 1e-3, "batch_size": 32, "epochs": 3.0}
    return Row(CASE, "accuracy", 16, 16, 50.0, 60.0, scores, rates, recipe, control)


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


def test_a_search_holds_out_whole_articles() -> None:
    rows = [Question(str(n), "Who?", f"paragraph {n // 5}", article=n // 10) for n in range(200)]
    kept, held = hold_out(rows)
    assert (len(kept), len(held)) == (180, 20)
    assert not {row.article for row in kept} & {row.article for row in held}
    assert [len(part) for part in hold_out(list(range(33)))] == [29, 4]


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({"0.0003": 0.6, "0.0001": 0.7, "0.0009": 0.5}, 0.0001),
        ({"0.0003": 0.6, "0.0001": 0.6, "0.0009": 0.6}, 0.0003),  # of equals the recipe's own
        ({"0.0003": 0.0, "0.0001": -0.1, "0.0009": None}, 0.0003),
        ({"0.0003": None, "0.0001": -0.1, "0.0009": None}, 0.0001),
    ],
)
def test_the_rate_that_is_best_on_held_out_examples_is_taken(
    scores: dict[str, float | None],
    chosen: float,
    data: Path,
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = read_dataset("classification", data / "animals")
    lesson = Lesson(load_checkpoint(tiny_checkpoint), replace(CASE, epochs=9), dataset, tmp_path / "out", 1)
    asked: list[Any] = []

    def pretend(trial: Any, _folder: Path) -> float:
        asked.append(trial.job)
        score = scores[f"{trial.job.recipe.optim.learning_rate:.2g}"]
        if score is None:
            raise TrainingError("the loss is nan")
        return score

    monkeypatch.setattr(lessons, "run_once", pretend)
    monkeypatch.setattr(lessons, "MAX_SEARCHED", 6)
    search = choose_rate(lesson, "random")
    assert (search.learning_rate, search.scores) == (chosen, scores)
    assert (search.num_train, search.num_held_out, search.steps) == (6, 4, 3)  # a third of nine
    for job in asked:
        assert job.is_from_scratch
        assert not {row.id for row in job.dataset.train} & {row.id for row in job.dataset.dev["held-out"]}
        assert {row.id for row in job.dataset.dev["held-out"]} <= {row.id for row in dataset.train}


def test_a_search_of_a_small_task_is_as_long_as_its_share_of_the_examples(
    data: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = read_dataset("classification", data / "animals")
    lesson = Lesson(load_checkpoint(tiny_checkpoint), replace(CASE, epochs=16), dataset, tmp_path / "out", 1)
    monkeypatch.setattr(lessons, "run_once", lambda *_: 0.5)
    search = choose_rate(lesson, "pretrained")
    assert (search.num_train, search.steps) == (28, 14)
