"""A model's outputs for many groups: computed in batches of like length, given back in the order they came."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.core.runtime import Runtime
from litebert.data.group_batch import build_group_batch
from litebert.data.groups import Group
from litebert.model.reading import Reader
from litebert.tasks.finetuning import FinetuneTask, Output

BATCH_TOKENS = 4096  # padding included, in one batch: enough to keep a CPU's caches busy, and no more
# A batch of so many tokens computes each about as fast as a larger one: it takes no text that is much shorter.
FAST_TOKENS = 256
MUCH_SHORTER = 0.9  # of the batch's width


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
    """The output for each group; `report` hears how many are done."""
    outputs: list[Output] = [None] * len(groups)
    done = 0
    for numbers in plan_batches(groups, batch_tokens):
        chosen = [groups[number] for number in numbers]
        batch = build_group_batch(chosen, pad_id).to(runtime.device)
        is_reduced = runtime.dtype != torch.float32
        with torch.inference_mode(), torch.autocast(runtime.device.type, dtype=runtime.dtype, enabled=is_reduced):
            for number, output in zip(numbers, task.predict(model, batch, chosen), strict=True):
                outputs[number] = output
        done += len(chosen)
        report(done)
    return outputs


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
