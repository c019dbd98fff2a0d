"""Inspecting batches: single sequences with the reason for each mask, and statistics over many batches."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litebert.batches.masking import ACTIONS
from litebert.batches.rows import Rows
from litebert.batches.stream import Stream
from litebert.core.progress import ProgressBar


class MaskedGroup(NamedTuple):
    """Words that were chosen together."""

    num_words: int
    positions: tuple[int, ...]  # in the sequence
    actions: tuple[str, ...]  # one of ACTIONS per position


@dataclass(frozen=True)
class Example:
    """One sequence of a batch, before and after masking."""

    original_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    segment_ids: tuple[int, ...]
    groups: tuple[MaskedGroup, ...]  # ordered by position
    label: int  # -1 without a sentence task
    opens_document: bool


def read_examples(rows: Rows, *, limit: int | None = None) -> list[Example]:
    """The sequences of a batch one by one, or only the first `limit` of them."""
    targets, sequences = rows.targets, rows.plan.sequences
    token_ids, segment_ids = rows.token_ids.reshape(-1), rows.segment_ids.reshape(-1)
    original_ids = token_ids.copy()
    original_ids[targets.positions] = targets.labels
    owners = np.searchsorted(rows.plan.starts, targets.positions, "right") - 1
    examples = []
    for number, start in enumerate(rows.plan.starts[:limit].tolist()):
        members: dict[int, list[int]] = {}  # group -> its targets
        for k in np.flatnonzero(owners == number).tolist():
            members.setdefault(int(targets.groups[k]), []).append(k)
        groups = [
            MaskedGroup(
                num_words=int(targets.sizes[own[0]]),
                positions=tuple(int(targets.positions[k]) - start for k in own),
                actions=tuple(ACTIONS[targets.actions[k]] for k in own),
            )
            for own in members.values()
        ]
        span = slice(start, start + int(sequences.lengths[number]))
        examples.append(
            Example(
                original_ids=tuple(original_ids[span].tolist()),
                token_ids=tuple(token_ids[span].tolist()),
                segment_ids=tuple(segment_ids[span].tolist()),
                groups=tuple(groups),
                label=int(sequences.labels[number]),
                opens_document=bool(sequences.opens_document[number]),
            )
        )
    return examples


@dataclass(frozen=True)
class StreamStatistics:
    """Counts over a number of batches."""

    num_batches: int
    num_sequences: int
    num_tokens: int  # without padding
    num_special: int
    num_positions: int  # with padding
    num_targets: int
    label_counts: tuple[int, ...]  # empty without a sentence task
    opening_share: float  # of sequences that contain a document's opening
    group_counts: tuple[int, ...]  # number of groups of 1, 2, ... words
    action_counts: tuple[int, ...]  # in the order of ACTIONS
    elapsed_seconds: float

    @property
    def masked_share(self) -> float:
        """The share of text tokens that are predicted."""
        return self.num_targets / (self.num_tokens - self.num_special)

    @property
    def padding_efficiency(self) -> float:
        return self.num_tokens / self.num_positions


def measure_batches(stream: Stream, num_batches: int) -> StreamStatistics:
    """Make the first batches of a stream on one thread, and collect statistics."""
    stream.rows(0)  # plans and compiles
    elapsed = 0.0
    num_tokens = num_special = num_positions = 0
    labels, openings, actions, group_sizes = [], [], [], []
    with ProgressBar("making batches", total=num_batches, unit="batches", scale=1) as progress:
        for step in range(num_batches):
            started_at = time.perf_counter()
            rows = stream.rows(step)
            elapsed += time.perf_counter() - started_at
            targets, sequences = rows.targets, rows.plan.sequences
            num_tokens += int(sequences.lengths.sum())
            num_positions += rows.token_ids.size
            original_ids = rows.token_ids.reshape(-1).copy()
            original_ids[targets.positions] = targets.labels
            num_special += int(np.isin(original_ids, (stream.special.cls_id, stream.special.sep_id)).sum())
            labels.append(sequences.labels)
            openings.append(sequences.opens_document)
            actions.append(targets.actions)
            owners = np.searchsorted(rows.plan.starts, targets.positions, "right")
            _, firsts = np.unique(owners * (rows.plan.width + 1) + targets.groups, return_index=True)
            group_sizes.append(targets.sizes[firsts])  # one per group
            progress.move_to(step + 1)
    all_labels, all_actions = np.concatenate(labels), np.concatenate(actions)
    return StreamStatistics(
        num_batches=num_batches,
        num_sequences=len(all_labels),
        num_tokens=num_tokens,
        num_special=num_special,
        num_positions=num_positions,
        num_targets=len(all_actions),
        label_counts=tuple(np.bincount(all_labels).tolist()) if all_labels[0] >= 0 else (),
        opening_share=float(np.concatenate(openings).mean()),
        group_counts=tuple(np.bincount(np.concatenate(group_sizes))[1:].tolist()),
        action_counts=tuple(np.bincount(all_actions, minlength=3).tolist()),
        elapsed_seconds=elapsed,
    )
