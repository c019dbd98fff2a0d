"""Operations that store less for the backward pass than autograd would, and are not slower.

There are special forms for bfloat16 on CPUs, where matrix multiplies are so fast that the other operations dominate:
activations are looked up in a table of all 65,536 numbers, and attention is a few matrix multiplies.

Each function starts with its plain form, which runs if nothing is stored or a graph is traced (compiling, exporting).
R is the product of all leading axes: B * T tokens, or B * Q queried ones in the last layer. F is the feed-forward
width, M the number of masked positions and V the vocabulary size.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from litebert.core.threads import run_threads
from litebert.model import table_kernels

CHUNK_LOGITS = 8_000_000  # logits per chunk: 32 MB. Fewer make the matrices too thin, more do not fit in the cache
CHUNK_SCORES = 1_600_000  # attention scores per chunk: as many as fit in the cache
CHUNK_VALUES = 800_000  # activation values per chunk: they stay in the cache over several passes

CHUNK_LOOKUPS = 1 << 18  # table lookups per call of a thread

# sigmoid(2 z) = (1 + tanh z) / 2, and PyTorch's sigmoid is several times faster than its tanh on a CPU
_TWICE = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def gelu_tanh(x: Tensor) -> Tensor:
    """The GELU of the official code: the tanh approximation."""
    return F.gelu(x, approximate="tanh")


def cast_linear(x: Tensor, linear: nn.Linear) -> Tensor:
    """The linear map of x, computed in the dtype of x."""
    return F.linear(x, linear.weight.to(x.dtype), linear.bias.to(x.dtype))


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_rate: float = 0.0) -> Tensor:
    """Softmax attention (B, N, Q, D) of queries (B, N, Q, D) to keys and values (B, N, T, D).

    `mask` (B or 1, 1, 1 or Q, T) is added to the scores.
    """
    if not _is_bf16_on_cpu(query) or dropout_rate > 0 or torch.compiler.is_compiling():
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout_rate)
    if mask is not None:
        mask = mask.expand(len(query), -1, -1, -1)
    context: Tensor = _Attention.apply(query, key, value, mask)  # type: ignore[no-untyped-call]
    return context


class _Attention(torch.autograd.Function):
    """Attention as matrix multiplies, some batch rows at a time; the backward pass recomputes the scores.

    For bfloat16 on a CPU, torch's fused kernel takes several times as long, and longer than for float32.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        scaled, key, value = (x.contiguous() for x in (query * query.shape[-1] ** -0.5, key, value))
        ctx.save_for_backward(scaled, key, value, mask)
        context = torch.empty_like(scaled)  # (B, N, Q, D)
        for rows in _some_rows(scaled, key):
            _multiply(_attention_probabilities(scaled, key, mask, rows), value[rows], context[rows])
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled, key, value, mask = ctx.saved_tensors
        gradient = gradient.contiguous()  # (B, N, Q, D)
        of_scaled, of_key, of_value = (torch.empty_like(x) for x in (scaled, key, value))
        for rows in _some_rows(scaled, key):
            probabilities = _attention_probabilities(scaled, key, mask, rows)  # (b, N, Q, T)
            _multiply(probabilities.transpose(-2, -1), gradient[rows], of_value[rows])
            of_probabilities = gradient[rows] @ value[rows].transpose(-2, -1)  # (b, N, Q, T)
            of_scores = torch._softmax_backward_data(of_probabilities, probabilities, -1, probabilities.dtype)
            _multiply(of_scores, key[rows], of_scaled[rows])
            _multiply(of_scores.transpose(-2, -1), scaled[rows], of_key[rows])
        return of_scaled.mul_(scaled.shape[-1] ** -0.5), of_key, of_value, None


def _some_rows(query: Tensor, key: Tensor) -> list[slice]:
    """Slices of batch rows whose scores are computed together."""
    num_rows = max(1, CHUNK_SCORES // (query.shape[1] * query.shape[2] * key.shape[2]))
    return [slice(start, start + num_rows) for start in range(0, len(query), num_rows)]


def _attention_probabilities(scaled: Tensor, key: Tensor, mask: Tensor | None, rows: slice) -> Tensor:
    """The softmax of the scores (b, N, Q, T) of some rows, computed in float32 and rounded once."""
    scores = scaled[rows] @ key[rows].transpose(-2, -1)
    if mask is not None:
        scores += mask[rows]
    return torch.softmax(scores, -1)


def _multiply(left: Tensor, right: Tensor, out: Tensor) -> None:
    """Write the products of the matrices (b, N, ., .) of every row and head to `out`."""
    torch.bmm(left.flatten(0, 1), right.flatten(0, 1), out=out.flatten(0, 1))


def activated_linear(x: Tensor, weight: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """The linear map (..., H) of activation(x) for x (..., F); the activation is recomputed in the backward pass."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return F.linear(activation(x), weight, bias)
    # The casts matter only under autocast, where the backward pass needs weights in the dtype of x.
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
    if _is_bf16_on_cpu(x):
        return _look_up(x, _tabulate(activation)[:1])[0]
    if not _has_fast_form(activation, x):
        return activation(x)
    activated = torch.empty_like(x)
    for part, out in zip(_chunks(x), _chunks(activated), strict=True):
        _gate(part, out).mul_(part)
    return activated


def _activate_with_slope(activation: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """activation(x) and its derivative at x, both in the shape of x."""
    if _is_bf16_on_cpu(x):
        activated, slope = _look_up(x, _tabulate(activation))
        return activated, slope
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
    # In half precision each step would round, and on a GPU the built-in kernel is already a single pass.
    return activation is gelu_tanh and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _is_bf16_on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.bfloat16


Table = NDArray[np.uint16]


@cache
def _tabulate(activation: Callable[[Tensor], Tensor]) -> tuple[Table, Table]:
    """The activation and its derivative at every bfloat16 number, indexed by its bits."""
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    exact = every.double()
    # Forward-mode differentiation saves no tensors, which activation checkpointing would count as the layer's.
    activated, slope = torch.func.jvp(activation, (exact,), (torch.ones_like(exact),))[:2]
    value, derivative = (y.bfloat16().view(torch.uint16).numpy() for y in (activated, slope))
    return value, derivative


def _look_up(x: Tensor, tables: Sequence[Table]) -> list[Tensor]:
    """The entries of each table for the numbers of x, in the shape of x."""
    x = x.contiguous()
    found = [torch.empty_like(x) for _ in tables]
    numbers, *outputs = (y.view(torch.uint16).view(-1).numpy() for y in (x, *found))
    pieces = range(0, len(numbers), CHUNK_LOOKUPS)
    calls = [
        (numbers[start : start + CHUNK_LOOKUPS], table, output[start : start + CHUNK_LOOKUPS])
        for start in pieces
        for table, output in zip(tables, outputs, strict=True)
    ]
    run_threads(table_kernels.look_up, calls, torch.get_num_threads())
    return found


def _chunks(x: Tensor) -> tuple[Tensor, ...]:
    return torch.split(x.view(-1), CHUNK_VALUES)


def vocabulary_loss(
    states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy of tokens `labels` (M,) at states (M, E), and how many have the highest logit.

    `weights` (M,) multiply the losses of the labels; None: all are 1.
    """
    if torch.compiler.is_compiling():
        logits = F.linear(states, table, bias)  # (M, V)
        losses = F.cross_entropy(logits, labels, reduction="none")  # (M,)
        loss = (losses if weights is None else losses * weights).sum()
        return loss, (logits.argmax(-1) == labels).sum()
    if torch.is_autocast_enabled(states.device.type):
        states = states.to(torch.get_autocast_dtype(states.device.type))
    table, bias = table.to(states.dtype), bias.to(states.dtype)
    if not torch.is_grad_enabled():  # otherwise the function would compute gradients anyway
        states, table, bias = states.detach(), table.detach(), bias.detach()
    loss, correct = _VocabularyLoss.apply(states, table, bias, labels, weights)  # type: ignore[no-untyped-call]
    return loss, correct


class _VocabularyLoss(torch.autograd.Function):
    """Loss and gradients in one pass over chunks of C rows of logits; the full logits (M, V) never exist."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        loss = states.new_zeros((), dtype=torch.promote_types(states.dtype, torch.float32))
        correct = labels.new_zeros(())
        is_training = any(ctx.needs_input_grad)
        # At least float32: summed over chunks in half precision, gradients would lose their last decimals.
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
        for start in range(0, max(1, len(labels)), num_rows):  # if there are no labels, one pass for zero gradients
            rows = slice(start, start + num_rows)
            targets = labels[rows, None]  # (C, 1)
            logits = F.linear(states[rows], table, bias).to(loss.dtype)  # (C, V)
            of_label, largest = logits.gather(1, targets), logits.amax(-1, keepdim=True)  # (C, 1) each
            # Logits rounded to few bits are often equal; then only the first of them is the prediction.
            is_rounded = states.dtype != loss.dtype
            is_right = logits.argmax(-1, keepdim=True) == targets if is_rounded else of_label == largest
            probabilities = torch.softmax(logits, -1, out=logits)  # (C, V), in the memory of the logits
            # The best token's probability is at least 1 / V, so its logarithm is finite; the label's may not be.
            losses = largest - probabilities.amax(-1, keepdim=True).log() - of_label  # (C, 1)
            of_rows = None if weights is None else weights[rows, None].to(loss.dtype)
            loss += (losses if of_rows is None else losses * of_rows).sum()
            correct += is_right.sum()
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
    """Add the gradients of a chunk with states (C, E), whose logits have the gradient `error` (C, V)."""
    of_states, of_table, of_bias = gradients  # (M, E), (V, E), (V,)
    of_bias += error.sum(0)
    error = error.to(table.dtype)
    of_states[rows] = error @ table
    # The first chunk is written, not added: zeroing would be one more pass over the table.
    if states.dtype == of_table.dtype:
        of_table.addmm_(error.t(), states, beta=1 if rows.start else 0)
    elif rows.start:
        of_table += error.t() @ states
    else:
        of_table.copy_(error.t() @ states)
