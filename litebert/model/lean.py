"""Operations that keep less memory for the backward pass than autograd would, and are not slower.

Each function starts with its plain form, which runs where nothing is kept or a graph is traced (compiling, exporting).
R rows are all leading axes flattened: B * T tokens, or B * Q queried ones in the last layer. F is the feed-forward
width; M and V are masked positions and the vocabulary.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK_LOGITS = 8_000_000  # at a time: 32 MB. Fewer make the multiplies thin, more do not fit the cache
CHUNK_VALUES = 800_000  # of an activation at a time: several passes over them find them in the cache

# sigmoid(2 z) = (1 + tanh z) / 2, and PyTorch's sigmoid is several times faster than its tanh on a CPU
_TWICE = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def gelu_tanh(x: Tensor) -> Tensor:
    """The GELU of the official code: the tanh approximation."""
    return F.gelu(x, approximate="tanh")


def activated_linear(x: Tensor, weight: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """The linear map (..., H) of activation(x) for x (..., F); the activation is recomputed in the backward pass."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return F.linear(activation(x), weight, bias)
    # The casts only do something under autocast, where the backward pass needs weights of x's type.
    arguments = x, weight.to(x.dtype), bias.to(x.dtype), activation
    mapped: Tensor = _ActivatedLinear.apply(*arguments)  # type: ignore[no-untyped-call]
    return mapped


class _ActivatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation = activation
        return F.linear(_activate(activation, x), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors  # (..., F), (H, F)
        gradient = gradient.flatten(0, -2)  # (R, H)
        activated, slope = _activate_with_slope(ctx.activation, x.flatten(0, -2))  # (R, F) each
        weight_gradient = gradient.t() @ activated  # (H, F)
        x_gradient = torch.mm(gradient, weight, out=activated).mul_(slope)  # (R, F)
        return x_gradient.view_as(x), weight_gradient, gradient.sum(0), None


def _activate(activation: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    if not _has_fast_form(activation, x):
        return activation(x)
    activated = torch.empty_like(x)
    for part, out in zip(_chunks(x), _chunks(activated), strict=True):
        _gate(part, out).mul_(part)
    return activated


def _activate_with_slope(activation: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """activation(x) and its derivative at x, both in the shape of x."""
    if not _has_fast_form(activation, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            activated = activation(x)
            (slope,) = torch.autograd.grad(activated.sum(), x)
        return activated.detach(), slope
    activated, slope = torch.empty_like(x), torch.empty_like(x)
    for part, out, out_slope in zip(_chunks(x), _chunks(activated), _chunks(slope), strict=True):
        gate = _gate(part, out_slope)
        torch.mul(part, gate, out=out)
        # The derivative of x g(z(x)) is g + x g (1 - g) z'.
        inner_slope = torch.addcmul(x.new_tensor(_TWICE), part, part, value=3 * _TWICE * _CUBIC)
        gate.addcmul_(torch.addcmul(out, out, gate, value=-1), inner_slope)
    return activated, slope


def _gate(x: Tensor, out: Tensor) -> Tensor:
    """The factor of x in tanh-GELU: the sigmoid of 2 sqrt(2 / pi) (x + 0.044715 x^3)."""
    return torch.addcmul(x.new_tensor(_TWICE), x, x, value=_TWICE * _CUBIC, out=out).mul_(x).sigmoid_()


def _has_fast_form(activation: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    # In half precision each step would round, and a GPU's own kernel is one pass.
    return activation is gelu_tanh and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _chunks(x: Tensor) -> tuple[Tensor, ...]:
    return torch.split(x.view(-1), CHUNK_VALUES)


def vocabulary_loss(
    states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The summed negative log-likelihood of tokens `labels` (M,) at states (M, E), and how many have the best logit.

    `weights` (M,) multiply the losses of the targets; None: all weigh 1.
    """
    if torch.compiler.is_compiling():
        logits = F.linear(states, table, bias)  # (M, V)
        losses = F.cross_entropy(logits, labels, reduction="none")  # (M,)
        loss = (losses if weights is None else losses * weights).sum()
        return loss, (logits.argmax(-1) == labels).sum()
    if torch.is_autocast_enabled(states.device.type):
        dtype = torch.get_autocast_dtype(states.device.type)
        states, table, bias = states.to(dtype), table.to(dtype), bias.to(dtype)
    if not torch.is_grad_enabled():  # else an autograd function would still see that parameters require gradients
        states, table, bias = states.detach(), table.detach(), bias.detach()
    loss, correct = _VocabularyLoss.apply(states, table, bias, labels, weights)  # type: ignore[no-untyped-call]
    return loss, correct


class _VocabularyLoss(torch.autograd.Function):
    """Loss and gradients in one pass, a chunk of C rows of logits at a time: all of them (M, V) never exist."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        loss = states.new_zeros((), dtype=torch.promote_types(states.dtype, torch.float32))
        correct = labels.new_zeros(())
        is_training = any(ctx.needs_input_grad)
        # Summed over the chunks in half precision, gradients would lose their last decimals.
        gradients = (
            [
                torch.empty_like(states),
                torch.empty_like(table, dtype=loss.dtype),
                torch.zeros_like(bias, dtype=loss.dtype),
            ]
            if is_training
            else []
        )
        num_rows = max(1, CHUNK_LOGITS // len(table))
        for start in range(0, max(1, len(labels)), num_rows):  # no labels: once, for gradients of 0
            rows = slice(start, start + num_rows)
            targets = labels[rows, None]  # (C, 1)
            logits = F.linear(states[rows], table, bias).to(loss.dtype)  # (C, V)
            of_label, largest = logits.gather(1, targets), logits.amax(-1, keepdim=True)  # (C, 1) each
            probabilities = torch.softmax(logits, -1, out=logits)  # (C, V), in the memory of the logits
            # The best token's probability is at least 1 / V: its logarithm is finite where the label's may not be.
            losses = largest - probabilities.amax(-1, keepdim=True).log() - of_label  # (C, 1)
            of_rows = None if weights is None else weights[rows, None].to(loss.dtype)
            loss += (losses if of_rows is None else losses * of_rows).sum()
            correct += (of_label == largest).sum()
            if is_training:
                error = probabilities.scatter_add_(1, targets, -torch.ones_like(of_label))  # (C, V)
                if of_rows is not None:
                    error.mul_(of_rows)
                _add_gradients(gradients, rows, error, states[rows], table)
        ctx.save_for_backward(*(x.to(y.dtype) for x, y in zip(gradients, (states, table, bias), strict=False)))
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(x.mul_(gradient.to(x.dtype)) for x in ctx.saved_tensors), None, None


def _add_gradients(gradients: list[Tensor], rows: slice, error: Tensor, states: Tensor, table: Tensor) -> None:
    """Add the gradients of a chunk whose logits are wrong by `error` (C, V), at its states (C, E)."""
    of_states, of_table, of_bias = gradients  # (M, E), (V, E), (V,)
    of_states[rows] = error.to(table.dtype) @ table
    # The first chunk is written rather than added: zeroing would be one more pass over the table.
    if states.dtype == of_table.dtype:
        of_table.addmm_(error.t(), states, beta=1 if rows.start else 0)
    elif rows.start:
        of_table += error.to(states.dtype).t() @ states
    else:
        of_table.copy_(error.to(states.dtype).t() @ states)
    of_bias += error.sum(0)
