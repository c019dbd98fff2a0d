"""Lean operations equal their plain forms, gradients included, and stay out of traced graphs."""

from collections.abc import Callable
from unittest import mock

import pytest
import torch
from torch.nn import functional as F

from litebert.model import lean
from litebert.model.model import build_model
from litebert.model.presets import preset


@pytest.mark.parametrize("logits_at_once", [1, 120, 10**6])
def test_the_vocabulary_loss_does_not_depend_on_how_many_logits_exist_at_once(
    logits_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean, "CHUNK_LOGITS", logits_at_once)
    generator = torch.Generator().manual_seed(0)
    states, table, bias = (torch.randn(shape, generator=generator).double() for shape in ((7, 4), (50, 4), (50,)))
    inputs = [x.requires_grad_() for x in (states, table, bias)]
    labels = torch.arange(7)
    expected = F.cross_entropy(F.linear(states, table, bias), labels, reduction="sum")
    loss, _ = lean.vocabulary_loss(states, table, bias, labels)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    ours, plain = (torch.autograd.grad(3 * x.double(), inputs) for x in (loss, expected))
    torch.testing.assert_close(ours, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("logits_at_once", [1, 120, 10**6])
def test_weights_multiply_the_loss_and_the_gradients_of_their_targets(
    logits_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean, "CHUNK_LOGITS", logits_at_once)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).double().requires_grad_() for shape in ((7, 4), (50, 4), (50,))]
    states, table, bias = inputs
    labels, weights = torch.arange(7), torch.tensor([0.0, 0.5, 1.0, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)
    expected = (weights * F.cross_entropy(F.linear(states, table, bias), labels, reduction="none")).sum()
    loss, correct = lean.vocabulary_loss(states, table, bias, labels, weights)
    torch.testing.assert_close(loss, expected)
    ours, plain = (torch.autograd.grad(x, inputs) for x in (loss, expected))
    torch.testing.assert_close(ours, plain)
    alike, unweighted = (lean.vocabulary_loss(*inputs, labels, w) for w in (torch.ones(7), None))
    assert torch.equal(alike[0], unweighted[0])
    assert int(correct) == int(unweighted[1])  # a right answer counts once, whatever it weighs


def test_the_vocabulary_loss_in_few_bits_adds_up_as_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).bfloat16() for shape in ((400, 8), (50, 8), (50,))]
    labels = torch.arange(400) % 50
    errors = []
    for logits_at_once in (10**6, 50):
        monkeypatch.setattr(lean, "CHUNK_LOGITS", logits_at_once)
        few, many = (
            [x.detach().to(dtype).requires_grad_() for x in inputs] for dtype in (torch.bfloat16, torch.float64)
        )
        for tensors in (few, many):
            lean.vocabulary_loss(*tensors, labels)[0].backward()
        exact = many[1].grad
        assert few[1].grad is not None
        assert exact is not None
        errors.append(float((few[1].grad.double() - exact).norm() / exact.norm()))
    assert errors[1] < 1.5 * errors[0]


def test_what_is_only_measured_computes_no_gradients() -> None:
    inputs = [torch.randn(shape, requires_grad=True) for shape in ((3, 4), (9, 4), (9,))]
    with torch.no_grad(), mock.patch.object(lean, "_add_gradients", side_effect=AssertionError):
        lean.vocabulary_loss(*inputs, torch.arange(3))


def test_the_vocabulary_loss_of_no_words_has_gradients_of_zero() -> None:
    inputs = [torch.randn(shape, requires_grad=True) for shape in ((0, 4), (9, 4), (9,))]
    loss, correct = lean.vocabulary_loss(*inputs, torch.empty(0, dtype=torch.int64))
    loss.backward()
    assert (float(loss.detach()), int(correct)) == (0.0, 0)
    assert all(x.grad is not None and not x.grad.any() for x in inputs)


def test_the_vocabulary_loss_of_a_hopeless_word_is_finite() -> None:
    states, table = torch.tensor([[1.0]], requires_grad=True), torch.tensor([[1000.0], [-1000.0]])
    loss, correct = lean.vocabulary_loss(states, table, torch.zeros(2), torch.tensor([1]))
    assert (float(loss.detach()), int(correct)) == (2000.0, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_lean_gelu_is_torchs_and_so_is_its_slope(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "CHUNK_VALUES", 64)
    x = torch.linspace(-12, 12, 300, dtype=dtype).view(30, 10).requires_grad_()
    identity, zero = torch.eye(10, dtype=dtype), torch.zeros(10, dtype=dtype)
    ours, theirs = lean.activated_linear(x, identity, zero, lean.gelu_tanh), lean.gelu_tanh(x)
    weights = torch.arange(1, 301, dtype=dtype).view(30, 10) / 300
    torch.testing.assert_close(ours, theirs)
    slopes = [torch.autograd.grad((y * weights).sum(), x) for y in (ours, theirs)]
    torch.testing.assert_close(slopes[0], slopes[1])


def test_compiling_and_exporting_see_plain_operations_only() -> None:
    encoder = build_model(preset("nano")).encoder
    token_ids = torch.arange(10).view(2, 5)
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(token_ids).hidden, encoder(token_ids).hidden)
    exported = torch.export.export(encoder.eval(), (token_ids,))
    called = {str(node.target) for node in exported.graph.nodes}
    assert "aten.gelu.default" in called
    assert not any("sigmoid" in name for name in called), called


@pytest.mark.parametrize("activation", [lean.gelu_tanh, F.gelu, F.relu])
def test_an_activation_in_bf16_is_the_exact_one_rounded_and_so_is_its_slope(
    activation: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.randn(60, 50, generator=torch.Generator().manual_seed(0)).mul_(4).bfloat16().requires_grad_()
    exact = x.detach().double().requires_grad_()
    identity, zero = torch.eye(50, dtype=x.dtype), torch.zeros(50, dtype=x.dtype)
    ours, theirs = lean.activated_linear(x, identity, zero, activation), activation(exact)
    assert torch.equal(ours.detach(), theirs.detach().bfloat16())
    slopes = [torch.autograd.grad(y.sum(), x_) for y, x_ in ((ours, x), (theirs, exact))]
    assert torch.equal(slopes[0][0], slopes[1][0].bfloat16())


@pytest.mark.parametrize("scores_at_once", [1, 2 * 3 * 7 * 9, 10**6])
@pytest.mark.parametrize("mask_shape", [None, (4, 1, 1, 9), (4, 1, 7, 9), (1, 1, 7, 9)])
def test_attention_in_bf16_is_near_the_exact_one_and_so_are_its_gradients(
    scores_at_once: int, mask_shape: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean, "CHUNK_SCORES", scores_at_once)
    generator = torch.Generator().manual_seed(0)
    shapes = ((4, 3, 7, 8), (4, 3, 9, 8), (4, 3, 9, 8))
    inputs = [torch.randn(shape, generator=generator).bfloat16().requires_grad_() for shape in shapes]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = None
    if mask_shape:
        is_hidden = torch.rand(mask_shape, generator=generator) < 0.3
        mask = torch.zeros(is_hidden.shape, dtype=torch.bfloat16).masked_fill(is_hidden, -torch.inf)
    ours = lean.attend(*inputs, mask)
    theirs = F.scaled_dot_product_attention(*exact, attn_mask=None if mask is None else mask.double())
    weights = torch.randn(theirs.shape, generator=generator).bfloat16()
    ours_and_gradients = (ours, *torch.autograd.grad((ours * weights).sum(), inputs))
    theirs_and_gradients = (theirs, *torch.autograd.grad((theirs * weights.double()).sum(), exact))
    for near, right in zip(ours_and_gradients, theirs_and_gradients, strict=True):
        assert (near.double() - right).norm() < 0.01 * right.norm()


def test_rounded_logits_that_are_equal_are_one_guess() -> None:
    states, table = torch.ones(3, 1, dtype=torch.bfloat16), torch.ones(4, 1, dtype=torch.bfloat16)
    _, correct = lean.vocabulary_loss(states, table, torch.zeros(4), torch.tensor([0, 1, 2]))
    assert int(correct) == 1
