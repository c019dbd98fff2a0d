"""The inputs that a result depends on, and whether a finished arm is still up to date with its study.

An arm whose training would be different now is stale and raises an error, because it must be trained again. If only
measurements are different, they are taken again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError
from litebert.core.options import parse_toml
from litebert.corpus.shards import open_corpus
from litebert.corpus.unfinished import read_sources
from litebert.finetuning.recipe import build_finetune_recipe, list_differences
from litebert.pretraining.recipe import build_recipe, list_changes
from litebert.study.arms import ArmRun, corpora_of, list_ancestors
from litebert.study.place import RUNS, Place, Report
from litebert.study.spec import TaskSpec
from litebert.tasks import finetuning
from litebert.tasks.catalog import read_dataset

MAX_NAMED = 20  # files of a corpus listed in a report


@dataclass(frozen=True)
class Texts:
    """The texts that a study's arms read, identified by content instead of path."""

    corpora: dict[str, dict[str, Any]]  # by name: counts, and a hash of all of it including held-out text
    tasks: dict[str, str]  # by metric: a hash of the examples


def describe_texts(runs: Sequence[ArmRun], place: Place) -> Texts:
    """Describe the texts of some runs of one study, reading each text once."""
    corpora = {name: _describe_corpus(path) for name, path in place.corpora.items()}
    tasks = {}
    for task in runs[0].at_scale.tasks:
        assert place.data is not None, "open_place has looked for the tasks' data"
        dataset = read_dataset(task.task, place.data / task.data)
        tasks[task.metric] = finetuning.fingerprint([dataset.train, *dataset.dev.values()])
    return Texts(corpora, tasks)


def _describe_corpus(path: Path) -> dict[str, Any]:
    train, valid = open_corpus(path), open_corpus(path, "valid")
    return {
        "fingerprint": train.manifest.fingerprint,
        "documents": train.num_documents,
        "tokens": train.num_tokens,
        "held_out_documents": valid.num_documents,
        "held_out_tokens": valid.num_tokens,
        "vocab_size": train.vocab_size,
        "tokenizer": train.tokenizer_fingerprint,
        "files": train.manifest.num_sources,
        "file_names": [source.path.name for source in read_sources(path)[:MAX_NAMED]],
        "valid_share": train.manifest.options.get("valid_share"),
        "first_sentences": train.manifest.options.get("first_sentences"),  # of each document; None: all
    }


def describe_measures(run: ArmRun) -> dict[str, Any]:
    """All settings of the measurements of a trained model, including the tasks' recipes."""
    spec = run.at_scale
    facts = {
        "measures": spec.measures,
        "tasks": [_describe_task(run, task) for task in spec.tasks],
        "pairs": spec.pairs,
        "length": spec.length,
        "speed_steps": spec.speed_steps,
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts))  # as read back from JSON
    return plain


def _describe_task(run: ArmRun, task: TaskSpec) -> dict[str, Any]:
    return {
        "metric": task.metric,
        "task": task.task,
        "seeds": task.seeds,
        "starts_from": task.starts_from,
        "has_ensemble": task.has_ensemble,
        "recipe": run.recipe_of(task).values,
    }


def fingerprint(run: ArmRun, texts: Texts) -> str:
    """A hash of everything that a result depends on: recipes, texts and measurement settings."""
    recipes = [run.recipe.fingerprint, *(recipe.fingerprint for recipe in list_ancestors(run).values())]
    content = json.dumps([recipes, hash_corpora(run, texts), texts.tasks, describe_measures(run)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def hash_corpora(run: ArmRun, texts: Texts) -> dict[str, str]:
    """The fingerprints of the corpora that a run reads, by name; other arms may read other ones."""
    return {name: texts.corpora[name]["fingerprint"] for name in sorted(corpora_of([run])) if name in texts.corpora}


def list_staleness(report: Report, run: ArmRun, texts: Texts | None = None) -> list[str]:
    """The differences between a report's training and the study as it is now; empty if there are none.

    Recipes are rebuilt before the comparison, so a key that was added since has its default in both.
    """
    changes = list_changes(build_recipe(parse_toml(report["recipe"], where="recipe")), run.recipe)
    for name, recipe in list_ancestors(run).items():
        before = report["ancestors"].get(name)
        changed = list_changes(build_recipe(parse_toml(before, where=name)), recipe) if before else ["did not exist"]
        changes += [f"the arm {name}, which it starts from: {change}" for change in changed]
    for name, now in (hash_corpora(run, texts) if texts else {}).items():
        if report["corpora"].get(name, {}).get("fingerprint") != now:
            changes.append(f"corpus {name}: another text")
    return changes


def check_current(path: Path, report: Report, run: ArmRun, texts: Texts | None = None) -> None:
    """Raise if a finished arm's training is from another version of the study."""
    changes = list_staleness(report, run, texts)
    if changes:
        raise ConfigError(
            "options-changed",
            f"{path} is from another version of {run.study.name} ({'; '.join(changes[:4])}): restore that version, use "
            f"another folder, or delete the file, {RUNS}/{run.name} and {RUNS}/{run.name}-* to run this arm again",
            option="out",
        )


def list_other_measures(report: Report, run: ArmRun, texts: Texts | None = None) -> list[str]:
    """The differences between a report's measurements and the study as it is now; empty if there are none."""
    before, now = report["measures"], describe_measures(run)
    changes = [
        f"{key}: {before.get(key)!r} -> {value!r}"
        for key, value in now.items()
        if key != "tasks" and before.get(key) != value
    ]
    tasks_before = {task["metric"]: task for task in before["tasks"]}
    for task in now["tasks"]:
        metric = task["metric"]
        if metric not in tasks_before:
            changes.append(f"task {metric}: not measured")
            continue
        old = tasks_before[metric]
        old = {**old, "recipe": build_finetune_recipe(old["recipe"]).values}
        changes += [f"task {metric}, {change}" for change in list_differences(old, task)]
        if texts and report["task_data"].get(metric) != texts.tasks[metric]:
            changes.append(f"task {metric}: other examples")
    gone = tasks_before.keys() - {task["metric"] for task in now["tasks"]}
    return [*changes, *(f"task {metric}: no longer measured" for metric in sorted(gone))]
