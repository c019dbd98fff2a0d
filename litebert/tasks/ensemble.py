"""Several models answer as one: their outputs are averaged, and who takes part can be chosen on dev."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import write_json
from litebert.tasks.catalog import finish_task, restore_task, task_facts, untuned
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output
from litebert.tasks.predictions import predict_answers, predictions_file, read_predictions, write_predictions
from litebert.tasks.report import describe_split, read_report, write_report


@dataclass(frozen=True)
class Selection:
    """The members of an ensemble in the order they were chosen, and dev's score after each."""

    members: tuple[str, ...]
    scores: tuple[float, ...]


def average(task: FinetuneTask, members: Sequence[Sequence[Output]]) -> list[Output]:
    """The ensemble's output for each example; every member gives one for each."""
    return [task.combine(outputs) for outputs in zip(*members, strict=True)]


def select_greedily(
    members: Mapping[str, Sequence[Output]], score: Callable[[Sequence[Output]], float], task: FinetuneTask
) -> Selection:
    """Begin with the best member, add the one that helps most, and stop when none does; ties go to the first named."""
    chosen: list[str] = []
    scores: list[float] = []
    while len(chosen) < len(members):
        candidates = {
            name: score(average(task, [members[one] for one in (*chosen, name)]))
            for name in members
            if name not in chosen
        }
        best = max(candidates, key=lambda name: candidates[name])
        if scores and candidates[best] <= scores[-1]:
            break
        chosen.append(best)
        scores.append(candidates[best])
    return Selection(tuple(chosen), tuple(scores))


def make_ensemble(runs: Sequence[Path], dataset: Dataset, out: Path, *, selects: bool) -> dict[str, Any]:
    """Average finished runs, all or those that help on dev; predictions and report lie in `out` as a run's do."""
    if not dataset.dev:
        raise DataError(f"{dataset.task.name} has no dev split here to measure an ensemble on")
    facts = read_report(runs[0])["facts"]
    task = untuned(restore_task(facts, where=str(runs[0])))  # a member's threshold is not the ensemble's
    split, examples = next(iter(dataset.dev.items()))
    outputs = read_outputs(runs, split, [example.id for example in examples])

    def score(values: Sequence[Output]) -> float:
        return task.score(values, examples)[task.metric]

    members = list(select_greedily(outputs, score, task).members if selects else outputs)
    member_scores = {name: score(values) for name, values in outputs.items()}
    averaged = average(task, [outputs[name] for name in members])
    task, files = finish_task(task, averaged, examples)
    for name, asked in {**dataset.dev, **dataset.test}.items():
        if all(predictions_file(Path(run), name).is_file() for run in members):
            answered = read_outputs([Path(run) for run in members], name, [example.id for example in asked])
            answers = predict_answers(task, average(task, list(answered.values())), asked)
            write_predictions(predictions_file(out, name), answers)
    report = {
        "task": task.name,
        "metric": task.metric,
        "facts": task_facts(task, max_length=facts["max_length"]),
        "members": members,
        "member_scores": member_scores,
        "dev": {split: describe_split(task, averaged, examples)},
    }
    for name, value in files.items():
        write_json(out / name, value)
    write_report(out, report)
    return report


def read_outputs(runs: Sequence[Path], split: str, ids: Sequence[str]) -> dict[str, list[Output]]:
    """The outputs of several runs for the examples of one split."""
    if len(set(runs)) < len(runs):
        raise ConfigError("a run is named twice: a member takes part once")
    outputs: dict[str, list[Output]] = {}
    for run in runs:
        predictions = read_predictions(predictions_file(run, split))
        if [one.id for one in predictions] != list(ids):
            raise DataError(f"{run} answered other examples in '{split}' than --data has: it cannot take part")
        outputs[str(run)] = [one.output for one in predictions]
    return outputs
