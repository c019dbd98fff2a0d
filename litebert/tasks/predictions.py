"""Files with a model's outputs, one line per example: the input of ensembles and submissions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, parse_json
from litebert.tasks.finetuning import Answer, FinetuneTask, Output

PREDICTIONS = "predictions"  # the folder of a run with one file per split


@dataclass(frozen=True)
class Prediction:
    """The answer to one example; `label` is the right one, if known."""

    id: str
    answer: Answer
    output: Output
    label: Any = None


def predictions_file(run: Path, split: str) -> Path:
    return run / PREDICTIONS / f"{split}.jsonl"


def predict_answers(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> list[Prediction]:
    """One prediction per example."""
    return [
        Prediction(example.id, task.decide(output), output, example.label)
        for output, example in zip(outputs, examples, strict=True)
    ]


def write_predictions(path: Path, predictions: Sequence[Prediction]) -> None:
    """Write one JSON line per prediction, without `label` if it is unknown."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for one in predictions:
            record = {"id": one.id, "answer": one.answer, "output": one.output}
            if one.label is not None:
                record["label"] = one.label
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_predictions(path: Path) -> list[Prediction]:
    """Read the predictions of a file."""
    if not path.is_file():
        raise DataError(
            "missing-file", f"{path}: no such file; is {path.parent.parent} a finished fine-tuning run with this split?"
        )
    predictions = []
    # not splitlines(): a text may contain U+2028, which JSON does not escape
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
    """Whether these predictions are for these examples: ids are equal, and so are right answers known to both sides.

    Ids alone are insufficient: in files without ids they are row numbers, equal for all files of the same length.
    """
    return [one.id for one in predictions] == [example.id for example in examples] and all(
        one.label is None or example.label is None or one.label == json.loads(json.dumps(example.label))
        for one, example in zip(predictions, examples, strict=True)
    )
