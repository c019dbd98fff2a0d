"""The official scores of classification and regression, equal to scikit-learn's and scipy's."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def accuracy(guesses: ArrayLike, truths: ArrayLike) -> float:
    """The share of correct predictions."""
    return float(np.mean(np.asarray(guesses) == np.asarray(truths)))


def f1(guesses: ArrayLike, truths: ArrayLike, positive: float = 1) -> float:
    """F1 of one class; 0 if it is neither predicted nor present."""
    guessed, true = np.asarray(guesses) == positive, np.asarray(truths) == positive
    total = int(guessed.sum() + true.sum())
    return 2 * int((guessed & true).sum()) / total if total else 0.0


def macro_f1(guesses: ArrayLike, truths: ArrayLike, classes: ArrayLike | None = None) -> float:
    """The unweighted mean of the classes' F1; `classes` that are neither predicted nor present count as 0."""
    guessed, true = np.asarray(guesses), np.asarray(truths)
    known = np.unique(np.concatenate([guessed, true]) if classes is None else np.asarray(classes))
    guessed, true = np.searchsorted(known, guessed), np.searchsorted(known, true)
    both = np.bincount(guessed[guessed == true], minlength=len(known))
    total = np.bincount(guessed, minlength=len(known)) + np.bincount(true, minlength=len(known))
    return float(np.mean(2 * both / np.maximum(total, 1)))


def matthews(guesses: ArrayLike, truths: ArrayLike) -> float:
    """Matthews correlation for any number of classes (R_K); 0 if one side is constant."""
    classes, numbers = np.unique(np.concatenate([np.asarray(guesses), np.asarray(truths)]), return_inverse=True)
    guessed, true = numbers.reshape(2, -1)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (true, guessed), 1)
    num_guessed, num_true, total = confusion.sum(0), confusion.sum(1), int(confusion.sum())
    covariance = int(np.trace(confusion)) * total - int(num_guessed @ num_true)
    spread_guessed = total**2 - int(num_guessed @ num_guessed)
    spread_true = total**2 - int(num_true @ num_true)
    return covariance / math.sqrt(spread_guessed * spread_true) if spread_guessed and spread_true else 0.0


def pearson(guesses: ArrayLike, truths: ArrayLike) -> float:
    """Pearson correlation; 0 if one side is constant."""
    guessed, true = (np.asarray(side, dtype=np.float64) for side in (guesses, truths))
    if not (np.ptp(guessed) and np.ptp(true)):
        return 0.0
    guessed, true = guessed - guessed.mean(), true - true.mean()
    return float(np.clip((guessed / np.linalg.norm(guessed)) @ (true / np.linalg.norm(true)), -1.0, 1.0))


def spearman(guesses: ArrayLike, truths: ArrayLike) -> float:
    """Spearman correlation; ties get their mean rank."""
    return pearson(_rank(np.asarray(guesses)), _rank(np.asarray(truths)))


def mean_absolute_error(guesses: ArrayLike, truths: ArrayLike) -> float:
    """Mean absolute error; lower is better."""
    return float(np.mean(np.abs(np.asarray(guesses, dtype=np.float64) - np.asarray(truths, dtype=np.float64))))


def root_mean_squared_error(guesses: ArrayLike, truths: ArrayLike) -> float:
    """Root mean squared error; lower is better."""
    return float(np.sqrt(np.mean(np.square(np.asarray(guesses, np.float64) - np.asarray(truths, np.float64)))))


def micro_f1(guesses: ArrayLike, truths: ArrayLike) -> float:
    """F1 over all decisions of a multi-label task: arrays of bool, examples by labels."""
    return f1(np.asarray(guesses).ravel(), np.asarray(truths).ravel())


def confusion_matrix(guesses: Sequence[int], truths: Sequence[int], num_labels: int) -> NDArray[np.int64]:
    """Counts of true labels (rows) by predicted labels (columns)."""
    counts = np.zeros((num_labels, num_labels), dtype=np.int64)
    np.add.at(counts, (np.asarray(truths, dtype=np.int64), np.asarray(guesses, dtype=np.int64)), 1)
    return counts


def precision_recall(num_right: int, num_guessed: int, num_true: int) -> dict[str, float]:
    """Precision, recall and F1 of one label; 0 where undefined."""
    return {
        "precision": num_right / num_guessed if num_guessed else 0.0,
        "recall": num_right / num_true if num_true else 0.0,
        "f1": 2 * num_right / (num_guessed + num_true) if num_guessed + num_true else 0.0,
        "num_examples": num_true,
    }


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + 1 + ends) / 2)[inverse]


def count_matches(answer: set[Any], truth: set[Any]) -> list[int]:
    """The numbers of true positives, predicted and actual items."""
    return [len(answer & truth), len(answer), len(truth)]


def f1_of_matches(rows: NDArray[Any]) -> float:
    """F1 over rows whose first columns are from `count_matches`."""
    right, answered, true = rows[:, :3].sum(0)
    return float(2 * right / (answered + true)) if answered + true else 0.0
