"""The arguments of a task evaluation: a model, a task and its data."""

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
    """The arguments of `litebert.evaluate` for a task's data."""

    checkpoint: str | os.PathLike[str]
    task: str | None  # None: the model's own
    data: Path
    split: str
    columns: dict[str, Any]  # fields of TableOptions
    computing: dict[str, Any] = field(default_factory=dict)  # options of `litebert.load`

    def load(self, **more: Any) -> "Predictor":
        from litebert.inference.predictor import load

        predictor = load(self.checkpoint, **(self.computing | more))
        # any model makes vectors, which can be scored before it was trained to
        is_embedder = self.task == "embedding" and predictor.checkpoint.task is None
        return predictor.as_embedder() if is_embedder else predictor

    def read(self, predictor: "Predictor") -> "tuple[Dataset, Chosen]":
        """The task's data and the examples of the requested split; prints notes about what was guessed."""
        from litebert.inference.evaluation import choose_examples, name_task, read_for
        from litebert.tasks.files.reading import TableOptions
        from litebert.tasks.seen_texts import find_seen_texts

        name = self.task or name_task(predictor.task, self.data)
        dataset = read_for(predictor, name, self.data, TableOptions(**self.columns))
        chosen = choose_examples(dataset, self.split, self.data, find_seen_texts(predictor.checkpoint.path))
        tell_notes(dataset)
        if chosen.note:
            print(chosen.note, file=sys.stderr)
        return dataset, chosen


def tell_notes(dataset: "Dataset") -> None:
    """Print notes about guesses and skipped rows to standard error, apart from the results."""
    for note in dataset.notes:
        print(note, file=sys.stderr)
