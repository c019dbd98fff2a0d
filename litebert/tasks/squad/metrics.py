"""Exact match and F1 as in the official SQuAD scripts, 1.1 and 2.0, and the best no-answer threshold.

The two versions normalise alike and differ in edge cases. In 1.1 an answer that normalises to
nothing has F1 0 even against itself. In 2.0 such gold answers are ignored, a question without other ones has no
answer, and an empty prediction is then right.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.tasks.squad.reading import Question

Version = Literal["1.1", "2.0"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


class AnswerScore(NamedTuple):
    """Exact match and F1, between 0 and 1."""

    exact: float
    f1: float


def normalize_answer(text: str) -> str:
    """Lowercase a text and remove ASCII punctuation, English articles and superfluous white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_answer(prediction: str, gold_answers: Sequence[str], version: Version) -> AnswerScore:
    """Score a prediction ("" = no answer) by the best match among the gold answers (none = no answer)."""
    golds = list(gold_answers)
    if version == "2.0":
        golds = [gold for gold in golds if normalize_answer(gold)] or [""]
    if not golds:
        return AnswerScore(0.0, 0.0)
    predicted = normalize_answer(prediction)
    normalized = [normalize_answer(gold) for gold in golds]
    return AnswerScore(
        exact=max(float(predicted == gold) for gold in normalized),
        f1=max(F1_OF[version](predicted.split(), gold.split()) for gold in normalized),
    )


def score_questions(predictions: Sequence[str], questions: Sequence[Question], version: Version) -> list[AnswerScore]:
    """One score per question."""
    return [
        score_answer(prediction, [answer.text for answer in question.answers or ()], version)
        for prediction, question in zip(predictions, questions, strict=True)
    ]


def summarize_scores(
    scores: Sequence[AnswerScore], questions: Sequence[Question], version: Version
) -> dict[str, float]:
    """Mean EM and F1; for 2.0 also over the questions with an answer and over those without."""
    has_answer = np.array([question.has_answer for question in questions])
    parts = {"": np.ones_like(has_answer)}
    if version == "2.0":
        parts |= {"has_answer_": has_answer, "no_answer_": ~has_answer}
    return {
        f"{part}{metric}": float(np.mean(values[chosen]))
        for part, chosen in parts.items()
        if chosen.any()
        for metric, values in zip(AnswerScore._fields, np.array(scores).T, strict=True)
    }


class Threshold(NamedTuple):
    """Questions with null odds above `value` get no answer; `score`, a sum over questions, is the result."""

    value: float
    score: float


def find_best_threshold(
    gains: npt.NDArray[np.float64],
    null_odds: npt.NDArray[np.float64],
    has_answer: npt.NDArray[np.bool_],
    is_answered: npt.NDArray[np.bool_],
) -> Threshold:
    """The threshold with the highest score, by the sweep of the official 2.0 script.

    The arguments, all (Q,): the score of each question if it is answered, the null odds, whether it has an answer, and
    whether the prediction is not empty. If no question should be answered, the official value is 0.0.
    """
    nothing = float((~has_answer).sum())  # the score of answering no question
    steps = np.where(has_answer, gains, np.where(is_answered, -1.0, 0.0))
    order = np.argsort(null_odds, kind="stable")
    reached = np.cumsum(np.concatenate([[nothing], steps[order]]))  # (Q + 1,) after answering 0, 1, ... questions
    best = int(np.argmax(reached))
    return Threshold(float(null_odds[order[best - 1]]) if best else 0.0, float(reached[best]))


def tune_threshold(
    scores: Sequence[AnswerScore],
    null_odds: Sequence[float],
    questions: Sequence[Question],
    is_answered: Sequence[bool],
) -> dict[str, Threshold]:
    """The best threshold for each metric, from the scores of answering every question."""
    odds, has_answer = np.array(null_odds), np.array([question.has_answer for question in questions])
    return {
        metric: find_best_threshold(
            np.array([getattr(score, metric) for score in scores]), odds, has_answer, np.array(is_answered)
        )
        for metric in AnswerScore._fields
    }


def _f1_strict(predicted: Sequence[str], gold: Sequence[str]) -> float:
    shared = sum((Counter(predicted) & Counter(gold)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def _f1_with_nothing(predicted: Sequence[str], gold: Sequence[str]) -> float:
    return _f1_strict(predicted, gold) if predicted and gold else float(predicted == gold)


F1_OF: dict[Version, Callable[[Sequence[str], Sequence[str]], float]] = {
    "1.1": _f1_strict,
    "2.0": _f1_with_nothing,
}
