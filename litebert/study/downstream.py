"""What an arm's model is worth for tasks: fine-tuned for each, as often as the study says."""

import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.finetune import MODEL, finetune
from litebert.finetune_recipe import load_finetune_recipe
from litebert.finetune_run import Job, list_job_changes
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.intrinsic.score import wilson_interval
from litebert.study.arms import ArmRun
from litebert.study.measured import Measured
from litebert.study.metrics import AVERAGE, ENSEMBLE, EXACT
from litebert.study.place import Place
from litebert.study.spec import TaskSpec
from litebert.tasks.catalog import read_dataset
from litebert.tasks.ensemble import make_ensemble
from litebert.tasks.finetuning import Dataset


def tune_all(run: ArmRun, place: Place, checkpoint: Path) -> Measured:
    """The scores of every task of the study, and their mean."""
    measured = Measured()
    for task in run.at_scale.tasks:
        measured |= tune(run, task, place, checkpoint)
    return measured | average([task.metric for task in run.at_scale.tasks], measured)


def average(tasks: Sequence[str], measured: Measured) -> Measured:
    """The mean over tasks, with what the choice of their examples leaves open, and what needs no reading."""
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
    """One task, with each of its seeds; their median counts, as in the paper."""
    assert place.data is not None, "open_place has looked for the tasks' data"
    dataset = read_dataset(task.task, place.data / task.data)
    folders = [place.task_folder(run, task, number) for number in range(1, task.seeds + 1)]
    reports = []
    for number, folder in enumerate(folders, start=1):
        source = place.run_folder(f"{run.name}-{task.starts_from}-{number}") / MODEL if task.starts_from else checkpoint
        recipe = load_finetune_recipe(task.task, task.recipe, [*task.change, f"seed={100 * run.seed + number}"])
        job = Job(load_checkpoint(source, FOR_TRAINING), dataset, recipe, predicts_test=False)
        if list_job_changes(folder, job.with_lengths()):
            shutil.rmtree(folder)  # the study measures otherwise now
        reports.append(finetune(job, folder))
    measured = _summarize(task, reports)
    if not task.has_ensemble:
        return measured
    ensemble = _average(run, task, folders, dataset, place)
    return measured | Measured(values={task.metric + ENSEMBLE: 100 * ensemble["scores"][reports[0]["metric"]]})


def _summarize(task: TaskSpec, reports: Sequence[Mapping[str, Any]]) -> Measured:
    splits = [next(iter(report["dev"].values())) for report in reports]
    metric = reports[0]["metric"]
    value = statistics.median(split["scores"][metric] for split in splits)
    values = {task.metric: 100 * value}
    if "exact" in splits[0]["scores"]:
        values[task.metric + EXACT] = 100 * statistics.median(split["scores"]["exact"] for split in splits)
    chance, num_examples = splits[0]["chance"], splits[0]["num_examples"]
    is_share = metric == "accuracy"
    low, high = wilson_interval(value, num_examples) if is_share else (value, value)
    return Measured(
        values=values,
        intervals={task.metric: (100 * low, 100 * high)} if is_share else {},
        levels={task.metric: 100 * chance["score"]},
    )


def _average(run: ArmRun, task: TaskSpec, folders: Sequence[Path], dataset: Dataset, place: Place) -> dict[str, Any]:
    """The dev facts of the ensemble of a task's runs; averaged anew, for these may not be the runs of the last time."""
    folder = place.run_folder(f"{run.name}-{task.metric}{ENSEMBLE}")
    shutil.rmtree(folder, ignore_errors=True)
    report = make_ensemble(folders, dataset, folder, selects=False)
    facts: dict[str, Any] = next(iter(report["dev"].values()))
    return facts
