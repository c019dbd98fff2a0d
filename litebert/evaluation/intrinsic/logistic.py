"""Logistic regression for probes (few dense features) and bags of words (many sparse ones)."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

_ITERATIONS = 100
_PENALTIES = (0.1, 0.01, 0.001)
_HELD_OUT = 5  # one in this many documents is held out to choose the penalty


class Classifier(NamedTuple):
    """A linear classifier of two classes."""

    weights: Tensor  # (F,)
    bias: Tensor  # ()

    def logits(self, features: Tensor) -> Tensor:
        """The logits (S,) of feature rows (S, F); positive: the second class."""
        return features @ self.weights + self.bias


def fit_classifier(features: Tensor, labels: Tensor, documents: Tensor) -> Classifier:
    """A classifier of rows (S, F), dense or CSR, with labels 0 or 1; held-out documents choose its penalty."""
    is_held_out = documents % _HELD_OUT == 0
    if is_held_out.all() or not is_held_out.any():
        return fit_logistic(features, labels, penalty=_PENALTIES[0])
    fitted_on = take_rows(features, ~is_held_out)
    judged_on = take_rows(features, is_held_out)
    losses = []
    for penalty in _PENALTIES:
        logits = fit_logistic(fitted_on, labels[~is_held_out], penalty=penalty).logits(judged_on)
        losses.append(float(F.binary_cross_entropy_with_logits(logits, labels[is_held_out].to(logits.dtype))))
    return fit_logistic(features, labels, penalty=_PENALTIES[losses.index(min(losses))])


def fit_logistic(features: Tensor, labels: Tensor, *, penalty: float) -> Classifier:
    """The classifier that minimizes the mean loss plus `penalty` / 2 times the sum of squared weights."""
    # The gradient is written out because autograd has none through CSR; transposed once because a view is slow.
    transposed = features.t().to_sparse_csr() if features.layout is torch.sparse_csr else features.t()
    labels = labels.to(features.dtype)
    weights = torch.zeros(features.shape[1], dtype=features.dtype, requires_grad=True)
    bias = torch.zeros((), dtype=features.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights, bias], max_iter=_ITERATIONS, history_size=10, tolerance_grad=1e-6, line_search_fn="strong_wolfe"
    )

    @torch.no_grad()
    def compute_loss() -> float:
        logits = features @ weights + bias
        excess = (logits.sigmoid() - labels) / len(labels)
        weights.grad = transposed @ excess + penalty * weights
        bias.grad = excess.sum()
        return float(F.binary_cross_entropy_with_logits(logits, labels) + penalty / 2 * weights.square().sum())

    optimizer.step(compute_loss)  # type: ignore[no-untyped-call]
    return Classifier(weights.detach(), bias.detach())


def take_rows(features: Tensor, chosen: Tensor) -> Tensor:
    """The rows where `chosen` (S,) is true."""
    if features.layout is not torch.sparse_csr:
        return features[chosen]
    sizes = features.crow_indices().diff()
    is_taken = chosen.repeat_interleave(sizes)
    starts = F.pad(sizes[chosen].cumsum(0), (1, 0))
    columns, values = features.col_indices()[is_taken], features.values()[is_taken]
    shape = len(starts) - 1, features.shape[1]
    return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)
