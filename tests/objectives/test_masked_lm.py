"""The pre-training loss: what it is, and that padding, packing and micro-batches do not change it."""

from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.batches.batch import Batch
from litebert.model.blocks import AttentionBlock, FeedForwardBlock
from litebert.model.config import ModelConfig
from litebert.model.model import Model, build_model
from litebert.model.sharing import Sharing
from litebert.objectives.masked_lm import MaskedLM

TINY = ModelConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=12,
    ffn_size=20,
    num_layers=3,
    num_heads=2,
    max_positions=32,
    hidden_dropout_rate=0.0,
    attention_dropout_rate=0.0,
    initializer_range=0.3,
)
LENGTHS = (9, 16, 5, 12)
OBJECTIVE = MaskedLM()


def build(**changes: object) -> Model:
    return build_model(replace(TINY, **changes), ["mlm", "sentence"]).double()  # type: ignore[arg-type]


def lay_out(rows: Sequence[Sequence[int]], width: int) -> Batch:
    """Each row holds the sequences of these numbers one after the other; sequence n has LENGTHS[n] tokens."""
    blank = torch.zeros(len(rows), width, dtype=torch.long)
    token_ids, segment_ids, position_ids, sequence_ids = (blank.clone() for _ in range(4))
    first, positions, labels = [], [], []
    for row, numbers in enumerate(rows):
        column = 0
        for ordinal, number in enumerate(numbers, start=1):
            length, draw = LENGTHS[number], torch.Generator().manual_seed(number)
            place = slice(column, column + length)
            token_ids[row, place] = torch.randint(5, 50, (length,), generator=draw)
            segment_ids[row, place] = (torch.arange(length) > length // 2).long()
            position_ids[row, place] = torch.arange(length)
            sequence_ids[row, place] = ordinal
            first.append(row * width + column)
            masked = 1 + torch.randperm(length - 1, generator=draw)[: 1 + number].sort().values
            positions += (row * width + column + masked).tolist()
            labels += torch.randint(5, 50, masked.shape, generator=draw).tolist()
            column += length
    is_packed = any(len(numbers) > 1 for numbers in rows)
    return Batch(
        token_ids=token_ids,
        segment_ids=segment_ids,
        mask=sequence_ids > 0,
        position_ids=position_ids if is_packed else None,
        sequence_ids=sequence_ids if is_packed else None,
        first_tokens=torch.tensor(first),
        mlm_positions=torch.tensor(positions),
        mlm_labels=torch.tensor(labels),
        sentence_labels=torch.tensor([number % 2 for numbers in rows for number in numbers]),
        opens_document=torch.zeros(len(first), dtype=torch.bool),
    )


PADDED = lay_out([[0], [1], [2], [3]], 16)
PACKED = lay_out([[0, 1], [2, 3]], 27)


def gradients_of(model: Model, loss: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss.backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def written_out(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """Both losses with plain operations, every position computed."""
    output = model.encoder(batch.token_ids, batch.segment_ids, batch.mask)
    mlm = F.cross_entropy(model.masked_lm_logits(output.hidden).flatten(0, 1)[batch.mlm_positions], batch.mlm_labels)
    return mlm, F.cross_entropy(model.heads["sentence"](model.encoder.pool(output.hidden[:, 0])), batch.sentence_labels)


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu"])
@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_the_loss_and_its_gradients_are_the_means_written_out(
    sharing: Sharing, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(sharing=sharing, activation=activation)
    got = OBJECTIVE.batch_loss(model, PADDED)
    gradients = gradients_of(model, got.loss)
    # the plain forms
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    mlm, sentence = written_out(model, PADDED)
    torch.testing.assert_close(got.sums["mlm_loss"], mlm)
    torch.testing.assert_close(got.sums["sentence_loss"], sentence)
    torch.testing.assert_close(got.loss, mlm + sentence)
    assert len(gradients) == len(list(model.parameters()))
    torch.testing.assert_close(gradients, gradients_of(model, mlm + sentence))


def test_packing_does_not_change_loss_gradients_or_guesses() -> None:
    model = build()
    padded, packed = OBJECTIVE.batch_loss(model, PADDED), OBJECTIVE.batch_loss(model, PACKED)
    torch.testing.assert_close(packed, padded)
    torch.testing.assert_close(gradients_of(model, packed.loss), gradients_of(model, padded.loss))


def test_micro_batches_of_different_counts_add_up_to_the_big_batch() -> None:
    model = build()
    whole = OBJECTIVE.batch_loss(model, PADDED)
    parts = [lay_out(rows, 16) for rows in ([[0]], [[1], [2], [3]])]
    assert [OBJECTIVE.count(part)["masked"] for part in parts] == [1, 9]
    micro = [OBJECTIVE.loss(model, part, OBJECTIVE.count(PADDED)) for part in parts]
    assert whole.sums.keys() == {"loss", "mlm_loss", "sentence_loss", "mlm_correct", "sentence_correct"}
    for name, value in whole.sums.items():
        torch.testing.assert_close(micro[0].sums[name] + micro[1].sums[name], value)
    accumulated = gradients_of(model, micro[0].loss + micro[1].loss)
    torch.testing.assert_close(accumulated, gradients_of(model, whole.loss))


def test_without_a_sentence_task_only_masked_words_count() -> None:
    model = build_model(replace(TINY, has_pooler=False), ["mlm"])
    got = MaskedLM(0).batch_loss(model, replace(PADDED, sentence_labels=None))
    assert got.sums.keys() == {"loss", "mlm_loss", "mlm_correct"}
    assert torch.equal(got.loss, got.sums["mlm_loss"])


@pytest.mark.parametrize("has_task", [True, False])
def test_the_pooler_runs_once_per_loss_and_only_for_the_sentence_task(has_task: bool) -> None:
    model, calls = build(), list[object]()
    assert model.encoder.pooler is not None
    model.encoder.pooler.register_forward_hook(lambda *_: calls.append(1))
    labels = PACKED.sentence_labels if has_task else None
    MaskedLM(2 if has_task else 0).batch_loss(model, replace(PACKED, sentence_labels=labels))
    assert len(calls) == has_task


def test_a_batch_without_a_masked_word_has_the_sentence_loss_alone() -> None:
    nothing = torch.zeros(0, dtype=torch.long)
    got = OBJECTIVE.batch_loss(build(), replace(PADDED, mlm_positions=nothing, mlm_labels=nothing))
    assert float(got.sums["mlm_loss"]) == 0
    assert torch.equal(got.loss, got.sums["sentence_loss"])


def test_evaluation_gives_the_loss_of_training_and_counts_right_guesses() -> None:
    model = build()
    with torch.no_grad():
        hidden = model.encoder(PADDED.token_ids, PADDED.segment_ids, PADDED.mask).hidden
        guesses = model.masked_lm_logits(hidden, PADDED.mlm_positions).argmax(-1)
        half_right = replace(PADDED, mlm_labels=torch.where(torch.arange(10) < 5, guesses, (guesses + 1) % 50))
        evaluated = OBJECTIVE.batch_loss(model, half_right)
    assert int(evaluated.sums["mlm_correct"]) == 5
    torch.testing.assert_close(evaluated.loss, OBJECTIVE.batch_loss(model, half_right).loss.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_loss_is_near_and_gradients_keep_the_parameters_type(dtype: torch.dtype) -> None:
    model = build().float()
    exact = OBJECTIVE.batch_loss(model, PADDED).loss
    with torch.autocast("cpu", dtype=dtype):
        loss = OBJECTIVE.batch_loss(model, PADDED).loss
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0)
    assert {gradient.dtype for gradient in gradients_of(model, loss)} == {torch.float32}


def test_dropout_is_drawn_again_alike_from_the_same_seed() -> None:
    model = build(hidden_dropout_rate=0.3, attention_dropout_rate=0.3)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(gradients_of(model, OBJECTIVE.batch_loss(model, PACKED).loss))
    torch.testing.assert_close(runs[0], runs[1], rtol=0, atol=0)
    assert not torch.equal(runs[0][0], runs[2][0])


@pytest.mark.parametrize("sharing", ["all", "none"])
@pytest.mark.parametrize("batch", [PADDED, PACKED], ids=["padded", "packed"])
def test_gradients_computed_in_bf16_are_near_the_exact_ones_and_have_the_parameters_type(
    sharing: Sharing, batch: Batch
) -> None:
    model = build(sharing=sharing, num_layers=6)
    exact = gradients_of(model, OBJECTIVE.batch_loss(model, batch).loss)
    model.float().encoder.training_dtype = torch.bfloat16
    loss = OBJECTIVE.batch_loss(model, batch).loss
    near = gradients_of(model, loss)
    assert {loss.dtype, *(gradient.dtype for gradient in near)} == {torch.float32}
    error = torch.cat([(a - b).flatten() for a, b in zip(near, exact, strict=True)]).norm()
    assert error < 0.05 * torch.cat([gradient.flatten() for gradient in exact]).norm()


def test_evaluation_does_not_depend_on_the_format_of_training() -> None:
    model = build().float().eval()
    exact = OBJECTIVE.batch_loss(model, PADDED).loss
    model.encoder.training_dtype = torch.bfloat16
    assert torch.equal(OBJECTIVE.batch_loss(model, PADDED).loss, exact)


def test_layers_recomputed_in_bf16_give_the_same_gradients_to_the_last_bit() -> None:
    model = build(hidden_dropout_rate=0.3, attention_dropout_rate=0.3).float()
    model.encoder.training_dtype = torch.bfloat16
    runs = []
    for recompute in (False, True):
        model.encoder.recompute = recompute
        seeded = replace(PACKED, dropout_seeds=tuple(range(len(PACKED.token_ids))))
        runs.append(gradients_of(model, OBJECTIVE.batch_loss(model, seeded).loss))
    torch.testing.assert_close(runs[0], runs[1], rtol=0, atol=0)


def test_layers_that_share_their_weights_cast_them_once() -> None:
    model = build(num_layers=6).float()
    model.encoder.training_dtype = torch.bfloat16
    attention, ffn = (
        mock.patch.object(block, "cast_weights", autospec=True, side_effect=block.cast_weights)
        for block in (AttentionBlock, FeedForwardBlock)
    )
    with attention as cast_attention, ffn as cast_ffn:
        OBJECTIVE.batch_loss(model, PADDED)
    assert (cast_attention.call_count, cast_ffn.call_count) == (1, 1)
