"""What is handed in for SQuAD and RACE: one JSON object from question ids to answers, and what would be rejected."""

import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import write_json
from litebert.tasks.catalog import read_dataset
from litebert.tasks.choices import ChoiceExample, Choices
from litebert.tasks.predictions import Prediction, predictions_file, read_predictions
from litebert.tasks.reading import TableOptions
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask


def write_answer_sheet(run: Path, split: str, path: Path) -> None:
    """The answers of a run or an ensemble to one split."""
    write_json(path, to_sheet(read_predictions(predictions_file(run, split))))


def to_sheet(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The answers by the ids of their questions."""
    sheet = {one.id: one.answer for one in predictions}
    if len(sheet) < len(predictions):
        ids = [one.id for one in predictions]
        twice = next(id_ for number, id_ in enumerate(ids) if id_ in ids[:number])
        raise DataError(
            f"two examples have the id '{twice}', and a sheet has one answer for each: write .jsonl instead"
        )
    return sheet


class Questions(NamedTuple):
    """What a sheet is to answer."""

    task: SpanTask | Choices
    examples: Sequence[Any]


def read_questions(task: str, data: Path, split: str) -> Questions:
    """The questions of a split in a folder, or of a file."""
    dataset = read_dataset(task, data, TableOptions(dev_share=0.0))
    if not isinstance(dataset.task, SpanTask | Choices):
        raise ConfigError(f"--task {task}: sheets of answers are SQuAD's and those of multiple choice")
    splits = {"train": dataset.train, **dataset.dev, **dataset.test}
    name = "train" if data.is_file() else split
    if not splits.get(name):
        raise ConfigError(f"the data has no split '{name}', but {', '.join(n for n, rows in splits.items() if rows)}")
    return Questions(dataset.task, splits[name])


def check_answer_sheet(path: Path, questions: Questions) -> list[str]:
    """What the official script or the leaderboard would reject, a line each; nothing if it would take it."""
    answers = _read_object(path)
    if isinstance(questions.task, SpanTask):
        return check_spans(answers, questions.examples, allows_none=questions.task.version == "2.0")
    return check_choices(answers, questions.examples)


def check_spans(answers: Mapping[str, Any], questions: Sequence[Question], *, allows_none: bool) -> list[str]:
    """What is wrong with the answers to SQuAD's questions."""
    problems = _compare_ids(answers, questions)
    for question in questions:
        answer = answers.get(question.id, question.context)
        if not isinstance(answer, str):
            problems.append(f"the answer to '{question.id}' is {json.dumps(answer)[:40]}, not a text")
        elif not answer and not allows_none:
            problems.append(f"the answer to '{question.id}' is empty, and SQuAD 1.1 knows no question without one")
        elif answer not in question.context:
            problems.append(f"the answer to '{question.id}', '{answer[:40]}', is not in its paragraph")
    return problems


def check_choices(answers: Mapping[str, Any], examples: Sequence[ChoiceExample]) -> list[str]:
    """What is wrong with the answers to multiple-choice questions: letters, or numbers from 0."""
    problems = _compare_ids(answers, examples)
    for example in examples:
        valid = [*string.ascii_uppercase[: len(example.choices)], *range(len(example.choices))]
        answer = answers.get(example.id, 0)
        if isinstance(answer, bool) or answer not in valid:
            problems.append(f"the answer to '{example.id}' is {json.dumps(answer)[:40]}, none of its choices")
    return problems


def _compare_ids(answers: Mapping[str, Any], asked: Sequence[Question] | Sequence[ChoiceExample]) -> list[str]:
    ids = {one.id for one in asked}
    missing = [f"question '{one.id}' is not answered" for one in asked if one.id not in answers]
    return missing + [f"'{id_}' is not the id of a question" for id_ in answers if id_ not in ids]


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; expected a JSON file of answers") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object from question ids to answers")
    return content
