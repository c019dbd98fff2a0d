"""Splits paragraphs longer than a sequence into overlapping windows, each preceded by the question.

A window is [CLS] question [SEP] part of the paragraph [SEP]. All windows of all questions are planned at once, as
arrays of offsets, before any tokens are copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.core.compiled import compiled
from litebert.core.errors import ConfigError
from litebert.tasks.groups import SequenceForm
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.tokens import IntArray, SquadTokens, locate_spans


@dataclass(frozen=True)
class WindowOptions:
    """Lengths in tokens; the official values."""

    max_question_length: int = 64  # longer questions are truncated at the end
    stride: int = 128  # between the starts of consecutive windows


@dataclass(frozen=True)
class Windows:
    """W windows, grouped by question, in the order of the text."""

    questions: IntArray  # (W,) the question's index
    question_lengths: IntArray  # (W,) tokens of the question in the window
    firsts: IntArray  # (W,) the first of the paragraph's tokens in the window, counted within the paragraph
    lengths: IntArray  # (W,) how many of them
    columns: IntArray  # (W,) the column of that first token in the window's sequence
    bounds: IntArray  # (Q + 1,) question q has the windows bounds[q] : bounds[q + 1]


class GoldSpans(NamedTuple):
    """The columns of the answer in each window, inclusive; (0, 0), which is [CLS], if it is not in the window."""

    starts: IntArray  # (W,)
    ends: IntArray  # (W,)


def plan_windows(tokens: SquadTokens, form: SequenceForm, options: WindowOptions) -> Windows:
    """Compute all windows of all questions."""
    num_special = form.num_special(is_pair=True)
    if form.max_length <= options.max_question_length + num_special:
        raise ConfigError(
            "text-too-long",
            f"max_length = {form.max_length} leaves no room for the paragraph after {options.max_question_length} "
            f"question tokens and {num_special} special tokens; raise train.max_length or lower "
            "passage.max_question_length",
        )
    asked = np.minimum(tokens.question_lengths, options.max_question_length)
    room = form.max_length - num_special - asked
    advance = np.minimum(room, options.stride)  # no gaps between windows
    total = tokens.context_lengths[tokens.paragraphs]
    counts = 1 + -(-np.maximum(total - room, 0) // advance)
    bounds = add_up(counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    firsts = (np.arange(len(owner)) - bounds[owner]) * advance[owner]
    return Windows(
        questions=owner,
        question_lengths=asked[owner],
        firsts=firsts,
        lengths=np.minimum(total[owner] - firsts, room[owner]),
        columns=asked[owner] + num_special - 1,
        bounds=bounds,
    )


def find_gold(questions: Sequence[Question], tokens: SquadTokens, windows: Windows) -> GoldSpans:
    """Locate the first answer of each window's question, the training target."""
    answered = np.array([index for index, question in enumerate(questions) if question.answers], dtype=np.int64)
    answers = [question.answers[0] for question in questions if question.answers]
    first, last = locate_spans(
        tokens,
        answered,
        np.array([answer.start for answer in answers], dtype=np.int64),
        np.array([answer.end for answer in answers], dtype=np.int64),
    )
    spans = np.full((2, len(questions)), -1)  # -1, for questions without an answer, is in no window
    spans[:, answered] = first, last
    starts, ends = spans[:, windows.questions] - windows.firsts
    is_inside = (starts >= 0) & (ends >= starts) & (ends < windows.lengths)
    return GoldSpans(*(np.where(is_inside, columns + windows.columns, 0) for columns in (starts, ends)))


def mark_max_context(windows: Windows) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """Mark each paragraph token in the window that has the most context around it.

    The result is flat: window w has marks[bounds[w] : bounds[w + 1]]. Each token is marked in exactly one of a
    question's windows. An answer may start only there, or it would be found several times.
    """
    bounds = add_up(windows.lengths)
    marks = np.zeros(bounds[-1], dtype=np.bool_)
    _mark_max_context(windows.bounds, windows.firsts, windows.lengths, bounds, marks)
    return marks, bounds


def write_sequences(
    tokens: SquadTokens, windows: Windows, form: SequenceForm
) -> tuple[npt.NDArray[np.int32], IntArray]:
    """The concatenated tokens of all windows with special tokens: window w has ids[bounds[w] : bounds[w + 1]]."""
    bounds = add_up(windows.columns + windows.lengths + 1)
    token_ids = np.full(bounds[-1], form.sep_id, dtype=np.int32)
    token_ids[bounds[:-1]] = form.cls_id
    _copy_rows(
        tokens.question_ids,
        tokens.question_bounds[windows.questions],
        bounds[:-1] + 1,
        windows.question_lengths,
        token_ids,
    )
    starts = tokens.context_bounds[tokens.paragraphs[windows.questions]] + windows.firsts
    _copy_rows(tokens.context_ids, starts, bounds[:-1] + windows.columns, windows.lengths, token_ids)
    return token_ids, bounds


def add_up(lengths: IntArray) -> IntArray:
    """The bounds of concatenated rows with these lengths."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@compiled
def _copy_rows(
    source: npt.NDArray[np.int32],
    source_starts: IntArray,
    target_starts: IntArray,
    lengths: IntArray,
    target: npt.NDArray[np.int32],
) -> None:
    for row in range(len(lengths)):
        for position in range(lengths[row]):
            target[target_starts[row] + position] = source[source_starts[row] + position]


@compiled
def _mark_max_context(
    groups: IntArray, firsts: IntArray, lengths: IntArray, bounds: IntArray, marks: npt.NDArray[np.bool_]
) -> None:
    for group in range(len(groups) - 1):
        begin, end = groups[group], groups[group + 1]
        lowest = begin  # earlier windows end before the token
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
                if score > best_score:  # ties go to the earlier window
                    best, best_score = window, score
            marks[bounds[best] + token - firsts[best]] = True
