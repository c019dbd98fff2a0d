"""The interface of a fine-tuning task, in addition to the training loop's: from examples to groups, and from a model's
outputs to answers and scores.

A task is a frozen dataclass; its fields are stored in the checkpoint and are all that is needed to use the model.
Outputs are plain JSON values, one for each group: they are written to files, averaged by ensembles, and turned into
answers. Examples are the task's own dataclass, as its reader made them, in the order of the groups.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from litebert.model.engine import Engine
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.reading import TableOptions
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer

Output = Any  # a JSON value: probabilities, a number, scored spans
Answer = Any  # a JSON value: a label, a number, a list of labels, a text


ONE_SIDED = 1.645  # standard errors that 95 % of lucky scores stay below


class Chance(NamedTuple):
    """What an answer that ignores the input would score, and by how much a score may exceed it by luck alone."""

    score: float
    margin: float  # one-sided, 95 %


Rows = NDArray[Any]


class Tally(NamedTuple):
    """What the scores of a split are computed from: a row for each example, and each score as a function of rows."""

    rows: Rows
    scores: Mapping[str, Callable[[Rows], float]]
    shares: frozenset[str] = frozenset()  # the scores that are the share of examples that are right


class FinetuneTask(Task[GroupBatch], Protocol):
    """Something to fine-tune a model for."""

    @property
    def name(self) -> str:
        """Which task: sst-2, squad2, or the kind for a user's own files."""
        ...

    @property
    def metric(self) -> str:
        """The name of the score by which models are chosen; more is better."""
        ...

    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        """One group for each example."""
        ...

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        """The output for each group of a batch."""
        ...

    def combine(self, outputs: Sequence[Output]) -> Output:
        """The output of an ensemble whose members gave these for one group."""
        ...

    def decide(self, output: Output) -> Answer:
        """The answer as the user sees it: a label, a number or a text."""
        ...

    def score(self, outputs: Sequence[Output], examples: Sequence[Any]) -> dict[str, float]:
        """The official scores, `metric` among them."""
        ...

    def wrongness(self, output: Output, example: Any) -> float:
        """How wrong the answer is, to sort errors by: 0 where it is right, more for a surer error."""
        ...

    def chance(self, examples: Sequence[Any]) -> Chance:
        """What `metric` would be without reading the input."""
        ...


class OwnTask(FinetuneTask, Protocol):
    """A task that `litebert.finetune` is given instead of a name: a frozen dataclass that also reads its own files.

    It is asked single texts or pairs, and its model is loaded where its class has been imported.
    """

    def read(self, path: Path, options: TableOptions) -> "Dataset":
        """The examples at a path, and the task with what it found out about them, such as the labels."""
        ...


@dataclass(frozen=True)
class Dataset:
    """A task and its examples by split; what a task's own reader makes of files."""

    task: FinetuneTask
    train: Sequence[Any]
    dev: Mapping[str, Sequence[Any]]  # usually {"dev": ...}; the first one chooses the model
    test: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was guessed or left out while reading, for the person to see

    @classmethod
    def of(cls, task: FinetuneTask, splits: Mapping[str, Sequence[Any]], notes: Sequence[str] = ()) -> Self:
        """The dataset of splits called train, dev and test, as many of them as there are."""
        dev, test = ({name: splits[name]} if name in splits else {} for name in ("dev", "test"))
        return cls(task, splits.get("train", ()), dev, test, tuple(notes))


def fingerprint(splits: Sequence[Sequence[Any]]) -> str:
    """A hash of the content of examples, wherever their files are."""
    digest = hashlib.sha256()
    for split in splits:
        for example in split:
            digest.update(repr(replace(example, where="")).encode())
    return digest.hexdigest()
