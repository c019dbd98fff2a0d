"""The tasks of `transfer.py`, and which of their examples are used for what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

BEGINNINGS = {"random": "random weights", "pretrained": "pre-trained"}
CONTROL = "longer"  # random weights again, which may only have had too little time
TIMES_LONGER = 3
HELD_OUT = 0.1  # of the training examples, to choose a learning rate by


@dataclass(frozen=True)
class Case:
    """A task, where its data lies, how often it is read, and which share of its examples is used."""

    name: str
    title: str
    task: str
    data: str
    epochs: int
    has_control: bool = False
    share: float = 1.0


# Ordered as the papers' tables: single sentences, likeness, inference, reading.
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
    """At most so many of the rows in their order, always the same.

    Questions about one paragraph come together or not at all, and one paragraph comes in any case.
    """
    chosen: list[int] = []
    for group in _shuffle_groups(rows, "context", seed=0):
        if chosen and len(chosen) + len(group) > count:
            break
        chosen += group
    return [rows[number] for number in sorted(chosen)]


def hold_out(rows: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The rows but a tenth, and that tenth, always the same; questions about one article are on one side."""
    groups = _shuffle_groups(rows, "article", seed=1)
    assert len(groups) > 1, "of one article nothing can be held out"
    held: set[int] = set()
    for group in groups[:-1]:
        if len(held) >= HELD_OUT * len(rows):
            break
        held |= set(group)
    kept = [row for number, row in enumerate(rows) if number not in held]
    return kept, [rows[number] for number in sorted(held)]


def _shuffle_groups(rows: Sequence[Any], by: str, *, seed: int) -> list[list[int]]:
    """The numbers of the rows that have the same `by`, in any order; a row that knows no such thing stands alone."""
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(getattr(row, by, number), []).append(number)
    members = list(groups.values())
    return [members[place] for place in np.random.default_rng(seed).permutation(len(members))]
