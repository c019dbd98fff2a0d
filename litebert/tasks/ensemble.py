"""Ensembles: average the outputs of several models, optionally selected on dev."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_directory, write_json
from litebert.tasks.catalog import finish_task, restore_task, task_facts, untuned
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output, fingerprint
from litebert.tasks.predictions import (
    are_of,
    predict_answers,
    predictions_file,
    read_predictions,
    write_predictions,
)
from litebert.tasks.report import (
    REPORT_FILE,
    describe_split,
    is_labelled,
    learn_baseline,
    may_have_answered,
    read_report,
    write_report,
)

REMEDY = "use the data options of its fine-tuning (dev, test, dev_share, ...), or leave the run out"


@dataclass(frozen=True)
class Selection:
    """The members of an ensemble in the order they were selected, and the dev score after each."""

    members: tuple[str, ...]
    scores: tuple[float, ...]


def average(task: FinetuneTask, members: Sequence[Sequence[Output]]) -> list[Output]:
    """The ensemble's output for each example, from those of every member."""
    return [task.combine(outputs) for outputs in zip(*members, strict=True)]


def select_greedily(
    members: Mapping[str, Sequence[Output]], score: Callable[[Sequence[Output]], float], task: FinetuneTask
) -> Selection:
    """Start with the best member, repeatedly add the one that helps most, and keep the best prefix.

    A member that does not help alone may help together with the next. Ties between members go to the one named first,
    ties between prefixes to the longest, because an average of more models varies less.
    """
    chosen: list[str] = []
    scores: list[float] = []
    while len(chosen) < len(members):
        candidates = {
            name: score(average(task, [members[one] for one in (*chosen, name)]))
            for name in members
            if name not in chosen
        }
        best = max(candidates, key=lambda name: candidates[name])
        chosen.append(best)
        scores.append(candidates[best])
    size = max(range(1, len(scores) + 1), key=lambda size: (scores[size - 1], size))
    return Selection(tuple(chosen[:size]), tuple(scores[:size]))


def make_ensemble(runs: Sequence[Path], dataset: Dataset, out: Path, *, selects: bool) -> dict[str, Any]:
    """Average all finished runs, or those that help on dev; write predictions and report to `out`, as a run does."""
    if not dataset.dev:
        raise DataError("empty-split", f"the data has no dev split of {dataset.task.name} to score the ensemble on")
    check_out(out)
    facts = read_facts(runs, dataset)
    task = untuned(restore_task(facts, where=str(runs[0])))  # the ensemble tunes its own threshold
    split, examples = next(iter(dataset.dev.items()))
    outputs = read_outputs(runs, split, examples)

    def score(values: Sequence[Output]) -> float:
        return task.score(values, examples)[task.metric]

    members = list(select_greedily(outputs, score, task).members if selects else outputs)
    member_scores = {name: score(values) for name, values in outputs.items()}
    task, files = finish_task(task, average(task, [outputs[name] for name in members]), examples)
    asked = {**dataset.dev, **dataset.test}
    averaged = average_splits(task, [Path(name) for name in members], asked)
    baseline = learn_baseline(task, dataset.train)
    described = {n: describe_split(task, v, asked[n], baseline) for n, v in averaged.items() if is_labelled(asked[n])}
    report = {
        "task": task.name,
        "metric": task.metric,
        "facts": task_facts(task, max_length=facts["max_length"]),
        # as in a run's report, for `may_have_answered` and `keep_held_out`
        "values": {"job": {"test": fingerprint(list(dataset.test.values())), "num_train": len(dataset.train)}},
        "members": members,
        # relative to the ensemble's folder, so that both can be moved together
        "member_paths": [Path(os.path.relpath(Path(name).resolve(), out.resolve())).as_posix() for name in members],
        "member_scores": member_scores,
        "dev": {name: facts for name, facts in described.items() if name in dataset.dev},
        "test": {name: facts for name, facts in described.items() if name not in dataset.dev},
    }
    with atomic_directory(out, replaces=True) as folder:  # an earlier ensemble is removed completely
        for name, values in averaged.items():
            write_predictions(predictions_file(folder, name), predict_answers(task, values, asked[name]))
        for name, value in files.items():
            write_json(folder / name, value)
        write_report(folder, report)
    return report


def is_ensemble(path: Path) -> bool:
    """Whether a folder contains an ensemble."""
    is_run = (path / "model").is_dir()
    return not is_run and (path / REPORT_FILE).is_file() and "members" in read_report(path)


def list_members(path: Path) -> list[Path]:
    """The runs that an ensemble averages."""
    report = read_report(path)
    members = [path / name for name in report.get("member_paths", ())] or [Path(name) for name in report["members"]]
    for member in members:
        if not member.is_dir():
            raise DataError(
                "missing-file",
                f"{member}, a member of the ensemble {path}, is missing; restore it, or build the ensemble again",
            )
    return members


def check_out(out: Path, *, overwrite: bool = True) -> None:
    """Raise unless `out` is new, empty, or, with `overwrite`, an older ensemble to replace."""
    if out.exists() and not is_ensemble(out) and any(out.iterdir()):
        raise ConfigError(
            "output-exists", f"{out} is not empty and not an ensemble; choose another folder", option="out"
        )
    if out.exists() and is_ensemble(out) and not overwrite:
        raise ConfigError(
            "output-exists", f"{out} already exists: choose another name, or overwrite it", option="overwrite"
        )


def read_facts(runs: Sequence[Path], dataset: Dataset) -> dict[str, Any]:
    """The task facts shared by all runs; raises if their tasks or labels differ."""
    reports = {run: read_report(run) for run in runs}
    first: dict[str, Any] = reports[runs[0]]["facts"]
    for run, report in reports.items():
        if report["task"] != dataset.task.name:
            raise ConfigError(
                "wrong-task", f"{run} is fine-tuned for {report['task']}, not {dataset.task.name}; leave it out"
            )
        if report["facts"].get("labels") != first.get("labels"):
            raise ConfigError("labels-mismatch", f"{run} and {runs[0]} have different labels and cannot be averaged")
        if not may_have_answered(report, dataset.test):
            raise DataError("answers-mismatch", f"{run} predicted a different test file; {REMEDY}", option="data")
    return first


def average_splits(
    task: FinetuneTask, members: Sequence[Path], asked: Mapping[str, Sequence[Any]]
) -> dict[str, list[Output]]:
    """The ensemble's outputs for the splits that every member has answered."""
    answered = {
        name: read_outputs(members, name, examples)
        for name, examples in asked.items()
        if all(predictions_file(run, name).is_file() for run in members)
    }
    return {name: average(task, list(outputs.values())) for name, outputs in answered.items()}


def read_outputs(runs: Sequence[Path], split: str, examples: Sequence[Any]) -> dict[str, list[Output]]:
    """The outputs of several runs for the examples of one split."""
    if len(set(runs)) < len(runs):
        raise ConfigError("repeated-value", "a run is listed twice; list each member once")
    outputs: dict[str, list[Output]] = {}
    for run in runs:
        predictions = read_predictions(predictions_file(run, split))
        if not are_of(predictions, examples):
            raise DataError(
                "answers-mismatch", f"{run} predicted different examples in '{split}'; {REMEDY}", option="data"
            )
        outputs[str(run)] = [one.output for one in predictions]
    return outputs
