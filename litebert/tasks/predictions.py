"""A model's outputs in a file, a line for each example: what ensembles and submissions are made of."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, parse_json
from litebert.tasks.finetuning import Answer, FinetuneTask, Output

PREDICTIONS = "predictions"  # the folder of a run that has them, a file for each split


@dataclass(frozen=True)
class Prediction:
    """One example's answer; `label` is the right one where it is known."""

    id: str
    answer: Answer
    output: Output
    label: Any = None


def predictions_file(run: Path, split: str) -> Path:
    return run / PREDICTIONS / f"{split}.jsonl"


def predict_answers(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> list[Prediction]:
    """The prediction for each example."""
    return [
        Prediction(example.id, task.decide(output), output, example.label)
        for output, example in zip(outputs, examples, strict=True)
    ]


def write_predictions(path: Path, predictions: Sequence[Prediction]) -> None:
    """A JSON line for each prediction; the label is left out where it is not known."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for one in predictions:
            record = {"id": one.id, "answer": one.answer, "output": one.output}
            if one.label is not None:
                record["label"] = one.label
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file."""
    if not path.is_file():
        raise DataError(
            "missing-file", f"{path}: no such file; is {path.parent.parent} a finished fine-tuning run with this split?"
        )
    predictions = []
    # not splitlines(): a text may hold U+2028, which JSON does not escape
    for number, line in enumerate(path.read_bytes().removesuffix(b"\n").split(b"\n"), start=1):
        try:
            facts = parse_json(line, f"{path}:{number}")
            predictions.append(Prediction(**facts))
        except TypeError as error:
            raise DataError("corrupt-file", f"{path}:{number}: not a prediction ({error})") from None
        if not isinstance(facts["id"], str):
            raise DataError("corrupt-file", f'{path}:{number}: not a prediction ("id" is not text)')
    return predictions


def are_of(predictions: Sequence[Prediction], examples: Sequence[Any]) -> bool:
    """Whether these examples were answered: by their ids, and by the right answers where both sides know them.

    In files without ids the rows are counted, so that ids alone would take any file of the same length.
    """
    return [one.id for one in predictions] == [example.id for example in examples] and all(
        one.label is None or example.label is None or one.label == json.loads(json.dumps(example.label))
        for one, example in zip(predictions, examples, strict=True)
    )
