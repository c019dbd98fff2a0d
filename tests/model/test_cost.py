"""Counts by arithmetic equal the published figures and the built models, to the last integer."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from refusals import refuses
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from litebert.batches.batch import Batch
from litebert.core.errors import ConfigError
from litebert.model.config import HeadKind, HeadSpec, ModelConfig
from litebert.model.cost import (
    LOGITS_AT_ONCE,
    ActivationStorage,
    activation_memory,
    count_parameters,
    forward_flops_per_token,
)
from litebert.model.lean import CHUNK_LOGITS
from litebert.model.model import Model, build_model
from litebert.model.presets import PAPER_TABLES, PRESETS, preset
from litebert.model.sharing import Sharing
from litebert.objectives.masked_lm import MaskedLM

PRETRAINING = [HeadSpec("mlm"), HeadSpec("sentence")]
BASE = preset("albert-base")

# (preset, V): without pooler, with pooler, with pooler and both pre-training heads
PUBLISHED = {
    ("bert-base", 30_000): (108_490_752, 109_081_344, 109_705_010),
    ("bert-base", 30_522): (108_891_648, 109_482_240, 110_106_428),
    ("bert-large", 30_000): (333_557_760, 334_607_360, 335_691_058),
    ("bert-large", 30_522): (334_092_288, 335_141_888, 336_226_108),
    ("bert-xlarge", 30_000): (1_271_095_296, 1_275_291_648, 1_279_526_194),
    ("bert-xlarge", 30_522): (1_272_164_352, 1_276_360_704, 1_280_595_772),
    ("albert-base", 30_000): (11_092_992, 11_683_584, 11_813_810),
    ("albert-base", 30_522): (11_159_808, 11_750_400, 11_881_148),
    ("albert-large", 30_000): (16_634_368, 17_683_968, 17_847_474),
    ("albert-large", 30_522): (16_701_184, 17_750_784, 17_914_812),
    ("albert-xlarge", 30_000): (54_528_512, 58_724_864, 59_021_490),
    ("albert-xlarge", 30_522): (54_595_328, 58_791_680, 59_088_828),
    ("albert-xxlarge", 30_000): (205_814_272, 222_595_584, 223_158_450),
    ("albert-xxlarge", 30_522): (205_881_088, 222_662_400, 223_225_788),
}
# Tables 3 and 4, (E, sharing): the three counts at V = 30,000, then at V = 30,522
SHAPES: dict[tuple[int, Sharing], tuple[int, ...]] = {
    (64, "none"): (87_057_408, 87_648_000, 87_728_882, 87_090_816, 87_681_408, 87_762_812),
    (128, "none"): (89_059_584, 89_650_176, 89_780_402, 89_126_400, 89_716_992, 89_847_740),
    (256, "none"): (93_063_936, 93_654_528, 93_883_442, 93_197_568, 93_788_160, 94_017_596),
    (768, "none"): (108_490_752, 109_081_344, 109_705_010, 108_891_648, 109_482_240, 110_106_428),
    (64, "all"): (9_090_816, 9_681_408, 9_762_290, 9_124_224, 9_714_816, 9_796_220),
    (128, "all"): (11_092_992, 11_683_584, 11_813_810, 11_159_808, 11_750_400, 11_881_148),
    (256, "all"): (15_097_344, 15_687_936, 15_916_850, 15_230_976, 15_821_568, 16_051_004),
    (768, "all"): (30_524_160, 31_114_752, 31_738_418, 30_925_056, 31_515_648, 32_139_836),
    (768, "attention"): (82_487_808, 83_078_400, 83_702_066, 82_888_704, 83_479_296, 84_103_484),
    (768, "ffn"): (56_527_104, 57_117_696, 57_741_362, 56_928_000, 57_518_592, 58_142_780),
    (128, "attention"): (63_056_640, 63_647_232, 63_777_458, 63_123_456, 63_714_048, 63_844_796),
    (128, "ffn"): (37_095_936, 37_686_528, 37_816_754, 37_162_752, 37_753_344, 37_884_092),
}
GROUPS = {1: 11.68, 2: 18.77, 3: 25.86, 4: 32.95, 6: 47.12, 12: 89.65}  # millions with pooler


def three_counts(config: ModelConfig) -> tuple[int, int, int]:
    count = count_parameters(config, PRETRAINING)
    return count.without_pooler, count.with_pooler, count.total


@pytest.mark.parametrize(("name", "vocab_size"), PUBLISHED)
def test_published_models_count_as_published(name: str, vocab_size: int) -> None:
    assert three_counts(replace(preset(name), vocab_size=vocab_size)) == PUBLISHED[name, vocab_size]


@pytest.mark.parametrize(("embedding_size", "sharing"), SHAPES)
def test_the_shapes_of_tables_3_and_4_count_as_derived(embedding_size: int, sharing: Sharing) -> None:
    shape = replace(BASE, embedding_size=embedding_size, sharing=sharing)
    counts = three_counts(shape) + three_counts(replace(shape, vocab_size=30_522))
    assert counts == SHAPES[embedding_size, sharing]


@pytest.mark.parametrize("num_groups", GROUPS)
def test_group_sizes_count_as_derived(num_groups: int) -> None:
    count = count_parameters(replace(BASE, sharing="groups", num_groups=num_groups))
    assert round(count.with_pooler / 1e6, 2) == GROUPS[num_groups]


def test_albert_base_divides_into_its_parts() -> None:
    count = count_parameters(BASE, PRETRAINING)
    parts = (count.embeddings, count.projection, count.layers, count.pooler)
    assert parts == (3_906_048, 99_072, 7_087_872, 590_592)
    assert count.heads == 128_688 + 1_538
    assert count.unrolled_layers == 12 * count.layers


def test_roberta_base_counts_as_published_without_its_two_dead_position_rows() -> None:
    assert count_parameters(preset("roberta-base")).with_pooler == 124_645_632 - 2 * 768


# ours where the printed figure cannot be had from the printed shape; PaperRow.note says why
NOT_REPRODUCIBLE = {"ALBERT-xlarge": 59, "ALBERT-xxlarge": 223, "BERT-xlarge": 1271}


@pytest.mark.parametrize("table", PAPER_TABLES)
def test_the_papers_rounded_figures_come_out(table: int) -> None:
    for row in PAPER_TABLES[table]:
        count = count_parameters(row.config)
        ours = round((count.with_pooler if row.counts_pooler else count.without_pooler) / 1e6)
        assert ours == NOT_REPRODUCIBLE.get(row.name, row.printed_millions), row.name
        assert bool(row.note) == (row.name in NOT_REPRODUCIBLE)


def all_models() -> Iterator[tuple[ModelConfig, HeadSpec]]:
    sharings: list[tuple[Sharing, int]] = [("all", 1), ("attention", 1), ("ffn", 1), ("none", 1), ("groups", 2)]
    for published in PRESETS.values():
        for sharing, num_groups in sharings:
            for kind in get_args(HeadKind):
                yield replace(published.config, sharing=sharing, num_groups=num_groups), HeadSpec(kind, 3)


def test_every_preset_sharing_and_head_builds_and_counts_exactly() -> None:
    for config, head in all_models():
        model = build_model(config, [head], device="meta")
        stored = sum(parameter.numel() for parameter in model.parameters())
        assert stored == count_parameters(config, [head]).total, (config, head)


@pytest.mark.parametrize("kind", ["sentence", "classification", "choice"])
def test_a_head_that_reads_the_pooled_vector_needs_a_pooler(kind: HeadKind) -> None:
    with refuses(ConfigError, "no-pooler"):
        build_model(replace(preset("nano"), has_pooler=False), [kind])


def test_unknown_and_repeated_heads_are_refused() -> None:
    with refuses(ConfigError, "unknown-head"):
        HeadSpec("mln")  # type: ignore[arg-type]
    with refuses(ConfigError, "repeated-value"):
        build_model(preset("nano"), ["span", "span"])


def test_an_unknown_preset_is_refused_with_the_nearest_name() -> None:
    with refuses(ConfigError, "unknown-preset"):
        preset("albert-bse")


def test_v1_is_another_name_of_the_papers_model_and_v2_has_no_dropout() -> None:
    assert preset("albert-base-v1") == preset("albert-base")
    assert preset("albert-base").hidden_dropout_rate == 0.1
    assert preset("albert-base-v2") == replace(BASE, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def test_flops_equal_the_multiplies_of_a_forward_pass() -> None:
    config, batch_size, length = preset("nano"), 2, 32
    model = build_model(config, ["mlm"]).eval()
    positions = torch.arange(10)
    # the counter knows the multiplies inside attention only where they are written out
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        hidden = model.encoder(torch.zeros(batch_size, length, dtype=torch.long)).hidden
        model.encoder.pool(hidden[:, 0])
        model.masked_lm_logits(hidden, positions)
    tokens = batch_size * length
    expected = tokens * forward_flops_per_token(config, length, mlm_rate=len(positions) / tokens)
    assert counter.get_total_flops() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "config",
    [
        preset("nano"),
        preset("albert-tiny"),
        replace(preset("albert-tiny"), hidden_dropout_rate=0.1),
        replace(preset("albert-tiny"), hidden_dropout_rate=0.1, attention_dropout_rate=0.1),
        replace(preset("albert-tiny"), sharing="none", embedding_size=312),
    ],
    ids=["nano", "tiny", "dropout", "attention-dropout", "bert-like"],
)
def test_activation_memory_is_what_autograd_keeps(config: ModelConfig) -> None:
    batch_size, length = 4, 64
    kept = measure_kept_bytes(build_model(config, ["mlm"]), make_full_batch(batch_size, length))
    assert activation_memory(config, batch_size=batch_size, length=length) == pytest.approx(kept, rel=0.01)


SPARSE = replace(preset("albert-tiny"), max_positions=512, attention="window", attention_width=16)


@pytest.mark.parametrize(
    "changes", [{}, {"full_attention_every": 2}, {"full_attention_every": 3}, {"attention": "block"}]
)
def test_activation_memory_of_sparse_attention_is_what_autograd_keeps(changes: dict[str, Any]) -> None:
    config = replace(SPARSE, **changes)
    kept = measure_kept_bytes(build_model(config, ["mlm"]), make_full_batch(1, 512, num_masked=77))
    assert activation_memory(config, batch_size=1, length=512) == pytest.approx(kept, rel=0.03)


def test_flops_of_sparse_attention_grow_with_the_length_and_not_with_its_square() -> None:
    config = replace(SPARSE, max_positions=8192, full_attention_every=0)
    short, long = (forward_flops_per_token(config, length, mlm_rate=0) for length in (1024, 8192))
    assert long == pytest.approx(short, rel=0.001)
    width, keys = config.hidden_size, 16 + 2 * 16 + 2  # a block, the neighbours on both sides, one global token twice
    per_layer = 4 * width * width + 2 * width * config.ffn_size + 2 * keys * width
    pooler = width * width / 1024
    assert short == 2 * (4 * per_layer + config.embedding_size * width + pooler)
    full = replace(config, attention="full", attention_width=128)
    assert forward_flops_per_token(config, 48) == forward_flops_per_token(full, 48)


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_in_bf16_autograd_keeps_half_of_what_is_multiplied(sharing: Sharing) -> None:
    # with E = H residual sums are fp32, as they are everywhere on a GPU
    config = replace(preset("nano"), sharing=sharing, embedding_size=128, num_layers=4)
    with torch.autocast("cpu", torch.bfloat16):
        kept = measure_kept_bytes(build_model(config, ["mlm"]), make_full_batch(4, 64))
    predicted = activation_memory(config, batch_size=4, length=64, storage=ActivationStorage(number_bytes=2))
    assert predicted == pytest.approx(kept, rel=0.03)


def test_the_memory_of_logits_is_that_of_one_chunk() -> None:
    assert LOGITS_AT_ONCE == CHUNK_LOGITS


def make_full_batch(batch_size: int, length: int, num_masked: int = 0) -> Batch:
    zeros = torch.zeros(batch_size, length, dtype=torch.long)
    # 38 = 15 % of 256, as evenly over the rows as goes
    masked = torch.cat([torch.arange(1, 1 + count) + 64 * row for row, count in enumerate((10, 10, 9, 9))])
    if num_masked:
        masked = torch.arange(1, 1 + num_masked)
    return Batch(
        token_ids=zeros,
        segment_ids=zeros,
        mask=zeros == 0,
        position_ids=None,
        sequence_ids=None,
        first_tokens=torch.arange(batch_size) * length,
        mlm_positions=masked,
        mlm_labels=torch.zeros_like(masked),
        sentence_labels=None,
        opens_document=torch.zeros(batch_size, dtype=torch.bool),
    )


def measure_kept_bytes(model: Model, batch: Batch) -> int:
    """The bytes of all distinct storages that a forward pass saves for backward, other than parameters."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: list[Tensor] = []  # holding on to them keeps addresses distinct

    def keep(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        MaskedLM().batch_loss(model, batch)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in saved}
    return sum(size for address, size in storages.items() if address not in parameters)
