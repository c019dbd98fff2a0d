"""Scores: Wilson's interval where guesses are independent, an honest one where those of a document go together."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from litebert.evaluation.intrinsic.score import score_guesses, score_pairs
from litebert.evaluation.intrinsic.student import student


def draw_guesses(num_documents: int, *, per_document: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Guesses that are right with a probability of the document's own, around 0.7."""
    rng = np.random.default_rng(seed)
    rates = np.clip(0.7 + spread * rng.standard_normal(num_documents), 0, 1)
    documents = np.repeat(np.arange(num_documents), per_document)
    return rng.random(len(documents)) < rates[documents], documents


@pytest.mark.parametrize(("right", "total"), [(0, 10), (7, 10), (10, 10), (512, 1000), (3, 4000)])
def test_the_interval_of_independent_guesses_is_wilsons(right: int, total: int) -> None:
    score = score_guesses(np.arange(total) < right, np.arange(total))
    expected = binomtest(right, total).proportion_ci(0.95, method="wilson")
    assert (score.low, score.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert (score.right, score.total, score.documents) == (right, total, total)


def test_guesses_that_are_all_alike_in_a_document_count_as_one() -> None:
    is_right, documents = np.arange(100) < 60, np.arange(100)
    alone = score_guesses(is_right, documents)
    together = score_guesses(np.repeat(is_right, 20), np.repeat(documents, 20))
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=0.003)
    assert together.total == 2000


def test_the_interval_is_as_wide_as_a_bootstrap_over_documents() -> None:
    is_right, documents = draw_guesses(300, per_document=12, spread=0.2, seed=1)
    per_document = is_right.reshape(300, 12).mean(1)
    resampled = np.random.default_rng(2).choice(per_document, (4000, 300)).mean(1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    score = score_guesses(is_right, documents)
    assert score.high - score.low == pytest.approx(high - low, rel=0.1)
    naive = binomtest(score.right, score.total).proportion_ci(0.95, method="wilson")
    assert score.high - score.low > 1.3 * (naive.high - naive.low)


def test_the_interval_holds_the_truth_about_nineteen_times_of_twenty() -> None:
    truth = np.clip(0.7 + 0.2 * np.random.default_rng(0).standard_normal(200_000), 0, 1).mean()
    hits = 0
    for seed in range(400):
        score = score_guesses(*draw_guesses(100, per_document=8, spread=0.2, seed=seed + 1))
        hits += score.low <= truth <= score.high
    assert 365 <= hits <= 395


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_the_interval_holds_the_truth_of_few_documents_too(spread: float) -> None:
    truth = np.clip(0.7 + spread * np.random.default_rng(0).standard_normal(200_000), 0, 1).mean()
    hits = 0
    for seed in range(400):
        score = score_guesses(*draw_guesses(5, per_document=50, spread=spread, seed=seed + 1))
        hits += score.low <= truth <= score.high
    assert hits >= 375


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("num_documents", [1, 5, 40])
def test_where_all_guesses_agree_only_documents_count(num_documents: int, is_right: bool) -> None:
    documents = np.repeat(np.arange(num_documents), 50)
    score = score_guesses(np.full(len(documents), is_right), documents)
    right = num_documents if is_right else 0
    alone = binomtest(right, num_documents).proportion_ci(0.95, method="wilson")
    assert score.low <= alone.low
    assert score.high >= alone.high
    assert score.high - score.low < 1


def test_of_one_document_next_to_nothing_is_known() -> None:
    score = score_guesses(np.arange(1000) < 600, np.zeros(1000, np.int64))
    assert score.low < 0.05
    assert score.high > 0.95


def test_students_quantiles_are_those_of_its_distribution() -> None:
    for freedom in (*range(1, 60), 75, 100, 200, 1000):
        assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2e-3), freedom


def test_lead_and_other_pairs_add_up_to_all() -> None:
    is_right, documents = draw_guesses(50, per_document=4, spread=0.1, seed=3)
    is_lead = np.arange(200) % 4 == 0
    scores = score_pairs(is_right, documents, is_lead)
    assert scores.lead.total == 50
    assert scores.lead.right == int(is_right[::4].sum())
    assert scores.lead.right + scores.inner.right == scores.any.right
    assert scores.lead.total + scores.inner.total == scores.any.total == 200


def test_nothing_guessed_is_nothing_known() -> None:
    score = score_guesses(np.zeros(0, np.bool_), np.zeros(0, np.int64))
    assert (score.low, score.high, score.total) == (0.0, 1.0, 0)
