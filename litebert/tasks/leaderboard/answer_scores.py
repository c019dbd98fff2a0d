"""Scores the answers in a file, from any model or person: matched by id, for any task with labelled data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.files.delimited import read_delimited
from litebert.tasks.files.glue import GLUE
from litebert.tasks.files.tables import read_text
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.embedding import Embedding
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.report import describe_split, learn_baseline
from litebert.tasks.squad.task import SpanTask


def read_answers(path: Path) -> dict[str, Any]:
    """Read answers by id: JSON lines with `id` and `answer`, a JSON object, or GLUE's table of index and prediction."""
    text = read_text(path, "utf-8")
    try:
        if path.suffix == ".json":
            pairs = list(json.loads(text).items())
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
            pairs = [(str(row["id"]), row["answer"]) for row in rows]
        else:
            (_, header), *lines = read_delimited(path, text).lines
            if len(header) != 2:
                raise DataError(
                    "bad-answers", f"{path}: expected two columns (id and answer), but line 1 has {len(header)}"
                )
            wrong = next((line for line in lines if len(line.cells) != 2), None)
            if wrong is not None:
                raise DataError(
                    "ragged-row", f"{path}:{wrong.number}: expected an id and an answer, got {len(wrong.cells)} cells"
                )
            pairs = [(line.cells[0], line.cells[1]) for line in lines]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise DataError(
            "bad-answers",
            f"{path}: not an answers file ({error!r}); expected JSON lines with id and answer, a JSON object that "
            f"maps ids to answers, or a table with two columns",
        ) from None
    answers = dict(pairs)
    if len(answers) < len(pairs):
        raise DataError(
            "duplicate-id", f"{path}: two of its {len(pairs):,} answers have the same id; give one answer per example"
        )
    return answers


def score_answers(
    dataset: Dataset,
    examples: Sequence[Any],
    answers: Mapping[str, Any],
    *,
    where: str,
    to_learn: Sequence[Any] = (),
) -> dict[str, Any]:
    """The report of a split, from given answers instead of a model's outputs; the baseline is trained on `to_learn`."""
    if isinstance(dataset.task, Embedding):
        raise ConfigError(
            "unsupported-task",
            f"task {dataset.task.name} is scored by vectors, which a file of answers does not have: evaluate the model",
            option="task",
        )
    missing = [example.id for example in examples if example.id not in answers]
    unknown = sorted(set(answers) - {example.id for example in examples})
    if missing or unknown:
        which = f"no answer for '{missing[0]}'" if missing else f"no example with id '{unknown[0]}'"
        raise DataError(
            "answers-mismatch",
            f"{where}: {len(missing):,} of {len(examples):,} examples have no answer, and {len(unknown):,} answers "
            f"match no example ({which}); are these the answers to this split?",
        )
    task = _with_answered_labels(dataset.task, answers, where)
    outputs = [_to_output(task, answers[example.id], example, f"{where}: '{example.id}'") for example in examples]
    return describe_split(task, outputs, examples, learn_baseline(task, to_learn))


def _with_answered_labels(task: FinetuneTask, answers: Mapping[str, Any], where: str) -> FinetuneTask:
    """The task with the labels that occur only in the answers, so that these count as wrong instead of raising."""
    if isinstance(task, SpanTask):
        return replace(task, threshold=0.0)  # an empty answer means no answer
    if not isinstance(task, Classification | MultiLabel | TokenTags):
        return task
    words = [word for one in answers.values() for word in (one if isinstance(one, list) else [one])]
    new = sorted({str(word) for word in words} - set(task.labels))
    if new and task.name in GLUE:
        raise DataError(
            "unknown-label",
            f"{where}: '{new[0]}' is not a label of {task.name}; its labels are {', '.join(task.labels)}",
        )
    return replace(task, labels=(*task.labels, *new))


def _to_output(task: FinetuneTask, answer: Any, example: Any, where: str) -> Output:
    """An output that the task decodes to this answer."""
    try:
        if isinstance(task, Regression):
            return float(answer)
        if isinstance(task, SpanTask):
            assert isinstance(answer, str)
            return {"spans": [[answer, 0, len(answer), 1.0, 0.0, 0.0]], "null_odds": -1.0 if answer else 1.0}
        if isinstance(task, MultiLabel):
            assert isinstance(answer, list)
            return [float(label in answer) for label in task.labels]
        if isinstance(task, TokenTags):
            assert len(answer) == len(example.words)
            return [[float(label == tag) for label in task.labels] for tag in answer]
        if isinstance(task, Choices):
            names = [(number, str(number), chr(ord("A") + number)) for number in range(len(example.choices))]
            assert sum(answer in one for one in names) == 1
            return [float(answer in one) for one in names]
    except (AssertionError, ValueError, TypeError):
        raise DataError(
            "bad-answers", f"{where}: {json.dumps(answer)[:60]} is not a valid answer for {task.name}"
        ) from None
    assert isinstance(task, Classification), task
    return [float(label == str(answer)) for label in task.labels]
