"""What a finished run says of itself: scores beside chance, the confusion of labels, the errors worth reading."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, check_keys, read_json, write_json
from litebert.tasks.choices import Choices
from litebert.tasks.classification import Classification
from litebert.tasks.finetuning import FinetuneTask, Output, fingerprint
from litebert.tasks.metrics import confusion_matrix
from litebert.tasks.token_tags import TokenTags

REPORT_FILE = "report.json"
ERRORS_FILE = "errors.md"
NUM_ERRORS = 25
MAX_SHOWN = 300  # characters of an output


def describe_split(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> dict[str, Any]:
    """The scores of a labelled split, beside those of an answer that reads nothing."""
    scores = task.score(outputs, examples)
    chance = task.chance(examples)
    facts: dict[str, Any] = {
        "num_examples": len(examples),
        "scores": scores,
        "chance": {"score": chance.score, "margin": min(chance.margin, 1.0 - chance.score)},
        # a difference that luck alone would make
        "is_at_chance": scores[task.metric] <= chance.score + chance.margin,
    }
    if isinstance(task, Classification):
        numbers = {label: number for number, label in enumerate(task.labels)}
        guesses = [numbers[task.decide(output)] for output in outputs]
        truths = [numbers[example.label] for example in examples]
        facts["confusion"] = confusion_matrix(guesses, truths, len(task.labels)).tolist()
    return facts


def is_labelled(examples: Sequence[Any]) -> bool:
    """Whether all the right answers are known."""
    return all(example.label is not None for example in examples)


def list_hardest(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> list[int]:
    """The numbers of the examples that were answered most wrongly, the worst first."""
    wrongness = {n: task.wrongness(output, examples[n]) for n, output in enumerate(outputs)}
    wrong = [number for number, value in wrongness.items() if value > 0]
    return sorted(wrong, key=lambda number: -wrongness[number])[:NUM_ERRORS]


def write_errors(
    path: Path, task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any], *, title: str
) -> None:
    """The hardest errors as a page to read."""
    hardest = list_hardest(task, outputs, examples)
    between = " " if isinstance(task, TokenTags) else " | "  # words make a sentence, answers and choices none
    lines = [f"# {title}: the {len(hardest)} answers that are most wrong", ""]
    for number in hardest:
        example = examples[number]
        label = task.name_choice(example.label) if isinstance(task, Choices) else example.label
        answer, right = (_show(value, between) for value in (task.decide(outputs[number]), label))
        lines += [f"## {example.id}: {answer} instead of {right}", ""]
        lines += [f"- {_show(text, between)}" for text in _list_texts(example)]
        output = json.dumps(outputs[number], ensure_ascii=False)
        lines += [f"- output {output[:MAX_SHOWN]}{'...' if len(output) > MAX_SHOWN else ''}", f"- {example.where}", ""]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines), "utf-8")


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    write_json(folder / REPORT_FILE, report)


def read_report(folder: Path) -> dict[str, Any]:
    """The report of a finished run."""
    file = folder / REPORT_FILE
    if not file.is_file():
        raise DataError(f"{folder} has no {REPORT_FILE}: is it a fine-tuned run, and finished?")
    report = read_json(file)
    check_keys(file, report, {"task": str})
    return report


def may_have_answered(report: Mapping[str, Any], test: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the run of a report can have answered these test splits; without labels nothing else tells them apart.

    True where that cannot be said: of labelled splits, whose answers are compared, and of runs that had no test split.
    """
    answered = report.get("values", {}).get("job", {}).get("test", "")
    if not test or answered in ("", fingerprint([])) or any(is_labelled(examples) for examples in test.values()):
        return True
    return bool(answered == fingerprint(list(test.values())))


def _list_texts(example: Any) -> list[Any]:
    """What a person needs to see of an example; its dataclass marks what they do not."""
    shown = [field.name for field in fields(example) if field.metadata.get("is_shown", True)]
    values = [getattr(example, name) for name in shown if name not in ("id", "label", "where")]
    return [value for value in values if value not in (None, "")]


def _show(value: Any, between: str) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return between.join("(no answer)" if one == "" else str(one) for one in values) or "(none)"
