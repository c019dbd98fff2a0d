"""The tasks of `transfer.py`, and the examples that each uses for training and testing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

BEGINNINGS = {"random": "random weights", "pretrained": "pre-trained"}
CONTROL = "longer"  # random weights with longer training, in case they only lacked time
TIMES_LONGER = 3


@dataclass(frozen=True)
class Case:
    """A task, the location of its data, its number of epochs, and the share of its examples that is used."""

    name: str
    title: str
    task: str
    data: str
    epochs: int
    has_control: bool = False
    share: float = 1.0

    @property
    def beginnings(self) -> tuple[str, ...]:
        return (*BEGINNINGS, *([CONTROL] if self.has_control else []))


# Ordered as in the papers' tables: single sentences, similarity, inference, reading comprehension.
CASES = (
    Case("sst-2", "SST-2", "sst-2", "glue", 1),
    Case("cola", "CoLA", "cola", "glue", 5, has_control=True),
    Case("mrpc", "MRPC", "mrpc", "glue", 5),
    Case("sts-b", "STS-B", "sts-b", "glue", 5),
    Case("qqp", "QQP (sample)", "qqp", "pairs", 4),
    Case("mnli", "MNLI (sample)", "mnli", "pairs", 4),
    Case("qnli", "QNLI (sample)", "qnli", "pairs", 4),
    Case("rte", "RTE", "rte", "glue", 5),
    Case("squad", "SQuAD 1.1 by article", "squad-v1", "squad/dev-v1.1.json", 1),
)


def scale_dataset(dataset: Any, share: float) -> Any:
    """The dataset with a share of its examples, always the same ones; MNLI's first dev split."""
    name, dev = next(iter(dataset.dev.items()))
    train, dev = (draw(rows, max(16, round(len(rows) * share))) for rows in (dataset.train, dev))
    return replace(dataset, train=train, dev={name: dev}, test={}, notes=())


def draw(rows: Sequence[Any], count: int) -> list[Any]:
    """At most this many of the rows in their order, always the same.

    The questions about one paragraph are kept together, and at least one paragraph is drawn.
    """
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(getattr(row, "context", number), []).append(number)
    members = list(groups.values())
    chosen: list[int] = []
    for place in np.random.default_rng(0).permutation(len(members)):
        if chosen and len(chosen) + len(members[place]) > count:
            break
        chosen += members[place]
    return [rows[number] for number in sorted(chosen)]
