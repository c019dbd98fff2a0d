"""Answers for many groups: computed in batches of like length, given back in the order they came."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.core.runtime import Runtime
from litebert.model.reading import Reader, ReadHead, ReadInputs
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.group_batch import GroupBatch, build_group_batch
from litebert.tasks.groups import Group

BATCH_TOKENS = 4096  # padding included, in one batch: enough to keep a CPU's caches busy, and no more
BATCH_COST = 48  # tokens that torch computes on two cores in the time that one batch more takes

Answer = TypeVar("Answer")


def compute_outputs(
    model: Reader,
    task: FinetuneTask,
    groups: Sequence[Group],
    runtime: Runtime,
    *,
    pad_id: int,
    batch_tokens: int = BATCH_TOKENS,
    batch_cost: int = BATCH_COST,
    report: Callable[[int], None] = lambda _: None,
) -> list[Output]:
    """A task's output for each group; `report` hears how many are done."""
    reader = InSlices(model, batch_tokens)

    def predict(batch: GroupBatch, chosen: Sequence[Group]) -> Sequence[Output]:
        is_reduced = runtime.dtype != torch.float32
        with torch.inference_mode(), torch.autocast(runtime.device.type, dtype=runtime.dtype, enabled=is_reduced):
            return task.predict(reader, batch.to(runtime.device), chosen)

    return answer_in_batches(
        groups, predict, pad_id=pad_id, batch_tokens=batch_tokens, batch_cost=batch_cost, report=report
    )


def answer_in_batches(
    groups: Sequence[Group],
    answer: Callable[[GroupBatch, Sequence[Group]], Sequence[Answer]],
    *,
    pad_id: int,
    batch_tokens: int = BATCH_TOKENS,
    batch_cost: int = BATCH_COST,
    report: Callable[[int], None] = lambda _: None,
) -> list[Answer]:
    """What `answer` gives for each group, in the groups' order."""
    found: dict[int, Answer] = {}
    for numbers in plan_batches(groups, batch_tokens, batch_cost):
        chosen = [groups[number] for number in numbers]
        found |= zip(numbers, answer(build_group_batch(chosen, pad_id), chosen), strict=True)
        report(len(found))
    return [found[number] for number in range(len(groups))]


@dataclass(frozen=True)
class InSlices:
    """A reader that never sees more tokens at once than a batch may have, though one group have more.

    The windows of a long passage are one group, which no batch divides.
    """

    reader: Reader
    batch_tokens: int

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        num_rows, width = inputs.token_ids.shape
        step = max(1, self.batch_tokens // width)
        if num_rows <= step:
            return self.reader.read(head, inputs)
        parts = [self.reader.read(head, _take_rows(inputs, slice(at, at + step))) for at in range(0, num_rows, step)]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _take_rows(inputs: ReadInputs, rows: slice) -> ReadInputs:
    return inputs._replace(
        token_ids=inputs.token_ids[rows],
        segment_ids=inputs.segment_ids[rows],
        mask=inputs.mask[rows],
        allowed=None if inputs.allowed is None else inputs.allowed[rows],
    )


def plan_batches(groups: Sequence[Group], batch_tokens: int, batch_cost: int = BATCH_COST) -> Iterator[list[int]]:
    """The numbers of the groups in each batch, the longest first, so that memory runs out at once or never.

    Texts of like length share a batch: which lengths do is what computes fewest tokens, padding included, where each
    batch counts as `batch_cost` tokens more.
    """
    if not groups:
        return
    widths: NDArray[np.int64] = np.array([group.width for group in groups], dtype=np.int64)
    sizes: NDArray[np.int64] = np.array([len(group.sequences) for group in groups], dtype=np.int64)
    order = np.argsort(-widths, kind="stable")
    firsts = np.flatnonzero(np.diff(widths[order], prepend=-1))  # in that order, the first group of each length
    before = np.concatenate([[0], np.cumsum(sizes[order])])[firsts]  # the sequences that are longer
    starts = _join_widths(widths[order][firsts], np.append(before, sizes.sum()), batch_tokens, batch_cost)
    for alike in np.split(order, firsts[starts[1:]]):
        yield from _cut(alike.tolist(), widths, sizes, batch_tokens)


def _join_widths(widths: NDArray[np.int64], before: NDArray[np.int64], batch_tokens: int, batch_cost: int) -> list[int]:
    """Where among the widths, which fall, a new batch begins, so that the whole costs least.

    `before` has one number more than there are widths: of the sequences that are wider than each, and of all.
    """
    costs = np.zeros(len(widths) + 1, dtype=np.int64)  # of the widths up to here, at best
    starts = [0] * (len(widths) + 1)  # of the last batch of those
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


def _cut(
    numbers: Sequence[int], widths: NDArray[np.int64], sizes: NDArray[np.int64], batch_tokens: int
) -> Iterator[list[int]]:
    """Groups of like length in batches within the limit; a group that is larger has one of its own."""
    batch: list[int] = []
    for number in numbers:
        if batch and widths[batch[0]] * (sizes[batch].sum() + sizes[number]) > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    yield batch
