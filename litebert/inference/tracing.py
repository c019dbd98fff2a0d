"""Attention weights and layer distances of one text, token by token.

The ALBERT paper's Figure 1 shows layer distances averaged over a corpus.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.inference.predictor import Predictor
from litebert.model.sparse import see_densely
from litebert.text.backend import Encoding

MAX_TOKENS = 128  # per trace: more would be unreadable, and L x T x T numbers are sent


class TracedToken(NamedTuple):
    """A token and its position in its text, text[start:end]; (0, 0) for a special token."""

    piece: str
    segment: int
    start: int
    end: int
    is_special: bool


class Trace(NamedTuple):
    """Attention and layer distances for T tokens in L layers."""

    tokens: list[TracedToken]
    attention: NDArray[np.float32]  # (L, T, T): from each token to all tokens; each row sums to 1
    l2: NDArray[np.float32]  # (L, T): how far a layer moves a token
    degrees: NDArray[np.float32]  # (L, T): the angle between a layer's input and output
    is_cut: bool  # whether the text was truncated


def trace(predictor: Predictor, text: str, text_b: str | None = None, *, head: int | None = None) -> Trace:
    """Trace a text or a pair; attention is one head's, numbered from 0, or the mean of all heads."""
    tokens, token_ids, is_cut = _list_tokens(predictor, text, text_b)
    device = predictor.runtime.device
    ids = torch.tensor([token_ids], device=device)
    segments = torch.tensor([[token.segment for token in tokens]], device=device)
    segments = segments if predictor.checkpoint.config.num_segments > 1 else torch.zeros_like(segments)
    encoder = predictor.model.encoder
    with torch.inference_mode():
        inputs = encoder(ids, segments, return_layers=True).layers  # (1, T, H) each: of L layers, and the last's output
        is_sparse = encoder.config.attention != "full"
        seen = see_densely(encoder.config, torch.ones_like(ids)) if is_sparse else None  # (1, 1 or N, T, T)
        weights = [
            layer.attention.attention_weights(states, seen if layer.is_sparse else None)[0]  # (N, T, T)
            for layer, states in zip(encoder.list_layers(), inputs[:-1], strict=True)
        ]
        attention = torch.stack([of.mean(0) if head is None else of[head] for of in weights])  # (L, T, T)
        states = torch.cat(inputs).float()  # (L + 1, T, H)
        l2 = (states[1:] - states[:-1]).norm(dim=-1)
        cosine = torch.cosine_similarity(states[1:], states[:-1], dim=-1).clamp(-1, 1)
    degrees = cosine.acos() * (180 / math.pi)
    return Trace(tokens, _to_numpy(attention), _to_numpy(l2), _to_numpy(degrees), is_cut)


def _list_tokens(predictor: Predictor, text: str, text_b: str | None) -> tuple[list[TracedToken], list[int], bool]:
    """The tokens of a text or pair with special tokens, as in training."""
    tokenizer, config = predictor.tokenizer, predictor.checkpoint.config
    form = predictor.form(min(MAX_TOKENS, config.max_positions))
    encodings = [tokenizer.encode_with_offsets(one) for one in (text, text_b) if one is not None]
    sequence = form.join(*(encoding.token_ids for encoding in encodings))
    num_special = form.num_special(is_pair=text_b is not None)
    is_cut = sum(len(encoding.token_ids) for encoding in encodings) + num_special > len(sequence.token_ids)
    ids = sequence.token_ids.tolist()
    # the first separator ends the first text, which may have been truncated
    borders = [at for at, token_id in enumerate(ids) if token_id == form.sep_id]
    firsts = [1, borders[0] + form.num_between]
    pieces = tokenizer.pieces(ids)
    tokens = [TracedToken(piece, int(at > borders[0]), 0, 0, True) for at, piece in enumerate(pieces)]
    for number, encoding in enumerate(encodings):
        end = borders[0] if number == 0 else len(ids) - 1
        tokens[firsts[number] : end] = _pieces_of(predictor, encoding, number, end - firsts[number])
    return tokens, ids, is_cut


def _pieces_of(predictor: Predictor, encoding: Encoding, segment: int, count: int) -> list[TracedToken]:
    pieces = predictor.tokenizer.pieces(encoding.token_ids[:count])
    return [
        TracedToken(piece, segment, start, end, False)
        for piece, (start, end) in zip(pieces, encoding.offsets[:count], strict=True)
    ]


def _to_numpy(tensor: Tensor) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = tensor.float().cpu().numpy()
    return numbers
