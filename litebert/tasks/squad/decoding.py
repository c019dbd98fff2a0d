"""Decodes logits to answers: the best spans of a question over all its windows, as text of the original paragraph.

Both heads produce candidates of one form: (window, start, end) with a start score and an end score. They differ in how
candidates are proposed and in how "no answer" is scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.tasks.squad.tokens import IntArray

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Passage:
    """A question's paragraph and its W windows; maps columns of a window back to text."""

    context: str
    starts: npt.NDArray[np.int32]  # (N,) token -> its first character
    ends: npt.NDArray[np.int32]  # (N,) token -> the character after its last
    columns: IntArray  # (W,) the column of a window's first paragraph token
    firsts: IntArray  # (W,) which token of the paragraph that is
    lengths: IntArray  # (W,) how many there are
    has_max_context: npt.NDArray[np.bool_]  # (sum of lengths,) the windows' tokens end to end


class Candidates(NamedTuple):
    """Candidate spans in a question's windows, as columns of a window's sequence, inclusive."""

    windows: IntArray  # (N,)
    starts: IntArray  # (N,)
    ends: IntArray  # (N,)
    start_scores: FloatArray  # (N,)
    end_scores: FloatArray  # (N,)


class Span(NamedTuple):
    """A possible answer: context[start:end], its probability among those listed, and its scores."""

    text: str
    start: int
    end: int
    probability: float
    start_score: float
    end_score: float


class Reply(NamedTuple):
    """A model's reply to one question: its best spans, best first, and the odds that there is no answer."""

    spans: tuple[Span, ...]  # empty if no candidate is possible
    null_odds: float

    @property
    def best_score(self) -> float:
        return self.spans[0].start_score + self.spans[0].end_score if self.spans else 0.0


def propose_pairs(start_logits: FloatArray, end_logits: FloatArray, num_best: int) -> Candidates:
    """For the simple head: all pairs of the best starts and the best ends (W, T)."""
    starts, ends = _best_columns(start_logits, num_best), _best_columns(end_logits, num_best)  # (W, K) each
    end_scores = np.take_along_axis(end_logits, ends, axis=1)
    start_scores = np.take_along_axis(start_logits, starts, axis=1)
    return _cross(starts, ends[:, None, :], start_scores, end_scores[:, None, :])


def propose_conditioned(
    starts: IntArray, start_scores: FloatArray, end_scores: FloatArray, num_ends: int
) -> Candidates:
    """For the start-conditioned head: the best ends (W, K, T) for each of the best starts (W, K)."""
    ends = _best_columns(end_scores, num_ends)  # (W, K, num_ends)
    return _cross(starts, ends, start_scores, np.take_along_axis(end_scores, ends, axis=2))


def propose_all(start_logits: FloatArray, end_logits: FloatArray, max_answer_length: int) -> Candidates:
    """All pairs of a start and an end (W, T) near enough, used if no pair of the best ones is possible."""
    num_windows, width = start_logits.shape
    starts = np.broadcast_to(np.arange(width), (num_windows, width))
    lengths = np.arange(min(max_answer_length, width))
    ends = np.minimum(starts[:, :, None] + lengths, width - 1)  # (W, T, lengths)
    return _cross(starts, ends, start_logits, end_logits[np.arange(num_windows)[:, None, None], ends])


def keep_possible(candidates: Candidates, passage: Passage, max_answer_length: int) -> Candidates:
    """The candidates in the paragraph that are not too long and start where no other window has more context."""
    owner = candidates.windows
    starts = candidates.starts - passage.columns[owner]
    ends = candidates.ends - passage.columns[owner]
    possible = (starts >= 0) & (ends >= starts) & (ends < passage.lengths[owner])
    possible &= ends - starts < max_answer_length
    before = np.cumsum(passage.lengths) - passage.lengths
    # indexed only where possible: a paragraph of only control characters has no tokens
    possible[possible] = passage.has_max_context[(before[owner] + starts)[possible]]
    return Candidates(*(values[possible] for values in candidates))  # type: ignore[arg-type]


def list_spans(possible: Candidates, passage: Passage, num_best: int) -> tuple[Span, ...]:
    """The best candidates with distinct texts, and their probabilities among each other."""
    # stable: ties stay in the order found, as in the official sort
    order = np.argsort(-(possible.start_scores + possible.end_scores), kind="stable")
    shift = (passage.firsts - passage.columns)[possible.windows[order]]
    starts = passage.starts[possible.starts[order] + shift].tolist()
    ends = passage.ends[possible.ends[order] + shift].tolist()
    found: dict[str, tuple[int, int, int]] = {}
    for start, end, row in zip(starts, ends, order.tolist(), strict=True):
        text = passage.context[start:end].rstrip()  # a final bare "▁" starts after the space
        if text:
            found.setdefault(text, (start, start + len(text), row))
        if len(found) == num_best:
            break
    rows = [row for _, _, row in found.values()]
    start_scores, end_scores = possible.start_scores[rows].tolist(), possible.end_scores[rows].tolist()
    probabilities = _softmax(possible.start_scores[rows] + possible.end_scores[rows])
    return tuple(
        Span(text, start, end, *scores)
        for (text, (start, end, _)), *scores in zip(found.items(), probabilities, start_scores, end_scores, strict=True)
    )


def combine_replies(replies: Sequence[Reply], num_best: int) -> Reply:
    """An ensemble's reply: the mean probability of each span that any member lists, and the mean null odds.

    A span that a member does not list has probability 0 there. Spans with the same text are merged. The best are kept.
    """
    total: dict[str, float] = {}
    best: dict[str, Span] = {}
    for span in (span for reply in replies for span in reply.spans):
        total[span.text] = total.get(span.text, 0.0) + span.probability / len(replies)
        if span.text not in best or span.probability > best[span.text].probability:
            best[span.text] = span
    ranked = sorted(total, key=lambda text: -total[text])[:num_best]
    spans = tuple(best[text]._replace(probability=total[text]) for text in ranked)
    return Reply(spans, sum(reply.null_odds for reply in replies) / len(replies))


def _cross(starts: IntArray, ends: IntArray, start_scores: FloatArray, end_scores: FloatArray) -> Candidates:
    """Each start (W, K) with each of its ends (W, 1 or K, J)."""
    shape = *starts.shape, ends.shape[2]
    windows = np.arange(len(starts))[:, None, None]
    parts = (windows, starts[:, :, None], ends, start_scores[:, :, None], end_scores)
    return Candidates(*(np.broadcast_to(part, shape).ravel() for part in parts))  # type: ignore[arg-type]


def _best_columns(scores: FloatArray, count: int) -> IntArray:
    """The columns (..., K) of the highest scores; ties go to the first."""
    return np.argsort(-scores, axis=-1, kind="stable")[..., :count]


def _softmax(scores: FloatArray) -> list[float]:
    if not len(scores):
        return []
    weights = np.exp(scores.astype(np.float64) - scores.max())
    probabilities: list[float] = (weights / weights.sum()).tolist()
    return probabilities
