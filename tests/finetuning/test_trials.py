"""Seeds and grids: every combination once, and figures that a person can check by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses
from small_tasks import invent_rows, write_rows

from litebert.checkpoint import load_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.options import dump_toml
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import FinetuneRecipe, build_finetune_recipe, load_finetune_recipe
from litebert.finetuning.run_folder import Job
from litebert.finetuning.trials import expand_grid, plan_trials, run_trials, summarize
from litebert.tasks.catalog import read_dataset

SHORT = ["train.steps=2", "train.evaluations=1"]


def test_a_comma_in_a_value_makes_a_grid_and_a_list_does_not() -> None:
    words = ["optim.learning_rate=1e-5,2e-5", "train.batch_size=16", "train.loggers=['a','b']", "seed=1,2"]
    grid = expand_grid(words)
    assert len(grid) == 4
    assert grid[1] == (
        ["optim.learning_rate=1e-5", "train.batch_size=16", "train.loggers=['a','b']", "seed=2"],
        ("optim.learning_rate=1e-5", "seed=2"),
    )
    assert expand_grid([]) == [([], ())]


def test_a_value_that_is_listed_twice_is_refused() -> None:
    with refuses(ConfigError, "repeated-value", at="train.epochs"):
        expand_grid(["train.epochs=1,2,1"])


def make_job(checkpoint: Path, folder: Path) -> Job:
    dataset = read_dataset("classification", write_rows(folder, invent_rows()))
    return Job(load_checkpoint(checkpoint), dataset, FinetuneRecipe())


def test_runs_are_made_once_and_summarized(tiny_checkpoint: Path, tmp_path: Path) -> None:
    job = make_job(tiny_checkpoint, tmp_path / "data")
    trials = plan_trials(job, "", [*SHORT, "optim.learning_rate=1e-3,1e-2"], num_seeds=2)
    summary = run_trials(trials, tmp_path / "out")
    folders = [run["folder"] for run in summary["runs"]]
    assert folders == [f"learning_rate={rate}/seed-{seed}" for rate in ("1e-3", "1e-2") for seed in (1, 2)]
    reports = [json.loads((tmp_path / "out" / folder / "report.json").read_text()) for folder in folders]
    assert [report["values"]["seed"] for report in reports] == [1, 2, 1, 2]
    assert [report["values"]["optim"]["learning_rate"] for report in reports] == [1e-3, 1e-3, 1e-2, 1e-2]
    before = (tmp_path / "out" / folders[0] / "report.json").stat().st_mtime_ns
    assert run_trials(trials, tmp_path / "out") == summary
    assert (tmp_path / "out" / folders[0] / "report.json").stat().st_mtime_ns == before


def test_a_recipe_that_a_run_wrote_is_a_recipe(tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = build_finetune_recipe({"train": {"batch_size": 7, "warmup_steps": 3}, "seed": 5})
    job = replace(make_job(tiny_checkpoint, tmp_path / "data"), recipe=recipe)
    (tmp_path / "recipe.toml").write_text(dump_toml(job.values))  # it also says which data the run was begun with
    assert load_finetune_recipe("classification", str(tmp_path / "recipe.toml")) == recipe


def test_repeated_seeds_are_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with refuses(ConfigError, "conflicting-options"):
        plan_trials(make_job(tiny_checkpoint, tmp_path), "", [*SHORT, "seed=1,2"], num_seeds=3)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("train.trainable=head,last-1", "layers-shared"),
        ("train.trainable=head,last-3", "too-many-layers"),
        ("train.warmup_steps=1,3", "warm-up-too-long"),
        ("passage.stride=128,5", "conflicting-keys"),
        ("model.dropout_rate=0.1,2.0", "out-of-range"),
    ],
)
def test_every_value_of_a_grid_is_checked_before_anything_runs(
    word: str, code: str, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with refuses(ConfigError, code):
        plan_trials(make_job(tiny_checkpoint, tmp_path), "", [*SHORT, word], num_seeds=1)


def test_every_length_of_a_grid_must_leave_room_for_the_text(tiny_checkpoint: Path, tmp_path: Path) -> None:
    rows = [{"context": "a cat", "question": "who", "choices": ["a", "b"], "label": number % 2} for number in range(4)]
    job = Job(load_checkpoint(tiny_checkpoint), read_dataset("choice", write_rows(tmp_path, rows)), FinetuneRecipe())
    words = [*SHORT, "passage.max_choice_length=8", "train.max_length=32,11"]
    with refuses(ConfigError, "text-too-long"):
        plan_trials(job, "", words, num_seeds=1)


def test_several_runs_do_not_mix_with_a_single_one(tiny_checkpoint: Path, tmp_path: Path) -> None:
    job = make_job(tiny_checkpoint, tmp_path / "data")
    [single] = plan_trials(job, "", SHORT, num_seeds=1)
    several = plan_trials(job, "", SHORT, num_seeds=2)
    finetune(single.job, tmp_path / "one")
    before = sorted((tmp_path / "one").rglob("*"))
    with refuses(ConfigError, "wrong-folder"):
        run_trials(several, tmp_path / "one")
    assert sorted((tmp_path / "one").rglob("*")) == before
    run_trials(several, tmp_path / "two")
    with refuses(ConfigError, "folder-not-empty"):
        finetune(single.job, tmp_path / "two")


def test_median_mean_spread_and_best_are_those_of_the_runs() -> None:
    def run(word: str, seed: int, score: float) -> dict[str, Any]:
        return {
            "folder": f"{word}/{seed}",
            "words": [word],
            "seed": seed,
            "scores": {"accuracy": score},
            "is_at_chance": score < 0.55,
        }

    runs = [run("a", seed, score) for seed, score in enumerate([0.5, 0.8, 0.9])] + [run("b", 0, 0.7)]
    summary = summarize("accuracy", "dev", runs)
    first, second = summary["combinations"]
    assert (first["words"], first["median"], first["lowest"], first["highest"]) == (["a"], 0.8, 0.5, 0.9)
    assert first["mean"] == pytest.approx(2.2 / 3)
    assert first["deviation"] == pytest.approx(0.2081666)
    assert first["at_chance"] == ["a/0"]
    assert (second["median"], second["deviation"]) == (0.7, 0.0)
    assert summary["best_run"] == "a/2"
