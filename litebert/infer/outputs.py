"""Answers for many groups: computed in batches of like length, given back in the order they came."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.core.runtime import Runtime
from litebert.data.group_batch import GroupBatch, build_group_batch
from litebert.data.groups import Group
from litebert.model.reading import Reader, ReadHead, ReadInputs
from litebert.tasks.finetuning import FinetuneTask, Output

BATCH_TOKENS = 4096  # padding included, in one batch: enough to keep a CPU's caches busy, and no more
# A batch of so many tokens computes each about as fast as a larger one: it takes no text that is much shorter.
FAST_TOKENS = 256
MUCH_SHORTER = 0.9  # of the batch's width

Answer = TypeVar("Answer")


def compute_outputs(
    model: Reader,
    task: FinetuneTask,
    groups: Sequence[Group],
    runtime: Runtime,
    *,
    pad_id: int,
    batch_tokens: int = BATCH_TOKENS,
    report: Callable[[int], None] = lambda _: None,
) -> list[Output]:
    """A task's output for each group; `report` hears how many are done."""
    reader = InSlices(model, batch_tokens)

    def predict(batch: GroupBatch, chosen: Sequence[Group]) -> Sequence[Output]:
        is_reduced = runtime.dtype != torch.float32
        with torch.inference_mode(), torch.autocast(runtime.device.type, dtype=runtime.dtype, enabled=is_reduced):
            return task.predict(reader, batch.to(runtime.device), chosen)

    return answer_in_batches(groups, predict, pad_id=pad_id, batch_tokens=batch_tokens, report=report)


def answer_in_batches(
    groups: Sequence[Group],
    answer: Callable[[GroupBatch, Sequence[Group]], Sequence[Answer]],
    *,
    pad_id: int,
    batch_tokens: int = BATCH_TOKENS,
    report: Callable[[int], None] = lambda _: None,
) -> list[Answer]:
    """What `answer` gives for each group, in the groups' order."""
    found: dict[int, Answer] = {}
    for numbers in plan_batches(groups, batch_tokens):
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


def plan_batches(groups: Sequence[Group], batch_tokens: int) -> Iterator[list[int]]:
    """The numbers of the groups in each batch, the longest first, so that memory runs out at once or never.

    Texts of like length share a batch, so that little is padded: of SST-2's lengths 6 % where full batches pad 55 %.
    """
    widths: NDArray[np.int64] = np.array([group.width for group in groups], dtype=np.int64)
    batch: list[int] = []
    width = num_sequences = 0
    for number in np.argsort(-widths, kind="stable").tolist():
        size = len(groups[number].sequences)
        is_full = (num_sequences + size) * width > batch_tokens
        is_other = num_sequences * width >= FAST_TOKENS and int(widths[number]) < MUCH_SHORTER * width
        if batch and (is_full or is_other):
            yield batch
            batch, num_sequences = [], 0
        width = width if batch else int(widths[number])
        batch.append(number)
        num_sequences += size
    if batch:
        yield batch
