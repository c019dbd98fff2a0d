"""How many guesses were right, and how sure that figure is when guesses about one document resemble each other."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

_NORMAL_QUANTILE = 1.959964  # 95 % of a normal distribution lie within


@dataclass(frozen=True)
class Score:
    """A share of right guesses with its 95 % interval."""

    value: float
    low: float
    high: float
    right: int
    total: int
    documents: int  # that the guesses are about


@dataclass(frozen=True)
class PairScores:
    """Right guesses about sentence pairs: all of them, those that begin a document, and the others."""

    any: Score
    lead: Score
    inner: Score


def score_guesses(is_right: NDArray[np.bool_], documents: NDArray[np.int64]) -> Score:
    """The share of right guesses; `documents` says which document each is about.

    The interval is Wilson's, for as many guesses as would spread as much if they were independent: those about one
    document are often right or wrong together.
    """
    right, total = int(is_right.sum()), len(is_right)
    if not total:
        return Score(0.0, 0.0, 1.0, 0, 0, 0)
    _, numbers = np.unique(documents, return_inverse=True)
    per_document = np.bincount(numbers)
    low, high = wilson_interval(right / total, total / _design_effect(is_right, numbers, per_document))
    return Score(right / total, low, high, right, total, len(per_document))


def score_pairs(is_right: NDArray[np.bool_], documents: NDArray[np.int64], is_lead: NDArray[np.bool_]) -> PairScores:
    """The same for sentence pairs, split by whether they begin a document."""
    return PairScores(
        any=score_guesses(is_right, documents),
        lead=score_guesses(is_right[is_lead], documents[is_lead]),
        inner=score_guesses(is_right[~is_lead], documents[~is_lead]),
    )


def wilson_interval(value: float, total: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `total` independent guesses."""
    z2 = _NORMAL_QUANTILE**2 / total
    center = (value + z2 / 2) / (1 + z2)
    half = sqrt(z2 * (value * (1 - value) + z2 / 4)) / (1 + z2)
    return center - half, center + half


def _design_effect(is_right: NDArray[np.bool_], numbers: NDArray[np.int64], per_document: NDArray[np.int64]) -> float:
    """By how much whole documents spread more than single guesses would (Kish); never less than 1."""
    total, count = len(is_right), len(per_document)
    value = is_right.mean()
    if count < 2 or value in (0, 1):
        return 1.0
    variance = value * (1 - value) / (total - 1)
    excess = np.bincount(numbers, weights=is_right) - value * per_document
    spread = count / (count - 1) * float(excess @ excess) / total**2
    return max(1.0, spread / float(variance))
