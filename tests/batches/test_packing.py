"""Packed and padded rows are the same sequences to the model: the same loss and gradients."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toy_corpus import FIRST, build_corpus, build_stream, random_documents

from litebert.batches.batch import Batch
from litebert.batches.options import BatchOptions, SegmentOptions
from litebert.model.config import ModelConfig
from litebert.model.model import build_model

CORPUS = build_corpus(random_documents(60))


def loss_and_gradients(batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    vocab_size = FIRST + len(CORPUS.document_of)
    config = ModelConfig(
        vocab_size=vocab_size, embedding_size=16, hidden_size=32, ffn_size=64, num_layers=3, num_heads=2,
        max_positions=64, hidden_dropout_rate=0.0, attention_dropout_rate=0.0, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = build_model(config, ["mlm", "sentence"]).double()
    output = model.encoder(
        batch.token_ids,
        batch.segment_ids,
        None if batch.sequence_ids is not None else batch.mask,
        position_ids=batch.position_ids,
        sequence_ids=batch.sequence_ids,
    )
    logits = model.masked_lm_logits(output.hidden, batch.mlm_positions)
    first = output.hidden.flatten(0, 1)[batch.first_tokens]
    order = model.heads["sentence"](model.encoder.pool(first))
    assert batch.sentence_labels is not None
    loss = F.cross_entropy(logits, batch.mlm_labels) + F.cross_entropy(order, batch.sentence_labels)
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("layout", ["segment-pair", "sentence-pair"])
def test_packed_and_padded_batches_have_the_same_loss_and_gradients(layout: str) -> None:
    segments = SegmentOptions(format=layout, max_length=64, short_rate=0.5 if layout == "segment-pair" else None)  # type: ignore[arg-type]
    padded, packed = (
        build_stream(CORPUS, segments=segments, batch=BatchOptions(sequences=24, bucket=1, is_packed=is_packed)).batch(
            0
        )
        for is_packed in (False, True)
    )
    assert len(packed.token_ids) < len(padded.token_ids)
    assert padded.mask.sum() == packed.mask.sum()
    loss, gradients = loss_and_gradients(padded)
    packed_loss, packed_gradients = loss_and_gradients(packed)
    torch.testing.assert_close(packed_loss, loss, atol=1e-5, rtol=1e-5)
    assert gradients.keys() == packed_gradients.keys()
    for name, gradient in gradients.items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(packed_gradients[name], gradient, atol=1e-5, rtol=1e-5, msg=name)
