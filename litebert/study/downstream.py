"""Downstream scores of an arm's model, fine-tuned for each task with the study's number of seeds."""

import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.evaluation.intrinsic.score import wilson_interval
from litebert.finetuning.finetune import MODEL, finetune
from litebert.finetuning.run_folder import Job, list_job_changes
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.study.arms import ArmRun
from litebert.study.measures import Measured
from litebert.study.metrics import AVERAGE, ENSEMBLE, EXACT
from litebert.study.place import Place
from litebert.study.spec import TaskSpec
from litebert.tasks.catalog import read_dataset
from litebert.tasks.ensemble import make_ensemble


def tune_all(run: ArmRun, place: Place, checkpoint: Path) -> Measured:
    """The scores of every task of the study, and their mean."""
    measured = Measured()
    for task in run.at_scale.tasks:
        measured |= tune(run, task, place, checkpoint)
    return measured | average([task.metric for task in run.at_scale.tasks], measured)


def average(tasks: Sequence[str], measured: Measured) -> Measured:
    """The mean over tasks, with its baseline and its interval over the choice of examples."""
    if not tasks:
        return Measured()
    # SQuAD counts in the paper's average by the mean of F1 and exact match
    values = [[measured.values[n] for n in (task, task + EXACT) if n in measured.values] for task in tasks]
    value = statistics.fmean(map(statistics.fmean, values))
    halves = [(high - low) / 2 for low, high in (measured.intervals[t] for t in tasks if t in measured.intervals)]
    half = math.hypot(*halves) / len(tasks)
    return Measured(
        values={AVERAGE: value},
        intervals={AVERAGE: (value - half, value + half)} if len(halves) == len(tasks) else {},
        levels={AVERAGE: statistics.fmean(measured.levels[task] for task in tasks)},
    )


def tune(run: ArmRun, task: TaskSpec, place: Place, checkpoint: Path) -> Measured:
    """Fine-tune for one task with all seeds; the score is their median, as in the paper."""
    assert place.data is not None, "open_place has looked for the tasks' data"
    dataset = read_dataset(task.task, place.data / task.data)
    folders = [place.task_folder(run, task, number) for number in range(1, task.seeds + 1)]
    reports = []
    for number, folder in enumerate(folders, start=1):
        source = place.run_folder(f"{run.name}-{task.starts_from}-{number}") / MODEL if task.starts_from else checkpoint
        recipe = run.recipe_of(task, [f"seed={100 * run.seed + number}"])
        job = Job(load_checkpoint(source, FOR_TRAINING), dataset, recipe, predicts_test=False)
        if list_job_changes(folder, job.with_lengths()):
            shutil.rmtree(folder)  # from before the study's measurements changed
        reports.append(finetune(job, folder))
    measured = _summarize(task, reports)
    if not task.has_ensemble:
        return measured
    ensemble = place.run_folder(f"{run.name}-{task.metric}{ENSEMBLE}")
    shutil.rmtree(ensemble, ignore_errors=True)  # its members may have changed
    dev = make_ensemble(folders, dataset, ensemble, selects=False)["dev"]
    scores = next(iter(dev.values()))["scores"]
    named = name_scores(task.metric, reports[0]["metric"], scores)
    return measured | Measured(values={name + ENSEMBLE: 100 * value for name, value in named.items()})


def name_scores(task: str, metric: str, scores: Mapping[str, float]) -> dict[str, float]:
    """A task's scores by their names in tables: its metric, exact match, and RACE's levels."""
    named = {task: scores[metric]}
    if "exact" in scores:
        named[task + EXACT] = scores["exact"]
    parts = {name.removeprefix(f"{metric}_"): value for name, value in scores.items() if name.startswith(f"{metric}_")}
    return named | {f"{task}-{part}": value for part, value in parts.items()}


def _summarize(task: TaskSpec, reports: Sequence[Mapping[str, Any]]) -> Measured:
    splits = [next(iter(report["dev"].values())) for report in reports]
    metric = reports[0]["metric"]
    named = [name_scores(task.metric, metric, split["scores"]) for split in splits]
    values = {name: 100 * statistics.median(scores[name] for scores in named) for name in named[0]}
    chance, num_examples = splits[0]["chance"], splits[0]["num_examples"]
    intervals: dict[str, tuple[float, float]] = {}
    if metric == "accuracy":
        low, high = wilson_interval(values[task.metric] / 100, num_examples)
        intervals[task.metric] = 100 * low, 100 * high
    counts = {task.metric: num_examples}
    return Measured(values=values, intervals=intervals, counts=counts, levels={task.metric: 100 * chance["score"]})
