"""Run an engine on groups of sequences: batches of similar length, early exit, and cancellation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.inference.engines.graphs import BATCH_COST, BatchEngine
from litebert.model.engine import HeadInputs, HeadName
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.group_batch import GroupBatch, build_group_batch
from litebert.tasks.groups import Group

Answer = TypeVar("Answer")


class Interrupted(Exception):
    """The computation was cancelled because the result is no longer needed."""


@dataclass(frozen=True)
class Session:
    """An engine and its settings. All predictions, evaluations and measurements are computed here.

    A session has the interface of an engine (`run`), so that a task can use either.
    """

    engine: BatchEngine
    pad_id: int
    patience: int = 0  # 0: compute all layers
    is_wanted: Callable[[], bool] | None = None  # called before each batch; False raises `Interrupted`
    report_layers: Callable[[Sequence[int]], object] | None = None  # called with the layers computed for each text

    def predict(
        self, task: FinetuneTask, groups: Sequence[Group], report: Callable[[int], None] = lambda _: None
    ) -> list[Output]:
        """A task's output for each group; `report` is called with the number done so far."""
        return self.answer(groups, lambda batch, chosen: task.predict(self, batch, chosen), report)

    def answer(
        self,
        groups: Sequence[Group],
        compute: Callable[[GroupBatch, Sequence[Group]], Sequence[Answer]],
        report: Callable[[int], None] = lambda _: None,
    ) -> list[Answer]:
        """The result of `compute` for each group, in the groups' order; it is called once per batch."""
        found: dict[int, Answer] = {}
        for numbers in plan_batches(groups, self.engine.batch_tokens, self.engine.batch_cost):
            chosen = [groups[number] for number in numbers]
            found |= zip(numbers, compute(build_group_batch(chosen, self.pad_id), chosen), strict=True)
            report(len(found))
        return [found[number] for number in range(len(groups))]

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head, computed in slices no larger than a batch may be.

        The windows of a long passage are one group, which is never split into several batches.
        """
        num_rows, width = inputs.token_ids.shape
        step = max(1, self.engine.batch_tokens // width)
        slices = []
        for start in range(0, num_rows, step):
            if self.is_wanted is not None and not self.is_wanted():
                raise Interrupted
            rows = slice(start, start + step)
            some = inputs._replace(
                token_ids=inputs.token_ids[rows],
                segment_ids=inputs.segment_ids[rows],
                mask=inputs.mask[rows],
                allowed=None if inputs.allowed is None else inputs.allowed[rows],
                patience=self.patience,
            )
            outputs = self.engine.run(head, some)
            if self.report_layers is not None and "layers" in outputs:
                self.report_layers(outputs["layers"].tolist())
            slices.append(outputs)
        return slices[0] if len(slices) == 1 else {name: torch.cat([one[name] for one in slices]) for name in slices[0]}


def plan_batches(groups: Sequence[Group], batch_tokens: int, batch_cost: int = BATCH_COST) -> Iterator[list[int]]:
    """The group numbers of each batch, longest first, so that running out of memory happens at the start or never.

    Texts of similar length share a batch. The grouping minimizes the number of computed tokens, padding included,
    where each batch costs an additional `batch_cost` tokens.
    """
    if len(groups) < 2:
        yield from ([0] for _ in groups)
        return
    widths: NDArray[np.int64] = np.array([group.width for group in groups], dtype=np.int64)
    sizes: NDArray[np.int64] = np.array([len(group.sequences) for group in groups], dtype=np.int64)
    order = np.argsort(-widths, kind="stable")
    firsts = np.flatnonzero(np.diff(widths[order], prepend=-1))  # the first group of each length, in that order
    before = np.concatenate([[0], np.cumsum(sizes[order])])[firsts]  # the number of longer sequences
    starts = _join_widths(widths[order][firsts], np.append(before, sizes.sum()), batch_tokens, batch_cost)
    for alike in np.split(order, firsts[starts[1:]]):
        batch: list[int] = []
        for number in alike.tolist():  # within the limit; a larger group gets a batch of its own
            if batch and widths[batch[0]] * (sizes[batch].sum() + sizes[number]) > batch_tokens:
                yield batch
                batch = []
            batch.append(number)
        yield batch


def _join_widths(widths: NDArray[np.int64], before: NDArray[np.int64], batch_tokens: int, batch_cost: int) -> list[int]:
    """Indices into the (descending) widths at which a new batch starts, for the lowest total cost.

    `before` has one more entry than widths: the number of wider sequences for each, and the total.
    """
    costs = np.zeros(len(widths) + 1, dtype=np.int64)  # the lowest cost of the widths up to here
    starts = [0] * (len(widths) + 1)  # where the last batch of those begins
    for end in range(1, len(widths) + 1):
        tokens = widths[:end] * (before[end] - before[:end])
        choices = costs[:end] + tokens + batch_cost * -(-tokens // batch_tokens)
        starts[end] = int(choices.argmin())
        costs[end] = choices[starts[end]]
    found, end = [], len(widths)
    while end:
        end = starts[end]
        found.append(end)
    return found[::-1]
