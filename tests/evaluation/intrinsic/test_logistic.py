"""Logistic regression: the optimum that another optimiser finds, sparse as dense, and chance where there is nothing."""

import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from litebert.evaluation.intrinsic.logistic import fit_classifier, fit_logistic, take_rows
from litebert.evaluation.intrinsic.score import score_guesses


def draw_rows(num_rows: int, num_features: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(num_rows, num_features, generator=generator, dtype=torch.float64)
    features = features * (features.abs() > 0.8)
    noise = torch.randn(num_rows, generator=generator, dtype=torch.float64)
    return features, (features[:, 0] - features[:, 1] + noise > 0.3).long()


def to_sparse(features: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return features.to_sparse_csr()


@pytest.mark.parametrize("penalty", [0.1, 0.001])
def test_the_fit_is_the_optimum_that_scipy_finds(penalty: float) -> None:
    features, labels = draw_rows(200, 6, seed=1)
    x, signs = features.numpy(), 2 * labels.numpy() - 1

    def loss(parameters: np.ndarray) -> float:
        margins = signs * (x @ parameters[:-1] + parameters[-1])
        return float(np.logaddexp(0, -margins).mean() + penalty / 2 * (parameters[:-1] ** 2).sum())

    best = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-7}).x
    fitted = fit_logistic(features, labels, penalty=penalty)
    assert torch.cat([fitted.weights, fitted.bias[None]]).tolist() == pytest.approx(best.tolist(), abs=1e-3)


def test_sparse_rows_give_what_dense_rows_give() -> None:
    features, labels = draw_rows(150, 20, seed=2)
    dense, sparse = (fit_logistic(rows, labels, penalty=0.01) for rows in (features, to_sparse(features)))
    assert torch.allclose(dense.weights, sparse.weights, atol=1e-6)
    assert torch.allclose(dense.logits(features), sparse.logits(to_sparse(features)), atol=1e-6)


def test_taking_rows_of_sparse_features_takes_those_rows() -> None:
    features, _ = draw_rows(40, 7, seed=3)
    features[5] = 0  # an empty row
    for chosen in (torch.arange(40) % 3 == 0, torch.arange(40) == 5, torch.zeros(40, dtype=torch.bool)):
        assert torch.equal(take_rows(to_sparse(features), chosen).to_dense(), features[chosen])


def test_a_probe_of_random_features_is_at_chance_within_its_interval() -> None:
    misses = 0
    for seed in range(20):
        features = torch.randn(800, 64, generator=torch.Generator().manual_seed(seed))
        labels = torch.arange(800) % 2
        documents = torch.arange(800) // 2
        classifier = fit_classifier(features[:400], labels[:400], documents[:400])
        is_right = ((classifier.logits(features[400:]) > 0) == (labels[400:] == 1)).numpy()
        score = score_guesses(is_right, documents[400:].numpy())
        misses += not score.low <= 0.5 <= score.high
    assert misses <= 4  # one in twenty is expected


def test_a_feature_that_is_the_label_is_found_among_many() -> None:
    features = torch.randn(300, 200, generator=torch.Generator().manual_seed(1))
    labels = (features[:, 17] > 0).long()
    classifier = fit_classifier(features, labels, torch.arange(300))
    assert int(classifier.weights.abs().argmax()) == 17


def test_documents_that_cannot_be_divided_are_fitted_with_the_strongest_penalty() -> None:
    features, labels = draw_rows(60, 4, seed=4)
    classifier = fit_classifier(features, labels, torch.zeros(60, dtype=torch.int64))
    assert torch.equal(classifier.weights, fit_logistic(features, labels, penalty=0.1).weights)
