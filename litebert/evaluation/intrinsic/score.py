"""Accuracy with a confidence interval that accounts for correlation between predictions on the same document."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from litebert.evaluation.intrinsic.student import student

_NORMAL_QUANTILE = 1.959964  # 95 % of a normal distribution lie within this many standard deviations


@dataclass(frozen=True)
class Score:
    """An accuracy with its 95 % interval."""

    value: float
    low: float
    high: float
    right: int
    total: int
    documents: int  # with predictions


@dataclass(frozen=True)
class PairScores:
    """Accuracy on sentence pairs: on all, on those that open a document, and on the others."""

    any: Score
    lead: Score
    inner: Score


def score_guesses(is_right: NDArray[np.bool_], documents: NDArray[np.int64]) -> Score:
    """Accuracy; `documents` gives the document of each prediction.

    The interval is Wilson's for the effective sample size, because predictions on the same document are correlated. The
    correlation is estimated from the documents, so with few of them the quantile is Student's t.
    """
    right, total = int(is_right.sum()), len(is_right)
    if not total:
        return Score(0.0, 0.0, 1.0, 0, 0, 0)
    _, numbers = np.unique(documents, return_inverse=True)
    per_document = np.bincount(numbers)
    count = len(per_document)
    # if every prediction has a document of its own, there is no correlation to estimate
    quantile = _NORMAL_QUANTILE if count == total else student(max(1, count - 1))
    low, high = wilson_interval(right / total, _count_independent(is_right, numbers, per_document), quantile)
    return Score(right / total, low, high, right, total, count)


def score_pairs(is_right: NDArray[np.bool_], documents: NDArray[np.int64], is_lead: NDArray[np.bool_]) -> PairScores:
    """`score_guesses` for sentence pairs, split by whether they open a document."""
    return PairScores(
        any=score_guesses(is_right, documents),
        lead=score_guesses(is_right[is_lead], documents[is_lead]),
        inner=score_guesses(is_right[~is_lead], documents[~is_lead]),
    )


def wilson_interval(value: float, total: float, quantile: float = _NORMAL_QUANTILE) -> tuple[float, float]:
    """Wilson's 95 % interval of the accuracy of `total` independent predictions."""
    z2 = quantile**2 / total
    center = (value + z2 / 2) / (1 + z2)
    half = sqrt(z2 * (value * (1 - value) + z2 / 4)) / (1 + z2)
    return center - half, center + half


def _count_independent(
    is_right: NDArray[np.bool_], numbers: NDArray[np.int64], per_document: NDArray[np.int64]
) -> float:
    """The effective sample size (Kish): how many independent predictions would have the same variance.

    It is never larger than the number of predictions. With a single document, or if all predictions agree, the
    correlation cannot be estimated and each document counts as one.
    """
    total, count = len(is_right), len(per_document)
    value = is_right.mean()
    if count < 2 or value in (0, 1):
        return count
    variance = value * (1 - value) / (total - 1)
    excess = np.bincount(numbers, weights=is_right) - value * per_document
    spread = count / (count - 1) * float(excess @ excess) / total**2
    return total / max(1.0, spread / float(variance))
