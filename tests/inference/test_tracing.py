"""How a text is read: attention and movement are those that transformers computes from the same weights."""

from pathlib import Path

import numpy as np
import pytest
import torch

import litebert
from litebert.inference.tracing import MAX_TOKENS, trace


def test_attention_and_movement_are_those_of_transformers(tiny_checkpoint: Path) -> None:
    transformers = pytest.importorskip("transformers")
    predictor = litebert.load(tiny_checkpoint)
    peer = transformers.AutoModel.from_pretrained(tiny_checkpoint, attn_implementation="eager").eval()
    found = trace(predictor, "the old cat", "sees a dog")
    tokenizer = predictor.tokenizer
    first, second = tokenizer.encode("the old cat"), tokenizer.encode("sees a dog")
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    with torch.no_grad():
        output = peer(
            input_ids=torch.tensor([ids]),
            token_type_ids=torch.tensor([segments]),
            output_attentions=True,
            output_hidden_states=True,
        )
    assert [token.piece for token in found.tokens] == tokenizer.pieces(ids)
    assert [token.segment for token in found.tokens] == segments
    attention = torch.cat(output.attentions).numpy()  # (L, N, T, T)
    np.testing.assert_allclose(found.attention, attention.mean(1), atol=1e-5)
    np.testing.assert_allclose(
        trace(predictor, "the old cat", "sees a dog", head=1).attention, attention[:, 1], atol=1e-5
    )
    states = torch.cat(output.hidden_states).numpy()  # (L + 1, T, H)
    np.testing.assert_allclose(found.l2, np.linalg.norm(states[1:] - states[:-1], axis=-1), rtol=1e-3)
    lengths = np.linalg.norm(states, axis=-1)
    cosines = (states[1:] * states[:-1]).sum(-1) / (lengths[1:] * lengths[:-1])
    np.testing.assert_allclose(found.degrees, np.degrees(np.arccos(cosines)), atol=0.1)


def test_tokens_know_their_place_in_their_text(tiny_checkpoint: Path) -> None:
    texts = ("The old  cat", "sees the Dog")
    found = trace(litebert.load(tiny_checkpoint), *texts)
    for token in found.tokens:
        piece = token.piece.removeprefix("##")
        assert token.is_special or texts[token.segment][token.start : token.end].lower() == piece


def test_a_text_that_is_too_long_is_cut_and_says_so(tiny_checkpoint: Path) -> None:
    predictor = litebert.load(tiny_checkpoint)
    limit = min(MAX_TOKENS, predictor.checkpoint.config.max_positions)
    long = trace(predictor, "the cat " * 200, "a dog")
    assert long.is_cut
    assert len(long.tokens) == limit
    assert [token.piece for token in long.tokens[-3:]] == ["a", "dog", "[SEP]"]
    assert not trace(predictor, "the cat", "").is_cut
