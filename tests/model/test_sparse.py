"""Sparse attention equals full attention under a mask that says in plain loops which token sees which."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from torch import Tensor
from torch.nn import functional as F

from litebert.core.errors import ConfigError
from litebert.model.config import Attention, HeadSpec, ModelConfig
from litebert.model.early_exit import read_every_layer
from litebert.model.engine import HeadInputs
from litebert.model.model import build_model
from litebert.model.sparse import SparseMask, attend_sparsely, build_sparse_mask, see_densely

TINY = ModelConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=12,
    ffn_size=20,
    num_layers=4,
    num_heads=3,
    max_positions=128,
    initializer_range=0.3,
    attention="window",
    attention_width=4,
)


def list_seen(config: ModelConfig, sequence_ids: Tensor) -> Tensor:
    """The definition (B, N, T, T), token by token."""
    batch_size, length = sequence_ids.shape
    seen = torch.zeros(batch_size, config.num_heads, length, length, dtype=torch.bool)
    shifts = {1: [0], 2: [0, 1], 3: [0, 0, 1], 4: [0, 0, 1, -1]}[config.num_heads]
    for row, ids in enumerate(sequence_ids.tolist()):
        for i, of_query in enumerate(ids):
            for j, of_key in enumerate(ids):
                if of_query != of_key or of_key == 0:
                    continue
                start, size, width = ids.index(of_key), ids.count(of_key), config.attention_width
                for head, shift in enumerate(shifts):
                    if config.attention == "window":
                        near = abs(i - j) <= width
                    else:
                        blocks = -(-size // width)
                        near = ((i - start) // width + shift) % blocks == (j - start) // width
                    near |= min(i - start, j - start) < config.num_global_tokens
                    seen[row, head, i, j] = near
    return seen


@st.composite
def batches(draw: st.DrawFn) -> Tensor:
    """Sequence ids (B, T): a padding mask, or packed sequences with padding after them."""
    length = draw(st.integers(1, 90))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        ids: list[int] = []
        if draw(st.booleans()):
            for number in range(1, draw(st.integers(1, 6)) + 1):
                ids += [number] * draw(st.integers(1, 40))
        else:
            ids = [1] * draw(st.integers(1, length))
        rows.append((ids + [0] * length)[:length])
    if draw(st.booleans()):
        rows = [[1] * length for _ in rows]
    return torch.tensor(rows)


@settings(max_examples=80, deadline=None)
@given(
    sequence_ids=batches(),
    attention=st.sampled_from(["window", "block"]),
    width=st.sampled_from([1, 2, 5, 8, 17, 20, 100]),
    num_global=st.sampled_from([0, 1, 2, 7]),
    num_heads=st.sampled_from([1, 2, 4]),
    plain=st.booleans(),
)
def test_outputs_and_gradients_equal_those_of_dense_attention(
    sequence_ids: Tensor, attention: Attention, width: int, num_global: int, num_heads: int, plain: bool
) -> None:
    config = replace(
        TINY,
        attention=attention,
        attention_width=width,
        num_global_tokens=num_global,
        num_heads=num_heads,
        hidden_size=4 * num_heads,
    )
    seen = list_seen(config, sequence_ids)
    assert torch.equal(see_densely(config, sequence_ids).expand_as(seen), seen)
    generator = torch.Generator().manual_seed(0)
    is_real = sequence_ids > 0
    projected = torch.randn(*sequence_ids.shape, 12 * num_heads, generator=generator)
    upstream = torch.randn(*sequence_ids.shape, 4 * num_heads, generator=generator) * is_real[..., None]
    expected, expected_gradient = differentiate(lambda x: attend_densely(x, seen, num_heads), projected, upstream)
    mask = build_sparse_mask(config, sequence_ids, torch.float32)
    if isinstance(mask, SparseMask):
        assert count_largest(mask) <= 48 + 3 * width + num_global * len(sequence_ids[0])
        compute = lambda x: attend_sparsely(x, mask, num_heads, rate=1e-9 if plain else 0.0)  # noqa: E731
    else:
        compute = lambda x: attend_by_scores(x, mask, num_heads)  # noqa: E731
    context, gradient = differentiate(compute, projected, upstream)
    torch.testing.assert_close(context[is_real], expected[is_real], atol=1e-5, rtol=0)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-5)


def count_largest(mask: SparseMask) -> int:
    """The most scores that a query has."""
    local = mask.local
    masks = [span.mask for span in local.spans] if hasattr(local, "spans") else [local.mask]
    return max(x.shape[-1] for x in masks)


def split_heads(projected: Tensor, num_heads: int) -> Any:
    return (x.unflatten(2, (num_heads, -1)).transpose(1, 2) for x in projected.chunk(3, -1))


def attend_densely(projected: Tensor, seen: Tensor, num_heads: int) -> Tensor:
    query, key, value = split_heads(projected, num_heads)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~seen, -1e30).softmax(-1)
    return (weights @ value).transpose(1, 2).flatten(2)


def attend_by_scores(projected: Tensor, mask: Tensor | None, num_heads: int) -> Tensor:
    return F.scaled_dot_product_attention(*split_heads(projected, num_heads), attn_mask=mask).transpose(1, 2).flatten(2)


def differentiate(compute: Any, projected: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    projected = projected.clone().requires_grad_()
    context = compute(projected)
    context.backward(upstream)
    assert projected.grad is not None
    return context.detach(), projected.grad


SPARSE = [
    replace(TINY, attention=attention, full_attention_every=every, attention_width=width)
    for attention, every, width in (("window", 0, 4), ("window", 2, 3), ("block", 0, 8), ("block", 3, 5))
]


def draw_ids(*shape: int) -> Tensor:
    return torch.randint(0, TINY.vocab_size, shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("config", SPARSE)
def test_neither_padding_nor_packing_changes_real_tokens(config: ModelConfig) -> None:
    encoder, token_ids = build_model(config).eval().encoder, draw_ids(1, 100)
    lengths = [41, 30, 20]
    sequence_ids = torch.tensor([[1] * 41 + [2] * 30 + [3] * 20 + [0] * 9])
    position_ids = torch.cat([torch.arange(n) for n in (*lengths, 9)])[None]
    packed = encoder(token_ids, position_ids=position_ids, sequence_ids=sequence_ids).hidden
    for length, alone in zip(lengths, token_ids[0, :91].split(lengths), strict=True):
        start = lengths.index(length) and sum(lengths[: lengths.index(length)])
        expected = encoder(alone[None]).hidden
        padded = encoder(F.pad(alone[None], (0, 90 - length)), mask=torch.arange(90)[None] < length).hidden
        torch.testing.assert_close(packed[:, start : start + length], expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(padded[:, :length], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("config", SPARSE)
def test_a_token_sees_no_other_than_its_neighbours_and_the_global_ones(config: ModelConfig) -> None:
    encoder = build_model(replace(config, num_layers=1, full_attention_every=0)).eval().encoder
    token_ids = draw_ids(1, 90)
    embedded = encoder.embeddings(token_ids, None, None).detach().requires_grad_()
    (layer,) = encoder.list_layers()
    layer(embedded, encoder.build_masks(embedded, None))[0, 50].pow(3).sum().backward()
    assert embedded.grad is not None
    seen = list_seen(config, torch.ones_like(token_ids))[0, :, 50].any(0)
    assert torch.equal(embedded.grad[0].abs().sum(-1) > 0, seen)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("config", SPARSE)
def test_reading_some_positions_gives_what_reading_all_gives(config: ModelConfig, packed: bool) -> None:
    encoder, token_ids = build_model(config).eval().encoder, draw_ids(2, 70)
    mask = torch.arange(70) < torch.tensor([70, 50])[:, None]
    seen = {"sequence_ids": mask.long() * (1 + (torch.arange(70) > 31))} if packed else {"mask": mask}
    everywhere = encoder(token_ids, **seen).hidden
    for read_at in (torch.tensor([[44, 0, 8, 8], [1, 2, 33, 0]]), torch.tensor([[0], [0]])):
        some = encoder(token_ids, **seen, read_at=read_at).hidden
        wanted = torch.stack([everywhere[row, columns] for row, columns in enumerate(read_at)])
        torch.testing.assert_close(some, wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("config", SPARSE)
def test_recomputing_layers_in_the_backward_pass_changes_no_gradient(config: ModelConfig) -> None:
    model = build_model(replace(config, hidden_dropout_rate=0.1, attention_dropout_rate=0.1)).train()
    gradients = []
    for model.encoder.recompute in (False, True):
        model.zero_grad()
        model.encoder(draw_ids(2, 70), dropout_seeds=[5, 6]).hidden.square().sum().backward()
        gradients.append([p.grad.clone() for p in model.encoder.parameters() if p.grad is not None])
    for kept, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(kept, recomputed, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", SPARSE)
def test_the_dropout_of_a_row_does_not_depend_on_its_batch(config: ModelConfig) -> None:
    encoder = build_model(config).train().encoder
    token_ids = draw_ids(3, 70)
    together = encoder(token_ids, dropout_seeds=[5, 6, 7]).hidden
    alone = encoder(token_ids[1:2], dropout_seeds=[6]).hidden
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=0)
    assert not torch.allclose(alone, encoder(token_ids[1:2], dropout_seeds=[7]).hidden, atol=1e-3)


@pytest.mark.parametrize("config", SPARSE)
def test_a_text_that_no_layer_lets_go_early_gets_the_answer_of_all_layers(config: ModelConfig) -> None:
    model = build_model(config, [HeadSpec("classification", 3)]).eval()
    mask = torch.arange(70) < torch.tensor([70, 50, 3])[:, None]
    inputs = HeadInputs(draw_ids(3, 70), torch.zeros(3, 70, dtype=torch.long), mask)
    whole = model.run("classification", inputs)["logits"]
    torch.testing.assert_close(model.run("classification", inputs._replace(patience=4))["logits"], whole)
    early = model.run("classification", inputs._replace(patience=1))
    every = read_every_layer(model, *inputs[:3])
    expected = every[early["layers"] - 1, torch.arange(3)]
    torch.testing.assert_close(early["logits"], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("config", SPARSE)
def test_in_bf16_it_is_about_the_same(config: ModelConfig) -> None:
    encoder, token_ids = build_model(replace(config, initializer_range=0.1)).eval().encoder, draw_ids(2, 70)
    exact = encoder(token_ids).hidden
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(encoder(token_ids).hidden.float(), exact, atol=0.1, rtol=0.1)


@pytest.mark.parametrize("config", SPARSE)
def test_gradients_of_training_in_bf16_are_as_near_as_those_of_full_attention(config: ModelConfig) -> None:
    encoder, token_ids = build_model(replace(config, initializer_range=0.1)).encoder, draw_ids(2, 90)
    gradients = []
    for dtype in (None, torch.bfloat16):
        encoder.training_dtype = dtype
        encoder.zero_grad()
        encoder(token_ids).hidden.float().pow(3).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
    assert (gradients[1] - gradients[0]).norm() < 0.3 * gradients[0].norm()  # full attention's are off by 0.2


@pytest.mark.parametrize("attention", ["window", "block"])
def test_a_text_shorter_than_the_window_is_computed_as_by_full_attention(attention: Attention) -> None:
    config = replace(TINY, attention=attention, attention_width=100)
    full = replace(config, attention="full", attention_width=128)
    token_ids, mask = draw_ids(2, 90), torch.arange(90) < torch.tensor([90, 50])[:, None]
    sparse, expected = (build_model(c).eval().encoder(token_ids, mask=mask).hidden for c in (config, full))
    torch.testing.assert_close(sparse[mask], expected[mask], atol=1e-5, rtol=0)
    assert torch.equal(
        build_model(config).eval().encoder(token_ids).hidden, build_model(full).eval().encoder(token_ids).hidden
    )


def test_the_numbers_of_sparse_attention_belong_to_it() -> None:
    for changes in ({"attention_width": 5}, {"num_global_tokens": 0}, {"full_attention_every": 2}):
        with refuses(ConfigError, "conflicting-keys", at=next(iter(changes))):
            replace(TINY, attention="full", **{"attention_width": 128, **changes})
    with refuses(ConfigError, "conflicting-keys", at="full_attention_every"):
        replace(TINY, full_attention_every=1)
