"""Laws that any encoder of this kind obeys, with any weights."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from torch import Tensor

from litebert.core.errors import ConfigError, DataError
from litebert.model.config import ModelConfig
from litebert.model.dropout import RowNoise
from litebert.model.encoder import Encoder
from litebert.model.model import Model, build_model
from litebert.model.sharing import Sharing, group_of

TINY = ModelConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=12,
    ffn_size=20,
    num_layers=4,
    num_heads=2,
    max_positions=16,
    initializer_range=0.3,
)
SHARINGS: list[Sharing] = ["all", "attention", "ffn", "none", "groups", "sandwich"]


def tiny(sharing: Sharing = "all", **changes: object) -> ModelConfig:
    groups = 2 if sharing == "groups" else 1
    return replace(TINY, sharing=sharing, num_groups=groups, **changes)  # type: ignore[arg-type]


def build(config: ModelConfig) -> Encoder:
    return build_model(config).eval().encoder


def draw_ids(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, TINY.vocab_size, shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=25)
@given(
    sharing=st.sampled_from(SHARINGS),
    lengths=st.lists(st.integers(1, 16), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_padding_does_not_change_real_tokens(sharing: Sharing, lengths: list[int], seed: int) -> None:
    encoder = build(tiny(sharing))
    token_ids = draw_ids(len(lengths), 16, seed=seed)
    mask = torch.arange(16) < torch.tensor(lengths)[:, None]
    padded = encoder(token_ids, mask=mask)
    for row, length in enumerate(lengths):
        alone = encoder(token_ids[row : row + 1, :length])
        torch.testing.assert_close(padded.hidden[row, :length], alone.hidden[0], atol=1e-5, rtol=0)


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4).filter(lambda x: sum(x) <= 16), seed=st.integers(0, 99)
)
def test_packed_sequences_do_not_see_each_other(lengths: list[int], seed: int) -> None:
    encoder = build(TINY)
    token_ids = draw_ids(1, 16, seed=seed)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    sequence_ids = torch.zeros(1, 16, dtype=torch.long)
    position_ids = torch.zeros(1, 16, dtype=torch.long)
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True), start=1):
        sequence_ids[0, start : start + length] = number
        position_ids[0, start : start + length] = torch.arange(length)
    packed = encoder(token_ids, position_ids=position_ids, sequence_ids=sequence_ids).hidden
    assert packed.isfinite().all()
    for start, length in zip(starts, lengths, strict=True):
        alone = encoder(token_ids[:, start : start + length]).hidden
        torch.testing.assert_close(packed[:, start : start + length], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_permuting_the_batch_permutes_the_output(sharing: Sharing) -> None:
    encoder = build(tiny(sharing))
    token_ids, order = draw_ids(5, 9), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(encoder(token_ids).hidden[order], encoder(token_ids[order]).hidden, atol=1e-5, rtol=0)


@pytest.mark.parametrize("num_inner", [1, 2])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_an_unshared_model_with_copied_weights_equals_the_shared_one(sharing: Sharing, num_inner: int) -> None:
    shared = build(tiny(sharing, num_inner=num_inner))
    unshared = build(tiny("none", num_inner=num_inner))
    copy_blocks(shared, unshared)
    token_ids = draw_ids(2, 9)
    assert torch.equal(shared(token_ids).hidden, unshared(token_ids).hidden)


def copy_blocks(shared: Encoder, unshared: Encoder) -> None:
    unshared.embeddings.load_state_dict(shared.embeddings.state_dict())
    for layer, (attention_index, ffn_index) in enumerate(shared.plan.rows):
        unshared.attention[layer].load_state_dict(shared.attention[attention_index].state_dict())
        unshared.ffn[layer].load_state_dict(shared.ffn[ffn_index].state_dict())


def test_as_many_groups_as_layers_equals_no_sharing() -> None:
    assert replace(TINY, sharing="groups", num_groups=4).layer_plan == tiny("none").layer_plan


def test_the_layers_between_the_first_and_the_last_of_a_sandwich_are_one_at_any_depth() -> None:
    assert tiny("sandwich", num_layers=5).layer_plan.rows == ((0, 0), (1, 1), (1, 1), (1, 1), (2, 2))
    assert tiny("sandwich", num_layers=3).layer_plan == tiny("none", num_layers=3).layer_plan
    shallow, deep = (build(tiny("sandwich", num_layers=depth)).state_dict() for depth in (3, 6))
    assert {name: x.shape for name, x in shallow.items()} == {name: x.shape for name, x in deep.items()}


@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_gradient_of_a_shared_weight_is_the_sum_over_its_uses(sharing: Sharing) -> None:
    shared, unshared = build(tiny(sharing)).double(), build(tiny("none")).double()
    copy_blocks(shared, unshared)
    for encoder in (shared, unshared):
        encoder(draw_ids(2, 9)).hidden.square().sum().backward()
    for bank_name in ("attention", "ffn"):
        column = 0 if bank_name == "attention" else 1
        for index, block in enumerate(getattr(shared, bank_name)):
            uses = [layer for layer, row in enumerate(shared.plan.rows) if row[column] == index]
            for name, parameter in block.named_parameters():
                copies = [dict(getattr(unshared, bank_name)[layer].named_parameters())[name] for layer in uses]
                torch.testing.assert_close(parameter.grad, sum(copy.grad for copy in copies))


def test_shared_weights_exist_once_in_the_state_dict() -> None:
    names = [name for name in build(tiny("all")).state_dict() if "query.weight" in name or "up.weight" in name]
    assert names == ["attention.0.query.weight", "ffn.0.up.weight"]


@pytest.mark.parametrize("num_layers", range(1, 49))
def test_the_group_map_is_even_and_in_order(num_layers: int) -> None:
    for num_groups in range(1, num_layers + 1):
        groups = [group_of(layer, num_layers, num_groups) for layer in range(num_layers)]
        sizes = [groups.count(group) for group in range(num_groups)]
        assert groups == sorted(groups)
        assert set(groups) == set(range(num_groups))
        assert max(sizes) - min(sizes) <= 1
    assert [group_of(layer, num_layers, num_layers) for layer in range(num_layers)] == list(range(num_layers))


def test_the_group_map_of_twelve_layers_in_three_groups() -> None:
    assert [group_of(layer, 12, 3) for layer in range(12)] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_an_explicit_layer_map_is_used_as_written() -> None:
    ffn_then_attention = ((0, 0), (0, 1), (1, 1), (1, 0))
    config = replace(TINY, sharing="map", layer_map=ffn_then_attention)
    assert config.layer_plan.rows == ffn_then_attention
    encoder = build(config)
    assert (len(encoder.attention), len(encoder.ffn)) == (2, 2)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_reading_some_positions_gives_the_same_as_reading_all(sharing: Sharing, is_packed: bool) -> None:
    encoder = build(tiny(sharing))
    token_ids, read_at = draw_ids(2, 9), torch.tensor([[4, 0, 8, 8], [1, 2, 3, 0]])  # in any order, [CLS] or not
    mask = torch.arange(9) < torch.tensor([9, 5])[:, None]
    seen = {"sequence_ids": mask.long() + (torch.arange(9) > 3)} if is_packed else {"mask": mask}
    everywhere = encoder(token_ids, **seen, return_layers=True)
    some = encoder(token_ids, **seen, read_at=read_at)
    wanted = torch.stack([everywhere.hidden[row, columns] for row, columns in enumerate(read_at)])
    torch.testing.assert_close(some.hidden, wanted, atol=1e-6, rtol=0)


def test_reading_some_positions_of_packed_rows_gives_the_same_as_reading_all() -> None:
    encoder = build(TINY)
    token_ids, read_at = draw_ids(2, 9), torch.tensor([[0, 3, 4, 8], [0, 8, 0, 0]])
    sequence_ids = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 3, 3], [1, 1, 1, 1, 1, 2, 2, 0, 0]])
    everywhere = encoder(token_ids, sequence_ids=sequence_ids).hidden
    some = encoder(token_ids, sequence_ids=sequence_ids, read_at=read_at).hidden
    wanted = torch.stack([everywhere[row, columns] for row, columns in enumerate(read_at)])
    torch.testing.assert_close(some, wanted, atol=1e-6, rtol=0)


def test_layers_are_returned_with_the_first_ones_input_on_request_only() -> None:
    encoder = build(TINY)
    token_ids = draw_ids(2, 9)
    assert encoder(token_ids).layers == ()
    output = encoder(token_ids, return_layers=True)
    assert len(output.layers) == TINY.num_layers + 1
    assert torch.equal(output.layers[0], encoder.embeddings(token_ids, None, None))
    assert torch.equal(output.layers[-1], output.hidden)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_layers_called_one_by_one_give_what_the_encoder_gives(sharing: Sharing) -> None:
    encoder = build(tiny(sharing))
    token_ids = draw_ids(2, 9)
    mask = torch.arange(9) < torch.tensor([9, 5])[:, None]
    hidden = encoder.embeddings(token_ids, None, None)
    for layer in encoder.list_layers():
        hidden = layer(hidden, encoder.build_masks(hidden, mask))
    assert torch.equal(hidden, encoder(token_ids, mask=mask).hidden)


def test_the_pooler_computes_only_where_it_is_read() -> None:
    encoder, token_ids = build(TINY), draw_ids(2, 9)
    calls: list[object] = []
    assert encoder.pooler is not None
    encoder.pooler.register_forward_hook(lambda *_: calls.append(1))
    everywhere = encoder(token_ids).hidden
    encoder(token_ids, read_at=torch.tensor([[3], [4]]))
    assert not calls
    pooled = encoder.pool_sequences(token_ids, None, None)
    assert len(calls) == 1
    torch.testing.assert_close(pooled, encoder.pool(everywhere[:, 0]), atol=1e-6, rtol=0)


def test_no_projection_where_the_embedding_is_as_wide_as_the_layers() -> None:
    assert build(replace(TINY, embedding_size=12)).embeddings.projection is None
    assert build(replace(TINY, embedding_size=12, projection="always")).embeddings.projection is not None
    assert build(TINY).embeddings.projection is not None


def test_dropout_acts_in_training_after_embeddings_attention_and_feed_forward() -> None:
    config = replace(TINY, hidden_dropout_rate=0.999999, attention_dropout_rate=0.0, embedding_size=12)
    encoder = build(config).train()
    layers = encoder(draw_ids(1, 9), return_layers=True).layers
    assert (layers[0] == 0).float().mean() > 0.9  # no projection here: the dropped embedding is what we see
    with torch.no_grad():  # a dropped update leaves norm(norm(x)), so that the feed-forward update was dropped too
        through = encoder.ffn[0].norm(encoder.attention[0].norm(layers[0]))
    torch.testing.assert_close(layers[1], through, atol=0.2, rtol=0.2)


def test_matrices_are_truncated_normal_biases_zero_and_scales_one() -> None:
    model = build_model(replace(TINY, vocab_size=5_000, initializer_range=0.02), ["mlm", "sentence"])
    table = model.encoder.embeddings.token.weight.detach()
    assert table.abs().max() <= 0.04
    # a normal cut at two sigma has 0.8796 of its spread
    assert float(table.std()) == pytest.approx(0.02 * 0.8796, rel=0.02)
    assert not table[0].eq(0).any(), "the padding row is an ordinary row, as in the official code"
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert parameter.eq(0).all()
        elif "norm" in name:
            assert parameter.eq(1).all()


def test_initialisation_depends_on_the_seed_and_not_on_the_other_tensors() -> None:
    def first_query(model: Model) -> Tensor:
        return model.encoder.attention[0].query.weight  # type: ignore[no-any-return, union-attr]

    plain, with_head, reseeded = build_model(TINY), build_model(tiny("none"), ["mlm"]), build_model(TINY, seed=1)
    assert torch.equal(first_query(plain), first_query(with_head))
    assert not torch.equal(first_query(plain), first_query(reseeded))


def test_a_sequence_longer_than_the_positions_is_refused_by_name() -> None:
    with refuses(DataError, "text-too-long"):
        build(TINY)(draw_ids(1, 17))


@pytest.mark.parametrize("bad", [-1, 50, 10**9])
def test_a_token_outside_the_vocabulary_is_refused_by_name(bad: int) -> None:
    token_ids = draw_ids(1, 5)
    token_ids[0, 3] = bad
    with refuses(DataError, "id-out-of-range"):
        build(TINY)(token_ids)


def test_a_segment_that_the_model_has_not_is_refused_by_name() -> None:
    with refuses(DataError, "id-out-of-range"):
        build(TINY)(draw_ids(1, 3), segment_ids=torch.tensor([[0, 1, 2]]))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"num_heads": 5}, "heads-do-not-divide"),
        ({"num_layers": 0}, "out-of-range"),
        ({"initializer": "neighbours", "num_heads": 32, "hidden_size": 32}, "conflicting-options"),
        ({"initializer": "neighbours", "embedding_size": 3}, "conflicting-options"),
        ({"hidden_dropout_rate": 1.0}, "out-of-range"),
        ({"sharing": "some"}, "unknown-value"),
        ({"activation": "swish"}, "unknown-value"),
        ({"num_groups": 2}, "conflicting-keys"),
        ({"sharing": "groups", "num_groups": 5}, "conflicting-keys"),
        ({"sharing": "sandwich", "num_layers": 2}, "conflicting-keys"),
        ({"layer_map": ((0, 0),)}, "conflicting-keys"),
        ({"sharing": "map", "layer_map": ((0, 0),)}, "bad-layer-map"),
        ({"sharing": "map", "layer_map": ((0, 0), (2, 0), (2, 0), (2, 0))}, "bad-layer-map"),
    ],
)
def test_an_impossible_configuration_is_refused_with_field_value_and_remedy(
    changes: dict[str, object], code: str
) -> None:
    with refuses(ConfigError, code):
        replace(TINY, **changes)  # type: ignore[arg-type]


def test_the_dropout_of_a_row_does_not_depend_on_the_other_rows() -> None:
    x = torch.ones(3, 5, 7)
    dropped = RowNoise([11, 12, 13], layer=2).drop(x, 0.5, "here")
    assert torch.equal(RowNoise([13], layer=2).drop(x[:1], 0.5, "here"), dropped[2:])
    assert torch.equal(RowNoise([12], layer=2).drop(x[:1, :3], 0.5, "here"), dropped[1:2, :3])
    for other in (RowNoise([14], layer=2), RowNoise([13], layer=1)):
        assert not torch.equal(other.drop(x[:1], 0.5, "here"), dropped[2:])
    assert not torch.equal(RowNoise([13], layer=2).drop(x[:1], 0.5, "there"), dropped[2:])
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    many = RowNoise([1]).drop(torch.ones(1, 100_000), 0.3, "here")
    assert float(many.mean()) == pytest.approx(1, abs=0.01)


def test_layers_are_listed_in_the_number_format_of_the_weights() -> None:
    encoder = build(tiny()).double()
    hidden = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert {layer(hidden, encoder.build_masks(hidden, None)).dtype for layer in encoder.list_layers()} == {
        torch.float64
    }
