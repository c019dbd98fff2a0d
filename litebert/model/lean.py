"""Operations that keep less for the backward pass than autograd would.

Each has its plain form beside it, which is what is computed where a graph is traced (compiling, exporting).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK_LOGITS = 8_000_000  # at once: 32 MB. Fewer make thin multiplies, more fall out of the cache


def vocabulary_loss(states: Tensor, table: Tensor, bias: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The summed negative log-likelihood of words `labels` (M,) at states (M, E), and how many have the best logit."""
    if torch.compiler.is_compiling():
        logits = F.linear(states, table, bias).float()
        return F.cross_entropy(logits, labels, reduction="sum"), (logits.argmax(-1) == labels).sum()
    return _VocabularyLoss.apply(states, table, bias, labels)  # type: ignore[no-untyped-call, no-any-return]


class _VocabularyLoss(torch.autograd.Function):
    """Loss and gradients in one pass over a few rows of logits at a time: all of them (M, V) never exist."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, table: Tensor, bias: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        is_training = any(ctx.needs_input_grad)
        loss, correct = torch.zeros((), device=states.device), torch.zeros((), dtype=torch.long, device=states.device)
        gradients = [torch.zeros_like(x) for x in (states, table, bias)] if is_training else []
        rows = max(1, CHUNK_LOGITS // len(table))
        for start in range(0, len(labels), rows):
            part, targets = states[start : start + rows], labels[start : start + rows, None]
            logits = F.linear(part, table, bias).float()
            of_label, (largest, best) = logits.gather(1, targets), logits.max(-1, keepdim=True)
            probabilities = torch.softmax(logits, -1, out=logits)
            # the best word's probability is at least 1 / V: its logarithm is safe where the label's is not
            loss += (largest - probabilities.gather(1, best).log() - of_label).sum()
            correct += (best == targets).sum()
            if is_training:
                error = probabilities.scatter_add_(1, targets, -torch.ones_like(of_label)).to(part.dtype)
                gradients[0][start : start + rows] = error @ table
                gradients[1].addmm_(error.t(), part)
                gradients[2] += error.sum(0)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient.to(x.dtype) * x for x in ctx.saved_tensors), None
