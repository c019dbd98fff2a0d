"""The interface of a fine-tuning task, which extends the training loop's: from examples to groups, and from a model's
outputs to answers and scores.

A task is a frozen dataclass; its fields are stored in the checkpoint and are sufficient to use the model.
Outputs are plain JSON values, one per group: they are written to files, averaged by ensembles, and decoded to
answers. Examples are instances of the task's own dataclass, in the order of the groups.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from litebert.model.engine import Engine
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer

Output = Any  # a JSON value: probabilities, a number, scored spans
Answer = Any  # a JSON value: a label, a number, a list of labels, a text


ONE_SIDED = 1.645  # standard errors below which 95 % of chance scores lie


class Chance(NamedTuple):
    """The score of answering without reading the input, and the margin by which a score may exceed it by chance."""

    score: float
    margin: float  # one-sided, 95 %


Rows = NDArray[Any]


class Tally(NamedTuple):
    """The basis of a split's scores: one row per example, and each score as a function of rows."""

    rows: Rows
    scores: Mapping[str, Callable[[Rows], float]]
    shares: frozenset[str] = frozenset()  # the scores that are a share of correct examples


class FinetuneTask(Task[GroupBatch], Protocol):
    """A task to fine-tune a model for."""

    @property
    def name(self) -> str:
        """The task's name: sst-2, squad2, or the kind for a user's own files."""
        ...

    @property
    def metric(self) -> str:
        """The name of the score that selects the model; higher is better."""
        ...

    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        """One group per example."""
        ...

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        """The output for each group of a batch."""
        ...

    def combine(self, outputs: Sequence[Output]) -> Output:
        """The output of an ensemble, from its members' outputs for one group."""
        ...

    def decide(self, output: Output) -> Answer:
        """The answer for the user: a label, a number or a text."""
        ...

    def score(self, outputs: Sequence[Output], examples: Sequence[Any]) -> dict[str, float]:
        """The official scores, including `metric`."""
        ...

    def wrongness(self, output: Output, example: Any) -> float:
        """How wrong the answer is, to sort errors by: 0 if it is right, higher for a more confident error."""
        ...

    def chance(self, examples: Sequence[Any]) -> Chance:
        """The value of `metric` without reading the input."""
        ...


class OwnTask(FinetuneTask, Protocol):
    """A user-defined task for `litebert.finetune`: a frozen dataclass that also reads its own files.

    Its inputs are single texts or pairs. Its class must be imported before its model can be loaded.
    """

    def read(self, path: Path, options: TableOptions) -> "Dataset":
        """The examples at a path, and the task completed from them, for example with their labels."""
        ...


@dataclass(frozen=True)
class Dataset:
    """A task and its examples by split, as returned by the task's reader."""

    task: FinetuneTask
    train: Sequence[Any]
    dev: Mapping[str, Sequence[Any]]  # usually {"dev": ...}; the first one selects the model
    test: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was guessed or skipped while reading, to show to the user

    @classmethod
    def of(cls, task: FinetuneTask, splits: Mapping[str, Sequence[Any]], notes: Sequence[str] = ()) -> Self:
        """The dataset with those of the splits train, dev and test that are present."""
        dev, test = ({name: splits[name]} if name in splits else {} for name in ("dev", "test"))
        return cls(task, splits.get("train", ()), dev, test, tuple(notes))


def fingerprint(splits: Sequence[Sequence[Any]]) -> str:
    """A hash of the content of examples, independent of their files' paths."""
    digest = hashlib.sha256()
    for split in splits:
        for example in split:
            digest.update(repr(replace(example, where="")).encode())
    return digest.hexdigest()
