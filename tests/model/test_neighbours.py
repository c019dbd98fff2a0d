"""The initial weights whose heads attend to neighbours."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from litebert.model.config import ModelConfig
from litebert.model.model import Model, build_model
from litebert.model.neighbours import OFFSETS
from litebert.model.presets import preset

NANO = preset("nano")
SHAPES = {
    "wide": replace(NANO, embedding_size=128, hidden_size=256, ffn_size=64, num_heads=4),
    "no projection": replace(NANO, embedding_size=64, hidden_size=64, ffn_size=64, num_heads=4),
    "narrower than its embeddings": replace(NANO, embedding_size=64, hidden_size=48, ffn_size=64, num_heads=2),
    "many heads": replace(NANO, embedding_size=128, hidden_size=312, ffn_size=64, num_heads=12),
    "not shared": replace(NANO, sharing="none"),
}


def looking(config: ModelConfig) -> Model:
    return build_model(replace(config, initializer="neighbours", initializer_range=0.05), ["mlm"], seed=3)


def attention_by_offset(model: Model, block: int) -> Tensor:
    """The mean attention of each head to the places -3..3 further on (heads, 7), over random words."""
    weights = attention_weights(model, block)
    return torch.stack([weights.diagonal(offset, 2, 3).mean((0, 2)) for offset in range(-3, 4)], -1)


def attention_to_second_half(model: Model) -> Tensor:
    """Of each head (heads,): the share of its attention that the second segment has, if there is one."""
    return attention_weights(model, 0)[..., 30:].sum(-1).mean((0, 2))


def attention_weights(model: Model, block: int) -> Tensor:
    """(B, heads, 60, 60), over random words of which the second half is a segment of its own."""
    token_ids = torch.randint(5, NANO.vocab_size, (4, 60), generator=torch.Generator().manual_seed(1))
    segment_ids = (torch.arange(60) >= 30).long().expand(4, 60) if model.config.num_segments == 2 else None
    attention = model.encoder.attention[block]
    with torch.no_grad():
        hidden = model.encoder.embeddings(token_ids, segment_ids, None)
        query, key = attention._split(attention.query(hidden)), attention._split(attention.key(hidden))
        return (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(-1)


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "narrower than its embeddings"])
def test_the_first_heads_attend_to_the_offsets_for_any_words(name: str) -> None:
    model = looking(SHAPES[name])
    for block in range(len(model.encoder.attention)):
        seen = attention_by_offset(model, block)
        for weights, offset in zip(seen, OFFSETS, strict=False):
            assert int(weights.argmax()) - 3 == offset
            assert weights.max() > 0.3  # of 60 places, where random weights give each about 0.02
        assert seen[len(OFFSETS) :].lt(0.05).all()  # the other heads look no nearer than elsewhere


def test_four_heads_look_at_four_different_neighbours() -> None:
    seen = attention_by_offset(looking(SHAPES["wide"]), 0)
    assert {int(offset) - 3 for offset in seen.argmax(-1)} == {-2, -1, 1, 2}


@pytest.mark.parametrize("config", [SHAPES["many heads"], replace(SHAPES["no projection"], num_heads=8)])
def test_the_two_heads_after_them_look_at_a_segment_each(config: ModelConfig) -> None:
    weights = attention_to_second_half(looking(config))
    first, second, *others = weights[len(OFFSETS) :].tolist()
    assert first < 0.05
    assert second > 0.95
    assert all(0.4 < other < 0.6 for other in [*weights[: len(OFFSETS)].tolist(), *others])


def test_what_they_read_reaches_the_first_token() -> None:
    """Two inputs of other words must differ there: from equal states no sentence order can be learned."""
    config = replace(SHAPES["many heads"], num_layers=1)
    as_drawn = spread_of_first_token(looking(replace(config, num_segments=1)))
    assert spread_of_first_token(looking(config)) > 1.5 * as_drawn


def spread_of_first_token(model: Model) -> float:
    """How far its last states (inputs, H) are from each other, over inputs that all begin with the same token."""
    token_ids = torch.randint(5, NANO.vocab_size, (16, 60), generator=torch.Generator().manual_seed(1))
    token_ids[:, 0] = 2
    segment_ids = (torch.arange(60) >= 30).long().expand(16, 60) if model.config.num_segments == 2 else None
    with torch.no_grad():
        hidden = model.encoder(token_ids, segment_ids).hidden
    return float(hidden[:, 0].std(0).mean())


@pytest.mark.parametrize("num_layers", [2, 4, 8, 12])
def test_what_they_read_does_not_drown_the_words(num_layers: int) -> None:
    """Where all places end alike, hidden words cannot be learned: with 4 % of the spread left, four passes are not."""
    config = replace(NANO, embedding_size=128, hidden_size=128, ffn_size=512, num_heads=8, num_layers=num_layers)
    token_ids = torch.randint(5, NANO.vocab_size, (4, 60), generator=torch.Generator().manual_seed(1))
    segment_ids = (torch.arange(60) >= 30).long().expand(4, 60)
    with torch.no_grad():
        hidden = looking(config).encoder(token_ids, segment_ids).hidden
    spread = (hidden - hidden.mean(1, keepdim=True)).square().mean() / hidden.square().mean()
    assert spread > 0.1


def test_a_model_of_one_segment_has_no_such_heads() -> None:
    weights = attention_to_second_half(looking(replace(SHAPES["many heads"], num_segments=1)))
    assert all(0.4 < weight < 0.6 for weight in weights.tolist())


def test_an_embedding_that_is_wider_than_the_model_can_be_begun_with_too() -> None:
    assert all(parameter.isfinite().all() for parameter in looking(SHAPES["narrower than its embeddings"]).parameters())


def test_a_head_looks_at_the_same_offset_at_every_position() -> None:
    table = looking(SHAPES["wide"]).encoder.embeddings.position.weight
    products = [float(one @ other) for one, other in pairwise(table.detach())]
    assert products == pytest.approx([products[0]] * len(products), rel=1e-4)


def test_what_is_not_about_position_stays_as_drawn() -> None:
    ours = looking(SHAPES["wide"])
    drawn = build_model(replace(ours.config, initializer="normal"), ["mlm"], seed=3)
    changed = {
        name
        for (name, one), other in zip(ours.named_parameters(), drawn.parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert changed == {
        *(f"encoder.embeddings.{part}.weight" for part in ("token", "segment", "position", "projection")),
        *(f"encoder.attention.0.{part}.weight" for part in ("query", "key")),
    }
