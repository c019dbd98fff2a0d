"""A model, a task and its data, as `litebert evaluate` is asked about them."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebert.inference.evaluation import Chosen
    from litebert.inference.predictor import Predictor
    from litebert.tasks.finetuning import Dataset


@dataclass(frozen=True)
class TaskRequest:
    """The words that `evaluate --task` reads."""

    checkpoint: str | os.PathLike[str]
    task: str | None  # None: the model's own
    data: Path
    split: str
    columns: dict[str, Any]  # of TableOptions
    computing: dict[str, Any] = field(default_factory=dict)  # of `litebert.load`
    out: Path | None = None
    as_json: bool = False

    def load(self, **more: Any) -> "Predictor":
        from litebert.inference.predictor import load

        return load(self.checkpoint, **(self.computing | more))

    def read(self, predictor: "Predictor") -> "tuple[Dataset, Chosen]":
        """The task's data, and the examples of the split that is asked for; tells what was guessed on the way."""
        from litebert.inference.evaluation import choose_examples, name_task, read_for
        from litebert.tasks.reading import TableOptions
        from litebert.tasks.seen_texts import find_seen_texts

        name = self.task or name_task(predictor.task, self.data)
        dataset = read_for(predictor, name, self.data, TableOptions(**self.columns))
        chosen = choose_examples(dataset, self.split, self.data, find_seen_texts(predictor.checkpoint.path))
        tell_notes(dataset)
        if chosen.note:
            print(chosen.note, file=sys.stderr)
        return dataset, chosen


def tell_notes(dataset: "Dataset") -> None:
    """What was guessed or left out while reading, where it does not mix with what is printed."""
    for note in dataset.notes:
        print(note, file=sys.stderr)
