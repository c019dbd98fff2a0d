"""Several fine-tuning runs: over seeds, whose median the paper reports, and over the values of a small grid."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError
from litebert.core.runtime import choose_device
from litebert.core.sealed import write_sealed
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import choose_recipe, load_finetune_recipe
from litebert.finetuning.run_folder import Job, check_job
from litebert.interop.opening import TRIALS_FILE
from litebert.training.kept_checkpoints import RECIPE_FILE


@dataclass(frozen=True)
class Trial:
    """One run: its overrides from the grid, and its seed."""

    words: tuple[str, ...]
    seed: int
    job: Job

    @property
    def folder(self) -> Path:
        pairs = [word.partition("=") for word in self.words]
        grid = [f"{key.rpartition('.')[2]}={value}" for key, _, value in pairs]
        return Path(*([",".join(grid)] if grid else []), f"seed-{self.seed}")


def expand_grid(overrides: Sequence[str]) -> list[tuple[list[str], tuple[str, ...]]]:
    """Each combination of the values in overrides such as optim.learning_rate=1e-5,2e-5, and the ones that vary."""
    axes = [_split_values(word) for word in overrides]
    return [
        (list(words), tuple(word for word, axis in zip(words, axes, strict=True) if len(axis) > 1))
        for words in itertools.product(*axes)
    ]


def _split_values(word: str) -> list[str]:
    key, _, text = word.partition("=")
    if "," not in text or text[:1] in "[\"'{":
        return [word]
    values = text.split(",")
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ConfigError("repeated-value", f"{word} lists {value} twice; list each value once")
    return [f"{key}={value}" for value in values]


def plan_trials(job: Job, recipe: str, overrides: Sequence[str], num_seeds: int) -> list[Trial]:
    """The checked runs of every combination and seed; seeds count up from the recipe's."""
    trials: list[Trial] = []
    task, width, num_examples = job.dataset.task.name, job.source.config.hidden_size, len(job.dataset.train)
    for words, varied in expand_grid(overrides):
        device = load_finetune_recipe(task, recipe or "two-core", words).runtime.device
        has_gpu = choose_device(device).type != "cpu"
        name = recipe or choose_recipe(task, hidden_size=width, has_gpu=has_gpu)
        resolved = load_finetune_recipe(
            task, name, words, hidden_size=width, num_examples=num_examples, has_gpu=has_gpu
        )
        if any(word.startswith("seed=") for word in varied) and num_seeds > 1:
            raise ConfigError(
                "conflicting-options",
                "both the override seed=... and seeds list several seeds; use one",
                option="seeds",
            )
        seeds = range(resolved.seed, resolved.seed + num_seeds)
        jobs = [replace(job, recipe=replace(resolved, seed=seed), recipe_name=name) for seed in seeds]
        check_job(jobs[0])  # seeds make no difference
        trials += [Trial(varied, one.recipe.seed, one) for one in jobs]
    return trials


def run_trials(trials: Sequence[Trial], folder: Path) -> dict[str, Any]:
    """Run the trials that are not finished yet, and summarize all; the summary is also written to the folder."""
    if (folder / RECIPE_FILE).exists():
        raise ConfigError(
            "wrong-folder",
            f"{folder} is a single run; several runs need a folder of their own, choose another",
            option="out",
        )
    results = []
    for trial in trials:
        report = finetune(trial.job, folder / trial.folder)
        split, facts = next(iter(report["dev"].items()))
        results.append(
            {
                "folder": trial.folder.as_posix(),
                "words": list(trial.words),
                "seed": trial.seed,
                "scores": facts["scores"],
                "is_at_chance": facts["is_at_chance"],
                "test": {name: test["scores"] for name, test in report["test"].items()},
                "baselines": {
                    name: one["baseline"] for name, one in (report["dev"] | report["test"]).items() if "baseline" in one
                },
            }
        )
    summary = summarize(trials[0].job.dataset.task.metric, split, results)
    write_sealed(folder / TRIALS_FILE, summary)
    return summary


def summarize(metric: str, split: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Median, mean, spread and best of each combination, over its seeds; runs at chance are included and listed."""
    combinations = []
    for words in dict.fromkeys(tuple(result["words"]) for result in results):
        mine = [result for result in results if tuple(result["words"]) == words]
        scores = [result["scores"][metric] for result in mine]
        combinations.append(
            {
                "words": list(words),
                "num_runs": len(scores),
                **_describe(scores),
                "at_chance": [result["folder"] for result in mine if result["is_at_chance"]],
                "test": {
                    name: _describe([run["test"][name][metric] for run in mine]) for name in mine[0].get("test", ())
                },
            }
        )
    best = max(results, key=lambda result: result["scores"][metric])
    return {
        "metric": metric,
        "split": split,
        "combinations": sorted(combinations, key=lambda one: -one["median"]),
        "best_run": best["folder"],
        "baselines": _summarize_baselines(metric, results),
        "runs": list(results),
    }


def _summarize_baselines(metric: str, results: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The baseline's score on each split, the same for all runs, and how many runs are significantly above it."""
    return {
        split: {
            "name": baseline["name"],
            "score": baseline["scores"][metric],
            "num_above": sum(result["baselines"][split]["lead_interval"][0] > 0 for result in results),
        }
        for split, baseline in results[0].get("baselines", {}).items()
    }


def _describe(scores: Sequence[float]) -> dict[str, float]:
    return {
        "median": statistics.median(scores),
        "mean": statistics.fmean(scores),
        "deviation": statistics.stdev(scores) if len(scores) > 1 else 0.0,
        "lowest": min(scores),
        "highest": max(scores),
    }
