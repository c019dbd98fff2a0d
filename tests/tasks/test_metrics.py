"""Our scores are scikit-learn's and scipy's, on ordinary and on degenerate answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks import metrics

sklearn = pytest.importorskip("sklearn.metrics")
stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore:A single label was found")


def pairs_of(values: st.SearchStrategy[float], min_size: int = 1) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    return st.lists(st.tuples(values, values), min_size=min_size, max_size=40).map(
        lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs])
    )


@given(pairs_of(st.integers(0, 1)))
def test_accuracy_f1_and_matthews_of_two_classes(sides: tuple[list[float], list[float]]) -> None:
    guesses, truths = sides
    assert metrics.accuracy(guesses, truths) == pytest.approx(sklearn.accuracy_score(truths, guesses))
    assert metrics.f1(guesses, truths) == pytest.approx(sklearn.f1_score(truths, guesses, zero_division=0))
    assert metrics.matthews(guesses, truths) == pytest.approx(sklearn.matthews_corrcoef(truths, guesses))


@given(pairs_of(st.integers(0, 4)))
def test_matthews_macro_f1_and_confusion_of_five_classes(sides: tuple[list[int], list[int]]) -> None:
    guesses, truths = sides
    assert metrics.matthews(guesses, truths) == pytest.approx(sklearn.matthews_corrcoef(truths, guesses))
    expected = sklearn.f1_score(truths, guesses, average="macro", zero_division=0)
    assert metrics.macro_f1(guesses, truths) == pytest.approx(expected)
    labels = list(range(7))  # two of them in neither
    expected = sklearn.f1_score(truths, guesses, labels=labels, average="macro", zero_division=0)
    assert metrics.macro_f1(guesses, truths, labels) == pytest.approx(expected)
    confusion = sklearn.confusion_matrix(truths, guesses, labels=range(5))
    assert metrics.confusion_matrix(guesses, truths, 5).tolist() == confusion.tolist()


@given(pairs_of(st.integers(-6, 6).map(lambda n: n / 2), min_size=2))
def test_correlations_also_where_values_are_equal(sides: tuple[list[float], list[float]]) -> None:
    guesses, truths = sides
    if len(set(guesses)) == 1 or len(set(truths)) == 1:
        assert metrics.pearson(guesses, truths) == metrics.spearman(guesses, truths) == 0
    else:
        assert metrics.pearson(guesses, truths) == pytest.approx(stats.pearsonr(guesses, truths).statistic)
        assert metrics.spearman(guesses, truths) == pytest.approx(stats.spearmanr(guesses, truths).statistic)


def test_micro_f1_of_many_labels() -> None:
    rng = np.random.default_rng(1)
    guesses, truths = rng.random((2, 50, 7)) < 0.3
    assert metrics.micro_f1(guesses, truths) == pytest.approx(sklearn.f1_score(truths, guesses, average="micro"))


def test_errors_of_numbers_are_scikit_learns() -> None:
    guesses, truths = np.random.default_rng(5).normal(size=(2, 50))
    assert metrics.mean_absolute_error(guesses, truths) == pytest.approx(sklearn.mean_absolute_error(truths, guesses))
    theirs = sklearn.root_mean_squared_error(truths, guesses)
    assert metrics.root_mean_squared_error(guesses, truths) == pytest.approx(theirs)
