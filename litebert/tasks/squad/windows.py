"""Windows: how a paragraph that is longer than a sequence is read in overlapping parts, each with the question before it.

A window is [CLS] question [SEP] part of the paragraph [SEP]. Nothing is copied when windows are planned: a window is
four numbers, and its row of token ids is written when a batch wants it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError
from litebert.data.compiled import compiled
from litebert.tasks.squad.reading import QuestionSet
from litebert.tasks.squad.tokens import IntArray, SquadTokens, locate_spans

NUM_SPECIAL = 3  # [CLS], and [SEP] twice


@dataclass(frozen=True)
class WindowOptions:
    """Lengths in tokens; the official values."""

    max_length: int = 384
    max_question_length: int = 64  # a longer question loses its end
    stride: int = 128  # from the beginning of a window to that of the next

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise ConfigError(f"stride = {self.stride}: windows must advance by at least 1 token")
        if self.max_question_length < 0:
            raise ConfigError(f"max_question_length = {self.max_question_length} is negative")
        if self.max_length <= self.max_question_length + NUM_SPECIAL:
            raise ConfigError(
                f"max_length = {self.max_length} leaves no token for the paragraph after a question of "
                f"{self.max_question_length} and {NUM_SPECIAL} special tokens; raise it or lower max_question_length"
            )


@dataclass(frozen=True)
class Windows:
    """W windows; those of one question follow one another, in the order of the text."""

    tokens: SquadTokens
    questions: IntArray  # (W,) the question's index
    paragraphs: IntArray  # (W,) the paragraph's index
    question_lengths: IntArray  # (W,) tokens of the question in the window
    firsts: IntArray  # (W,) the first of the paragraph's tokens in the window, counted within the paragraph
    lengths: IntArray  # (W,) how many of them
    bounds: IntArray  # (Q + 1,) question q has the windows bounds[q] : bounds[q + 1]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def offsets(self) -> IntArray:
        """(W,) the column of the paragraph's first token in each window's row."""
        return self.question_lengths + (NUM_SPECIAL - 1)

    @property
    def sequence_lengths(self) -> IntArray:
        """(W,) tokens of the whole row."""
        return self.question_lengths + self.lengths + NUM_SPECIAL


class GoldSpans(NamedTuple):
    """The columns of the answer in each window, ends included; (0, 0), which is [CLS], where it is not in there."""

    starts: IntArray  # (W,)
    ends: IntArray  # (W,)


def plan_windows(questions: QuestionSet, tokens: SquadTokens, options: WindowOptions) -> Windows:
    """All windows of all questions."""
    paragraphs = np.array([question.paragraph for question in questions.questions], dtype=np.int64)
    asked = np.minimum(tokens.question_lengths, options.max_question_length)
    room = options.max_length - NUM_SPECIAL - asked
    advance = np.minimum(room, options.stride)  # no token may fall between two windows
    total = tokens.context_lengths[paragraphs]
    counts = 1 + -(-np.maximum(total - room, 0) // advance)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    firsts = (np.arange(len(owner)) - bounds[owner]) * advance[owner]
    return Windows(
        tokens=tokens,
        questions=owner,
        paragraphs=paragraphs[owner],
        question_lengths=asked[owner],
        firsts=firsts,
        lengths=np.minimum(total[owner] - firsts, room[owner]),
        bounds=bounds,
    )


def find_gold(questions: QuestionSet, windows: Windows) -> GoldSpans:
    """Where each window has its question's first answer, the one that is learned."""
    first_answers = [question.answers[0] if question.answers else None for question in questions.questions]
    paragraphs = np.array([question.paragraph for question in questions.questions], dtype=np.int64)
    first, last = locate_spans(
        windows.tokens,
        paragraphs,
        np.array([answer.start if answer else 0 for answer in first_answers], dtype=np.int64),
        np.array([answer.end if answer else 0 for answer in first_answers], dtype=np.int64),
    )
    starts = first[windows.questions] - windows.firsts
    ends = last[windows.questions] - windows.firsts
    is_inside = (starts >= 0) & (ends >= starts) & (ends < windows.lengths)
    is_inside &= np.array([answer is not None for answer in first_answers], dtype=np.bool_)[windows.questions]
    return GoldSpans(np.where(is_inside, starts + windows.offsets, 0), np.where(is_inside, ends + windows.offsets, 0))


class MaxContext(NamedTuple):
    """Of each window's paragraph tokens, which have more text around them here than in any other window.

    Only there may an answer start, or it would be found several times.
    """

    marks: npt.NDArray[np.bool_]  # flat: window w has marks[bounds[w] : bounds[w + 1]]
    bounds: IntArray  # (W + 1,)


def mark_max_context(windows: Windows) -> MaxContext:
    """Each token of a paragraph marked in exactly one of a question's windows."""
    bounds = np.concatenate([[0], np.cumsum(windows.lengths)]).astype(np.int64)
    marks = np.zeros(bounds[-1], dtype=np.bool_)
    _mark_max_context(windows.bounds, windows.firsts, windows.lengths, bounds, marks)
    return MaxContext(marks, bounds)


@compiled
def _mark_max_context(
    groups: IntArray, firsts: IntArray, lengths: IntArray, bounds: IntArray, marks: npt.NDArray[np.bool_]
) -> None:
    for group in range(len(groups) - 1):
        begin, end = groups[group], groups[group + 1]
        lowest = begin  # windows before it end before the token
        for token in range(firsts[end - 1] + lengths[end - 1]):
            while firsts[lowest] + lengths[lowest] <= token:
                lowest += 1
            best, best_score = lowest, -1.0
            for window in range(lowest, end):
                if firsts[window] > token:
                    break
                left = token - firsts[window]
                right = firsts[window] + lengths[window] - 1 - token
                score = min(left, right) + 0.01 * lengths[window]
                if score > best_score:  # the earlier of two equal ones
                    best, best_score = window, score
            marks[bounds[best] + token - firsts[best]] = True


class WindowRows(NamedTuple):
    """Windows as the model reads them; columns after a row's end are padding."""

    token_ids: IntArray  # (B, T)
    segment_ids: IntArray  # (B, T)
    lengths: IntArray  # (B,)
    allowed: npt.NDArray[np.bool_]  # (B, T) where an answer may lie: the paragraph, and [CLS] for none


def write_rows(windows: Windows, chosen: IntArray, *, cls_id: int, sep_id: int, pad_id: int) -> WindowRows:
    """The rows of some windows, as wide as the longest of them."""
    lengths = windows.sequence_lengths[chosen]
    shape = len(chosen), int(lengths.max())
    token_ids = np.full(shape, pad_id, dtype=np.int64)
    columns = np.arange(shape[1])
    offsets = windows.offsets[chosen][:, None]
    is_paragraph = (columns >= offsets) & (columns < lengths[:, None] - 1)
    segment_ids = ((columns >= offsets) & (columns < lengths[:, None])).astype(np.int64)
    tokens = windows.tokens
    for row, window in enumerate(chosen):
        asked, length = windows.question_lengths[window], windows.lengths[window]
        question_start = tokens.question_bounds[windows.questions[window]]
        context_start = tokens.context_bounds[windows.paragraphs[window]] + windows.firsts[window]
        token_ids[row, 1 : 1 + asked] = tokens.question_ids[question_start : question_start + asked]
        token_ids[row, asked + 2 : asked + 2 + length] = tokens.context_ids[context_start : context_start + length]
        token_ids[row, [asked + 1, asked + 2 + length]] = sep_id
    token_ids[:, 0] = cls_id
    allowed = is_paragraph.copy()
    allowed[:, 0] = True
    return WindowRows(token_ids, segment_ids, lengths, allowed)
