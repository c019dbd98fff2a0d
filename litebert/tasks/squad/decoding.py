"""From logits to answers: the best spans of each question over all its windows, as text of the original paragraph.

Both heads end in the same candidates: (window, start, end) with a score for the start and one for the end. What differs
is where they come from, and what says that there is no answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.tasks.squad.reading import QuestionSet
from litebert.tasks.squad.tokens import IntArray
from litebert.tasks.squad.windows import MaxContext, Windows

FloatArray = npt.NDArray[np.floating]


NUM_BEST = 20  # starts and ends looked at in a window of the simple head, and answers listed; the official value
MAX_ANSWER_LENGTH = 30  # in tokens; the official value


class Candidates(NamedTuple):
    """N spans, columns of a window's row, ends included; and what each window says for having no answer."""

    windows: IntArray  # (N,) index of the window
    starts: IntArray  # (N,)
    ends: IntArray  # (N,)
    start_scores: npt.NDArray[np.float64]  # (N,)
    end_scores: npt.NDArray[np.float64]  # (N,)
    null_windows: IntArray  # (B,) the windows looked at
    null_scores: npt.NDArray[np.float64]  # (B,)


class Span(NamedTuple):
    """A possible answer: paragraph[start:end], how probable among those listed, and its scores."""

    text: str
    start: int
    end: int
    probability: float
    start_score: float
    end_score: float


@dataclass(frozen=True)
class Reply:
    """What a model says to one question: its best spans, the best first, and the odds that there is no answer."""

    id: str
    spans: tuple[Span, ...]  # never empty: where nothing could be an answer, one of empty text
    null_odds: float

    @property
    def text(self) -> str:
        return self.spans[0].text


NO_SPAN = Span("", 0, 0, 1.0, 0.0, 0.0)


def propose_from_logits(
    chosen: IntArray, start_logits: FloatArray, end_logits: FloatArray, *, num_best: int
) -> Candidates:
    """All pairs of the best starts and ends (B, T) of the simple head; [CLS] to [CLS] is no answer."""
    starts, ends = _best_columns(start_logits, num_best), _best_columns(end_logits, num_best)  # (B, K) each
    start_scores = np.take_along_axis(start_logits, starts, axis=1).astype(np.float64)
    end_scores = np.take_along_axis(end_logits, ends, axis=1).astype(np.float64)
    shape = *starts.shape, ends.shape[1]  # (B, K, K)
    return Candidates(
        np.broadcast_to(chosen[:, None, None], shape).ravel(),
        np.broadcast_to(starts[:, :, None], shape).ravel(),
        np.broadcast_to(ends[:, None, :], shape).ravel(),
        np.broadcast_to(start_scores[:, :, None], shape).ravel(),
        np.broadcast_to(end_scores[:, None, :], shape).ravel(),
        chosen,
        start_logits[:, 0].astype(np.float64) + end_logits[:, 0],
    )


def propose_from_conditions(
    chosen: IntArray,
    start_log_probabilities: FloatArray,
    starts: IntArray,
    end_log_probabilities: FloatArray,
    unanswerable: FloatArray,
    *,
    num_ends: int = 5,
) -> Candidates:
    """The best ends for each of the best starts: (B, T), (B, K), (B, K, T) and (B,) of the start-conditioned head."""
    num_windows, num_starts, width = end_log_probabilities.shape
    ends = _best_columns(end_log_probabilities.reshape(-1, width), num_ends).reshape(num_windows, num_starts, -1)
    end_scores = np.take_along_axis(end_log_probabilities, ends, axis=2)  # (B, K, 5)
    start_scores = np.take_along_axis(start_log_probabilities, starts, axis=1)[:, :, None]
    return Candidates(
        np.broadcast_to(chosen[:, None, None], ends.shape).ravel(),
        np.broadcast_to(starts[:, :, None], ends.shape).ravel(),
        ends.ravel(),
        np.broadcast_to(start_scores, ends.shape).ravel().astype(np.float64),
        end_scores.ravel().astype(np.float64),
        chosen,
        unanswerable.astype(np.float64),
    )


def join_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Those of several batches."""
    return Candidates(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def keep_possible(
    candidates: Candidates, windows: Windows, context: MaxContext, *, max_answer_length: int
) -> Candidates:
    """Those inside the paragraph that are not too long and start where no other window has more context."""
    owner = candidates.windows
    starts = candidates.starts - windows.offsets[owner]
    ends = candidates.ends - windows.offsets[owner]
    possible = (starts >= 0) & (ends >= starts) & (ends < windows.lengths[owner])
    possible &= ends - starts < max_answer_length
    possible &= context.marks[np.where(possible, context.bounds[owner] + starts, 0)]
    kept = (values[possible] for values in candidates[:5])
    return Candidates(*kept, candidates.null_windows, candidates.null_scores)


def decode(
    questions: QuestionSet, windows: Windows, possible: Candidates, *, num_best: int, compares_with_null: bool
) -> list[Reply]:
    """A reply to each question from the possible candidates of all windows, in the order of the questions.

    The odds of there being no answer are the lowest null score of a question's windows; `compares_with_null` (the
    simple head) subtracts the score of the best span.
    """
    ranked, bounds = _rank(possible, windows)
    null_scores = _lowest_by_question(possible, windows)
    replies = []
    for index, question in enumerate(questions.questions):
        rows = slice(bounds[index], bounds[index + 1])
        spans = _list_spans(questions.paragraphs[question.paragraph], [part[rows] for part in ranked], num_best)
        null_odds = float(null_scores[index])
        if compares_with_null and spans[0] is not NO_SPAN:
            null_odds -= spans[0].start_score + spans[0].end_score
        replies.append(Reply(question.id, spans, null_odds))
    return replies


class _Ranked(NamedTuple):
    """Candidates by question, then by falling score, in characters of the paragraph."""

    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    start_scores: npt.NDArray[np.float64]
    end_scores: npt.NDArray[np.float64]


def _rank(candidates: Candidates, windows: Windows) -> tuple[_Ranked, IntArray]:
    """The ranked candidates; question q has those from bounds[q] to bounds[q + 1]."""
    owner, tokens = windows.questions[candidates.windows], windows.tokens
    # lexsort is stable: of equal scores the earlier found comes first, as in the official sort
    order = np.lexsort((candidates.windows, -(candidates.start_scores + candidates.end_scores), owner))
    row = candidates.windows[order]
    first = tokens.context_bounds[windows.paragraphs[row]] + windows.firsts[row] - windows.offsets[row]
    ranked = _Ranked(
        tokens.context_starts[first + candidates.starts[order]],
        tokens.context_ends[first + candidates.ends[order]],
        candidates.start_scores[order],
        candidates.end_scores[order],
    )
    return ranked, np.searchsorted(owner[order], np.arange(len(windows.bounds)))


def _lowest_by_question(candidates: Candidates, windows: Windows) -> npt.NDArray[np.float64]:
    lowest = np.full(len(windows.bounds) - 1, np.inf)
    np.minimum.at(lowest, windows.questions[candidates.null_windows], candidates.null_scores)
    return lowest


def _list_spans(paragraph: str, ranked: Sequence[npt.NDArray[np.generic]], num_best: int) -> tuple[Span, ...]:
    """The best spans with different texts."""
    found: dict[str, tuple[int, int, float, float]] = {}
    for start, end, *scores in zip(*(part.tolist() for part in ranked), strict=True):
        if start < end:  # a bare "▁" has no text
            found.setdefault(paragraph[start:end], (start, end, *scores))
        if len(found) == num_best:
            break
    if not found:
        return (NO_SPAN,)
    weights = _softmax([start_score + end_score for _, _, start_score, end_score in found.values()])
    return tuple(
        Span(text, start, end, probability, start_score, end_score)
        for (text, (start, end, start_score, end_score)), probability in zip(found.items(), weights, strict=True)
    )


def _softmax(scores: Sequence[float]) -> list[float]:
    weights = np.exp(np.array(scores) - max(scores))
    probabilities: list[float] = (weights / weights.sum()).tolist()
    return probabilities


def _best_columns(scores: FloatArray, count: int) -> IntArray:
    """(B, K) the columns of the highest scores of each row; of equal ones the first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]
