"""Writes and checks answer files for SQuAD and RACE: a JSON object that maps question ids to answers."""

import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import parse_json_value
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.predictions import Prediction, predictions_file, read_predictions
from litebert.tasks.report import read_report
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask


def to_sheet(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The answers, by question id."""
    sheet = {one.id: one.answer for one in predictions}
    if len(sheet) < len(predictions):
        ids = [one.id for one in predictions]
        twice = next(id_ for number, id_ in enumerate(ids) if id_ in ids[:number])
        raise DataError(
            "duplicate-id",
            f"two examples have the id '{twice}', but an answer file has one answer per id; write .jsonl instead",
        )
    return sheet


class Questions(NamedTuple):
    """The questions that an answer file must cover."""

    task: SpanTask | Choices
    examples: Sequence[Any]


def read_questions(task: str, data: Path, split: str) -> Questions:
    """Read the questions of a file, or of a split in a folder."""
    dataset = read_dataset(task, data, TableOptions(dev_share=0.0))
    if not isinstance(dataset.task, SpanTask | Choices):
        raise ConfigError(
            "wrong-task", f"task {task} has no answer file: only SQuAD and multiple choice have one", option="task"
        )
    splits = {"train": dataset.train, **dataset.dev, **dataset.test}
    name = "train" if data.is_file() else split
    if not splits.get(name):
        raise ConfigError(
            "empty-split",
            f"the data has no split '{name}'; it has {', '.join(n for n, rows in splits.items() if rows)}",
        )
    return Questions(dataset.task, splits[name])


def keep_held_out(questions: Questions, run: Path, split: str) -> Questions:
    """For a run's training file, the questions that the run held out of it; for any other file, all questions."""
    num_learned = read_report(run).get("values", {}).get("job", {}).get("num_train")
    answered = {one.id for one in read_predictions(predictions_file(run, split))}
    held = [question for question in questions.examples if question.id in answered]
    is_rest = num_learned is not None and len(held) == len(answered) == len(questions.examples) - num_learned
    return questions._replace(examples=held) if is_rest else questions


class Findings(NamedTuple):
    """What is wrong with a submission: problems must be fixed, warnings are accepted."""

    problems: list[str]
    warnings: list[str]


def check_answer_sheet(path: Path, questions: Questions) -> Findings:
    """Problems are missing answers and whatever the official script rejects; warnings are mistakes that it accepts."""
    answers = _read_object(path)
    if isinstance(questions.task, SpanTask):
        return check_spans(answers, questions.examples, allows_none=questions.task.version == "2.0")
    return check_choices(answers, questions.examples)


def check_spans(answers: Mapping[str, Any], questions: Sequence[Question], *, allows_none: bool) -> Findings:
    """Check the answers to SQuAD questions."""
    problems, warnings = _compare_ids(answers, questions)
    for question in questions:
        answer = answers.get(question.id, question.context)
        if not isinstance(answer, str):
            problems.append(f"the answer to '{question.id}' is {json.dumps(answer)[:40]}, not text")
        elif not answer and not allows_none:
            which = f"the answer to '{question.id}' is empty"
            warnings.append(f"{which}; every SQuAD 1.1 question has an answer, so it counts as wrong")
        elif answer not in question.context:
            which = f"the answer to '{question.id}', '{answer[:40]}',"
            warnings.append(f"{which} does not occur in its paragraph; it is scored anyway")
    return Findings(problems, warnings)


def check_choices(answers: Mapping[str, Any], examples: Sequence[ChoiceExample]) -> Findings:
    """Check the answers to multiple-choice questions, which are letters or numbers from 0."""
    problems, warnings = _compare_ids(answers, examples)
    for example in examples:
        valid = [*string.ascii_uppercase[: len(example.choices)], *range(len(example.choices))]
        answer = answers.get(example.id, 0)
        if isinstance(answer, bool) or answer not in valid:
            problems.append(
                f"the answer to '{example.id}' is {json.dumps(answer)[:40]}, which is not one of its choices"
            )
    return Findings(problems, warnings)


def _compare_ids(answers: Mapping[str, Any], asked: Sequence[Question] | Sequence[ChoiceExample]) -> Findings:
    ids = {one.id for one in asked}
    missing = [f"no answer for question '{one.id}'" for one in asked if one.id not in answers]
    return Findings(
        missing, [f"no question has the id '{id_}'; its answer is ignored" for id_ in answers if id_ not in ids]
    )


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = parse_json_value(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError("missing-file", f"{path}: {error.strerror}; expected a JSON file of answers") from error
    if not isinstance(content, dict):
        raise DataError("bad-answers", f"{path}: expected a JSON object that maps question ids to answers")
    return content
