"""Exact match and F1 as in the official SQuAD scripts, 1.1 and 2.0, and the best no-answer threshold.

The two versions normalize alike and differ at the edges. Version 1.1: an answer that normalizes to
nothing has F1 0 even against itself. Version 2.0: such gold answers do not count, a question without any left has no
answer, and nothing against nothing is right.

Chinese is written without spaces, so words between spaces would make F1 equal to exact match. `units = "characters"`
scores as the CMRC 2018 script does, which is also used for DRCD: a Chinese character is a unit, a Latin word or a
number is one, punctuation is removed, and F1 is that of the longest run of units that both answers contain.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.tasks.squad.reading import Question
from litebert.tasks.words import UNSPACED

Version = Literal["1.1", "2.0"]
Units = Literal["words", "characters"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# The marks that the CMRC script removes. It keeps others, such as ASCII commas and a single "…".
_CMRC_MARKS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
# A character of a script without spaces, a word or number (3.5, 1,000), or any other mark. The script finds words with
# NLTK, which agrees on these; it knows no script but Chinese.
_UNIT = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+(?:(?:\.(?=\w)|,(?=\d))(?:(?![{UNSPACED}])\w)+)*|[^\w\s]")


class AnswerScore(NamedTuple):
    """Exact match and F1, between 0 and 1."""

    exact: float
    f1: float


def normalize_answer(text: str) -> str:
    """Lowercase a text and remove ASCII punctuation, English articles and superfluous white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_answer(prediction: str, gold_answers: Sequence[str], version: Version, units: Units = "words") -> AnswerScore:
    """How well a prediction ("" = no answer) agrees with the nearest of the gold answers (none = no answer)."""
    normalize, f1_of = (normalize_answer, _f1_of_words) if units == "words" else (_remove_marks, _f1_of_characters)
    golds = list(gold_answers)
    if version == "2.0":
        golds = [gold for gold in golds if normalize(gold)] or [""]
    if not golds:
        return AnswerScore(0.0, 0.0)
    predicted, normalized = normalize(prediction), [normalize(gold) for gold in golds]
    exact = max(float(predicted == gold) for gold in normalized)
    if version == "2.0" and not (predicted and normalized[0]):  # nothing against nothing is right
        return AnswerScore(exact, exact)
    return AnswerScore(exact, max(f1_of(predicted, gold) for gold in normalized))


def score_questions(
    predictions: Sequence[str], questions: Sequence[Question], version: Version, units: Units = "words"
) -> list[AnswerScore]:
    """The score of each question's prediction."""
    return [
        score_answer(prediction, [answer.text for answer in question.answers or ()], version, units)
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


def _remove_marks(text: str) -> str:
    return text.lower().strip().translate(_CMRC_MARKS)


def _f1_of_words(predicted: str, gold: str) -> float:
    first, second = predicted.split(), gold.split()
    return _f1(sum((Counter(first) & Counter(second)).values()), len(first), len(second))


def _f1_of_characters(predicted: str, gold: str) -> float:
    first, second = _UNIT.findall(predicted), _UNIT.findall(gold)
    return _f1(_count_longest_run(first, second), len(first), len(second))


def _count_longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run of units that both contain."""
    longest, before = 0, [0] * (len(second) + 1)
    for unit in first:
        lengths = [0] * (len(second) + 1)  # [n]: of the run that ends with this unit and the n-th of the second
        for number, other in enumerate(second, start=1):
            if unit == other:
                lengths[number] = before[number - 1] + 1
        longest, before = max(longest, *lengths), lengths
    return longest


def _f1(num_shared: int, num_predicted: int, num_gold: int) -> float:
    if num_shared == 0:
        return 0.0
    precision, recall = num_shared / num_predicted, num_shared / num_gold
    return 2 * precision * recall / (precision + recall)
