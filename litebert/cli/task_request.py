"""What the command line says of a model, a task and its data."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litebert.infer.predictor import Predictor
    from litebert.tasks.finetuning import Dataset


@dataclass(frozen=True)
class TaskRequest:
    """The words that `evaluate --task` reads."""

    checkpoint: Path
    task: str
    data: Path
    split: str
    columns: dict[str, Any]  # of TableOptions
    computing: dict[str, Any] = field(default_factory=dict)  # of `litebert.load`
    out: Path | None = None
    as_json: bool = False

    def load(self, **more: Any) -> "Predictor":
        from litebert.infer.predictor import load

        return load(self.checkpoint, **(self.computing | more))

    def read(self, predictor: "Predictor") -> "tuple[Dataset, Sequence[Any]]":
        """The task's data, and the examples of the split that is asked for."""
        from litebert.infer.evaluation import choose_examples, read_for
        from litebert.tasks.reading import TableOptions

        dataset = read_for(predictor, self.task, self.data, TableOptions(**self.columns))
        return dataset, choose_examples(dataset, self.split, self.data)
