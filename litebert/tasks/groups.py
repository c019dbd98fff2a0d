"""Groups: the token sequences of one example, which stay together from the file to the score.

A group is one sequence for a sentence or a pair, C sequences for C choices, or the windows of one long passage. They
are batched, computed and answered as one group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from litebert.text.tokenizer import Tokenizer


class TokenSequence(NamedTuple):
    """One encoder input with special tokens; its first `num_first` tokens are segment 0."""

    token_ids: NDArray[np.int32]  # (T,)
    num_first: int
    num_cut: int = 0  # tokens of its texts removed by truncation


@dataclass(frozen=True)
class Group:
    """Sequences that are answered together, and the right answer if known."""

    sequences: tuple[TokenSequence, ...]
    # The target of the task's loss; a batch concatenates targets along their first axis. None: unknown.
    target: NDArray[Any] | None = None
    about: Any = None  # what the task needs to decode the model's output, such as a window's offsets

    @property
    def num_tokens(self) -> int:
        return sum(len(sequence.token_ids) for sequence in self.sequences)

    @property
    def num_cut(self) -> int:
        """The most tokens that truncation removed from any of its sequences."""
        return max(sequence.num_cut for sequence in self.sequences)

    @property
    def width(self) -> int:
        """The length of its longest sequence."""
        return max(len(sequence.token_ids) for sequence in self.sequences)


@dataclass(frozen=True)
class SequenceForm:
    """The input format of a model: special tokens around one or two texts, truncated to `max_length`."""

    cls_id: int
    sep_id: int
    pad_id: int
    max_length: int
    num_segments: int = 2

    @property
    def num_between(self) -> int:
        """The number of separators between two texts: two for a model with one segment, as in RoBERTa."""
        return 1 if self.num_segments > 1 else 2

    def num_special(self, *, is_pair: bool) -> int:
        return 2 + self.num_between if is_pair else 2

    def join(self, first: Sequence[int], second: Sequence[int] | None = None) -> TokenSequence:
        """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]; of a pair, the end of the longer text is truncated."""
        room = self.max_length - self.num_special(is_pair=second is not None)
        if second is None:
            ids = [self.cls_id, *first[:room], self.sep_id]
            return TokenSequence(np.array(ids, dtype=np.int32), len(ids), max(len(first) - room, 0))
        num_first, num_second = share_room(len(first), len(second), room)
        num_cut = len(first) + len(second) - num_first - num_second
        return self.join_as_is(first[:num_first], second[:num_second])._replace(num_cut=num_cut)

    def join_as_is(self, first: Sequence[int], second: Sequence[int]) -> TokenSequence:
        """[CLS] first [SEP] second [SEP] of texts that are already truncated."""
        head = [self.cls_id, *first, *[self.sep_id] * self.num_between]
        ids = np.array([*head, *second, self.sep_id], dtype=np.int32)
        assert len(ids) <= self.max_length, (len(ids), self.max_length)
        return TokenSequence(ids, len(head) if self.num_segments > 1 else len(ids))


def build_form(tokenizer: Tokenizer, *, max_length: int, num_segments: int) -> SequenceForm:
    return SequenceForm(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, max_length, num_segments)


def share_room(num_first: int, num_second: int, room: int) -> tuple[int, int]:
    """The lengths of two texts, truncated longest first (on a tie, the second), as in the official code."""
    if num_first + num_second <= room:
        return num_first, num_second
    smaller = min(num_first, num_second, room // 2)
    if num_first <= smaller:
        return num_first, room - num_first
    if num_second <= smaller:
        return room - num_second, num_second
    return room - room // 2, room // 2


@dataclass(frozen=True)
class TuningPlan:
    """The groups of each fine-tuning step, as a function of only the seed, the epoch and the step.

    Every epoch is shuffled anew. Within buckets of `bucket_batches` batches, groups are sorted by length before they
    are split into batches, to reduce padding; then the batches are shuffled.
    """

    widths: NDArray[np.int64]  # of each group
    batch_size: int
    seed: int
    bucket_batches: int = 16  # 1: no sorting by length

    @classmethod
    def of(cls, groups: Sequence[Group], batch_size: int, seed: int, bucket_batches: int) -> Self:
        return cls(np.array([group.width for group in groups]), batch_size, seed, bucket_batches)

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.widths) // self.batch_size)

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The indices of the groups in each batch of an epoch; the last batch may be smaller."""
        rng = np.random.default_rng((self.seed, epoch))
        shuffled = rng.permutation(len(self.widths))
        stretch = self.batch_size * self.bucket_batches
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(shuffled), stretch):
            part = shuffled[start : start + stretch]
            ordered = part[np.argsort(self.widths[part], kind="stable")] if self.bucket_batches > 1 else part
            batches += [ordered[at : at + self.batch_size] for at in range(0, len(ordered), self.batch_size)]
        return [batches[number] for number in rng.permutation(len(batches))]
