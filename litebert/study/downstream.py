"""What an arm's model is worth for tasks: fine-tuned for each, as often as the study says."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.finetune import MODEL, finetune
from litebert.finetune_recipe import load_finetune_recipe
from litebert.finetune_run import Job
from litebert.interop.opening import load_checkpoint
from litebert.interop.source import FOR_TRAINING
from litebert.intrinsic.score import wilson_interval
from litebert.study.arms import ArmRun
from litebert.study.measured import Measured
from litebert.study.metrics import ENSEMBLE
from litebert.study.place import Place
from litebert.study.spec import TaskSpec
from litebert.tasks.catalog import read_dataset
from litebert.tasks.ensemble import make_ensemble
from litebert.tasks.finetuning import Dataset
from litebert.tasks.report import REPORT_FILE, read_report

EXACT = "-em"
AVERAGE = "avg"


def tune_all(run: ArmRun, place: Place, checkpoint: Path) -> Measured:
    """The scores of every task of the study, and their mean."""
    measured = Measured()
    of_tasks: list[float] = []
    for task in run.at_scale.tasks:
        of_task = tune(run, task, place, checkpoint)
        measured |= of_task
        # SQuAD counts in the paper's average by the mean of F1 and exact match
        of_tasks.append(
            statistics.fmean(v for k, v in of_task.values.items() if k in (task.metric, task.metric + EXACT))
        )
    return measured | Measured(values={AVERAGE: statistics.fmean(of_tasks)}) if of_tasks else measured


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
        facts={
            f"{task.metric}_runs": [100 * split["scores"][metric] for split in splits],
            f"{task.metric}_is_at_chance": [split["is_at_chance"] for split in splits],
        },
    )


def _average(run: ArmRun, task: TaskSpec, folders: Sequence[Path], dataset: Dataset, place: Place) -> dict[str, Any]:
    """The dev facts of the ensemble of a task's runs, which are averaged once."""
    folder = place.run_folder(f"{run.name}-{task.metric}{ENSEMBLE}")
    report = (
        read_report(folder)
        if (folder / REPORT_FILE).is_file()
        else make_ensemble(folders, dataset, folder, selects=False)
    )
    facts: dict[str, Any] = next(iter(report["dev"].values()))
    return facts
