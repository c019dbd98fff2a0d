"""The report of a finished run: scores compared with chance, confusion matrix, worst errors."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, check_keys
from litebert.core.sealed import find_changed, hash_files, read_sealed, stays_inside, write_sealed
from litebert.tasks.bag_of_words import Answer
from litebert.tasks.catalog import find_kind
from litebert.tasks.files.splitting import list_inputs
from litebert.tasks.finetuning import FinetuneTask, Output, fingerprint
from litebert.tasks.intervals import find_intervals, find_lead
from litebert.tasks.predictions import PREDICTIONS

REPORT_FILE = "report.json"
ERRORS_FILE = "errors.md"
MAX_EXAMPLES = 50_000  # training examples of a baseline; more change little and take minutes
NUM_ERRORS = 25
MAX_SHOWN = 300  # characters of an output
NUM_EXAMPLES, MAX_EXAMPLE = 3, 2000  # sample inputs in a report, and their maximum length in characters
FEW_STEPS, FEW_EXAMPLES = 100, 100  # with fewer, a score at chance is no surprise
LEARNED = 0.9  # if the final loss is above this share of the first loss, the model has learned nothing


class Baseline(NamedTuple):
    """A trained baseline: its name, its number of training examples, and its outputs for examples of the task."""

    name: str
    num_examples: int
    answer: Answer


def learn_baseline(task: FinetuneTask, train: Sequence[Any]) -> Baseline | None:
    """Train the task's baseline on its training examples; None if the task has none."""
    kind = find_kind(task)
    if kind.baseline is None or not (train or not kind.is_baseline_trained):
        return None
    chosen = train
    if len(train) > MAX_EXAMPLES:
        chosen = [train[n] for n in sorted(np.random.default_rng(0).permutation(len(train))[:MAX_EXAMPLES])]
    name, learn = kind.baseline
    answer = learn(task, chosen)
    return None if answer is None else Baseline(name, len(chosen) if kind.is_baseline_trained else 0, answer)


def describe_split(
    task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any], baseline: Baseline | None = None
) -> dict[str, Any]:
    """The scores of a labelled split with their intervals, compared with chance and with a baseline."""
    scores = task.score(outputs, examples)
    chance = task.chance(examples)
    facts: dict[str, Any] = {
        "num_examples": len(examples),
        "metric": task.metric,
        "scores": scores,
        "intervals": find_intervals(task, outputs, examples),
        "chance": {"score": chance.score, "margin": min(chance.margin, 1.0 - chance.score)},
        # a difference within chance
        "is_at_chance": scores[task.metric] <= chance.score + chance.margin,
    }
    facts |= find_kind(task).describe(task, outputs, examples)
    if baseline:
        facts["baseline"] = _compare(task, outputs, baseline, examples)
    return facts


def _compare(
    task: FinetuneTask, outputs: Sequence[Output], baseline: Baseline, examples: Sequence[Any]
) -> dict[str, Any]:
    """The baseline's scores, and the model's lead over it in the task's metric."""
    others = baseline.answer(examples)
    scores = task.score(others, examples)
    return {
        "name": baseline.name,
        "num_train_examples": baseline.num_examples,
        "scores": scores,
        "lead": task.score(outputs, examples)[task.metric] - scores[task.metric],
        "lead_interval": find_lead(task, outputs, others, examples),
    }


def explain_chance(facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *, num_train: int) -> str:
    """The most likely reason why a run ended at chance, from its training log."""
    steps, losses = records[-1]["step"], [record["loss"] for record in records if "loss" in record]
    if steps < FEW_STEPS:
        return f"the run had only {steps:,} steps; train longer (train.steps or train.epochs)"
    if not losses or fmean(losses[-5:]) > LEARNED * losses[0]:
        return "the training loss hardly fell; try another learning rate (optim.learning_rate)"
    if sum(map(any, zip(*facts.get("confusion", ()), strict=True))) == 1:
        return "the model always predicts the same label; balance the labels, or try another learning rate"
    if facts["num_examples"] < FEW_EXAMPLES:
        score = facts["chance"]["score"] + facts["chance"]["margin"]
        return (
            f"{facts['num_examples']:,} examples are few: only a score above {score:.4f} is significant; hold out more"
        )
    return (
        f"the model memorized the {num_train:,} training examples but does not generalize: label more data, "
        f"or start from a better pre-trained model; could a person give the answer from the text alone?"
    )


def is_labelled(examples: Sequence[Any]) -> bool:
    """Whether all right answers are known."""
    return all(example.label is not None for example in examples)


def write_errors(
    path: Path, task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any], *, title: str
) -> None:
    """Write the worst errors as a Markdown page."""
    kind = find_kind(task)
    wrongness = {n: task.wrongness(output, examples[n]) for n, output in enumerate(outputs)}
    wrong = [number for number, value in wrongness.items() if value > 0]
    hardest = sorted(wrong, key=lambda number: -wrongness[number])[:NUM_ERRORS]
    lines = [f"# {title}: the {len(hardest)} worst errors", ""]
    for number in hardest:
        example = examples[number]
        if kind.describe_error:
            lines += kind.describe_error(task, task.decide(outputs[number]), example)
            continue
        answer, right = (_show(value) for value in (task.decide(outputs[number]), kind.show_label(task, example.label)))
        lines += [f"## {example.id}: {answer} instead of {right}", ""]
        lines += [f"- {_show(text)}" for text in list_inputs(example) if text not in (None, "")]
        output = json.dumps(outputs[number], ensure_ascii=False)
        lines += [f"- output {output[:MAX_SHOWN]}{'...' if len(output) > MAX_SHOWN else ''}", f"- {example.where}", ""]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines), "utf-8")


def pick_examples(examples: Sequence[Any]) -> list[Any]:
    """A few short inputs with different labels to try the model on, in the format of `litebert serve`."""
    picked: dict[str, Any] = {}
    for example in examples:
        shown = example.to_input()
        if str(example.label) not in picked and len(json.dumps(shown, ensure_ascii=False)) <= MAX_EXAMPLE:
            picked[str(example.label)] = shown
        if len(picked) == NUM_EXAMPLES:
            break
    return list(picked.values())


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Write the report of a finished run, with the hashes of its predictions, which ensembles rely on."""
    answers = {f"{PREDICTIONS}/{name}": sha256 for name, sha256 in hash_files(folder / PREDICTIONS).items()}
    write_sealed(folder / REPORT_FILE, {**report, "files": answers})


def read_report(folder: Path) -> dict[str, Any]:
    """Read the report of a finished run; raises if its predictions have changed since."""
    file = folder / REPORT_FILE
    if not file.is_file():
        raise DataError("not-a-run", f"{folder} has no {REPORT_FILE}; is it a finished fine-tuning run?")
    report = read_sealed(file)
    check_keys(file, report, {"task": str, "metric": str, "facts": dict, "dev": dict, "test": dict})
    for split in (*report["dev"].values(), *report["test"].values()):
        check_keys(file, split if isinstance(split, dict) else {}, {"scores": dict, "num_examples": int})
    answers = report.get("files", {})  # reports of earlier versions have none
    check_keys(file, {"files": answers}, {"files": dict})
    kept = {name: sha for name, sha in answers.items() if not stays_inside(name) or (folder / name).is_file()}
    if problems := find_changed(folder, kept):
        raise DataError("corrupt-file", f"{problems[0]}; restore it, or fine-tune again in a new folder")
    return report


def may_have_answered(report: Mapping[str, Any], test: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the run of a report may have predicted these test splits; without labels only their hash can tell.

    True if unknown: labelled splits are compared by their right answers instead, and some runs had no test split.
    """
    answered = report.get("values", {}).get("job", {}).get("test", "")
    if not test or answered in ("", fingerprint([])) or any(is_labelled(examples) for examples in test.values()):
        return True
    return bool(answered == fingerprint(list(test.values())))


def _show(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return " | ".join("(no answer)" if one == "" else str(one) for one in values) or "(none)"
