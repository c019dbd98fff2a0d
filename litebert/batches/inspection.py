"""Looking at batches: single sequences with the reasons for their masks, and the statistics of many batches."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.masking import ACTIONS
from litebert.batches.rows import Rows, SpecialIds
from litebert.batches.stream import Stream
from litebert.core.progress import ProgressBar


class MaskedGroup(NamedTuple):
    """Words that were chosen together."""

    num_words: int
    positions: tuple[int, ...]  # in the sequence
    actions: tuple[str, ...]  # one of ACTIONS for each position


@dataclass(frozen=True)
class Example:
    """One sequence of a batch, before and after masking."""

    original_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    segment_ids: tuple[int, ...]
    groups: tuple[MaskedGroup, ...]  # in the order of their places
    label: int  # -1 without a sentence task
    is_lead: bool


def read_examples(rows: Rows, *, limit: int | None = None) -> list[Example]:
    """The sequences of a batch one by one; only the first ones with a limit."""
    targets, starts = rows.targets, rows.layout.starts
    original = rows.token_ids.reshape(-1).copy()
    original[targets.positions] = targets.labels
    owner = np.searchsorted(starts, targets.positions, "right") - 1
    examples = []
    for number, (start, length) in enumerate(zip(starts[:limit], rows.layout.lengths[:limit], strict=True)):
        place = slice(start, start + length)
        examples.append(
            Example(
                original_ids=tuple(original[place].tolist()),
                token_ids=tuple(rows.token_ids.reshape(-1)[place].tolist()),
                segment_ids=tuple(rows.segment_ids.reshape(-1)[place].tolist()),
                groups=_read_groups(rows, np.flatnonzero(owner == number), int(start)),
                label=int(rows.labels[number]),
                is_lead=bool(rows.is_lead[number]),
            )
        )
    return examples


def _read_groups(rows: Rows, chosen: NDArray[np.int64], start: int) -> tuple[MaskedGroup, ...]:
    targets = rows.targets
    members: dict[int, list[int]] = {}
    for k in chosen.tolist():
        members.setdefault(int(targets.groups[k]), []).append(k)
    return tuple(
        MaskedGroup(
            int(targets.sizes[own[0]]),
            tuple(int(targets.positions[k]) - start for k in own),
            tuple(ACTIONS[targets.actions[k]] for k in own),
        )
        for own in members.values()
    )


@dataclass(frozen=True)
class StreamStatistics:
    """What a number of batches held."""

    num_batches: int
    num_sequences: int
    num_tokens: int  # without padding
    num_special: int
    num_positions: int  # with padding
    num_targets: int
    label_counts: tuple[int, ...]  # empty without a sentence task
    lead_share: float
    group_counts: tuple[int, ...]  # how many groups of 1, 2, ... words
    action_counts: tuple[int, ...]  # in the order of ACTIONS
    elapsed_seconds: float

    @property
    def masked_share(self) -> float:
        """Of the tokens of text."""
        return self.num_targets / (self.num_tokens - self.num_special)

    @property
    def padding_efficiency(self) -> float:
        return self.num_tokens / self.num_positions


def measure_batches(stream: Stream, num_batches: int) -> StreamStatistics:
    """Make the first batches of a stream on one thread, and count what is in them."""
    stream.rows(0)  # plans and compiles
    elapsed, batches = 0.0, []
    with ProgressBar("making batches", total=num_batches, unit="batches", scale=1) as progress:
        for step in range(num_batches):
            started_at = time.perf_counter()
            rows = stream.rows(step)
            elapsed += time.perf_counter() - started_at
            batches.append(_count(rows, stream.special))
            progress.move_to(step + 1)
    labels = np.concatenate([counts.labels for counts in batches])
    return StreamStatistics(
        num_batches=num_batches,
        num_sequences=len(labels),
        num_tokens=sum(counts.num_tokens for counts in batches),
        num_special=sum(counts.num_special for counts in batches),
        num_positions=sum(counts.num_positions for counts in batches),
        num_targets=sum(counts.actions.size for counts in batches),
        label_counts=tuple(np.bincount(labels).tolist()) if labels[0] >= 0 else (),
        lead_share=float(np.concatenate([counts.is_lead for counts in batches]).mean()),
        group_counts=tuple(np.bincount(np.concatenate([counts.group_sizes for counts in batches]))[1:].tolist()),
        action_counts=tuple(np.bincount(np.concatenate([c.actions for c in batches]), minlength=3).tolist()),
        elapsed_seconds=elapsed,
    )


class _Counts(NamedTuple):
    """What is kept of one batch."""

    num_tokens: int
    num_special: int
    num_positions: int
    labels: NDArray[np.int8]
    is_lead: NDArray[np.bool_]
    group_sizes: NDArray[np.int8]  # one for each group
    actions: NDArray[np.int8]  # one for each target


def _count(rows: Rows, special: SpecialIds) -> _Counts:
    targets = rows.targets
    original = rows.token_ids.reshape(-1).copy()
    original[targets.positions] = targets.labels
    owner = np.searchsorted(rows.layout.starts, targets.positions, "right")
    _, firsts = np.unique(owner * (rows.layout.width + 1) + targets.groups, return_index=True)
    return _Counts(
        num_tokens=int(rows.layout.lengths.sum()),
        num_special=int(np.isin(original, (special.cls_id, special.sep_id)).sum()),
        num_positions=rows.token_ids.size,
        labels=rows.labels,
        is_lead=rows.is_lead,
        group_sizes=targets.sizes[firsts],
        actions=targets.actions,
    )
