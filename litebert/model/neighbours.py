"""Initial weights with which attention heads attend to adjacent tokens.

A model first learns to predict masked tokens from their neighbours. With random weights it has to find out which
positions are adjacent, which takes thousands of updates in which it learns only word frequencies. Here positions start
as sinusoids, for which a shift by one position is a rotation, and the first heads start with that rotation between
query and key. Two more heads spread their attention over one segment each, with larger values: [CLS] needs their
output to predict the order of the segments. These are initial values of ordinary weights, which training changes from
the first update on; they work in any implementation of ALBERT or BERT.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from litebert.model.blocks import AttentionBlock
from litebert.model.encoder import Embeddings, Encoder
from litebert.model.positions import sinusoids, wave_numbers

# The relative positions that the first heads attend to; the last two repeat the adjacent ones, because one head's
# output is narrow. The next two heads attend to one segment each; all others start at random.
OFFSETS = (-1, 1, -2, 2, -1, 1)
_FAST_SHARE = 0.6  # share of the waves that a head reads: the fast ones, which distinguish near positions
_LOGIT = 6.0  # the score of the position that a head attends to; others have about 0
# The mean over 30 words has a fifth of the norm of one word's value, over 190 words a fourteenth. Without these gains
# it is too small compared with [CLS]'s own embedding, and with some seeds the model never learns sentence order.
_VALUE_GAIN, _OUTPUT_GAIN = 4.0, 2.0
# With more layers than this the gain is reduced: otherwise the segments' means dominate the words, and at depth 4 the
# model learns nothing.
_MAX_GAIN_LAYERS = 2


@torch.no_grad()
def look_at_neighbours(encoder: Encoder, generator: torch.Generator) -> None:
    """Change freshly drawn weights so that heads attend to the relative positions `OFFSETS` and to segments."""
    waves = wave_numbers(encoder.config.embedding_size // 4)
    _write_sinusoids(encoder.embeddings, waves, encoder.config.initializer_range)
    to_hidden = _make_orthogonal(encoder.embeddings, generator)  # (H, E)
    for block in encoder.attention:
        assert isinstance(block, AttentionBlock)
        _rotate_heads(block, waves, to_hidden, zip(range(block.num_heads), OFFSETS, strict=False))
        if encoder.config.num_segments == 2 and block.num_heads >= len(OFFSETS) + 2:
            gain = _OUTPUT_GAIN * min(1.0, _MAX_GAIN_LAYERS / encoder.config.num_layers)
            _look_at_segments(block, encoder.embeddings, to_hidden, output_gain=gain)


def _write_sinusoids(embeddings: Embeddings, waves: Tensor, std: float) -> None:
    """Reserve the first half of the columns for positions, so that a head that reads these is independent of words."""
    table, width = embeddings.position.weight, 2 * len(waves)
    table.zero_()
    table[:, :width] = (math.sqrt(2) * std * sinusoids(len(table), waves)).to(table)
    for other in (embeddings.token, embeddings.segment):
        other.weight[:, :width] = 0


def _make_orthogonal(embeddings: Embeddings, generator: torch.Generator) -> Tensor:
    """Make the projection preserve angles, so that heads can invert it; returns its directions (H, E)."""
    if embeddings.projection is None:
        return torch.eye(embeddings.norm.normalized_shape[0])
    weight = embeddings.projection.weight
    drawn = torch.randn(weight.shape, generator=generator)
    wide = weight.shape[0] >= weight.shape[1]
    directions: Tensor = torch.linalg.qr(drawn)[0] if wide else torch.linalg.qr(drawn.T)[0].T
    weight.copy_(directions * math.sqrt(weight.shape[0] / weight.shape[1]))
    return directions


def _rotate_heads(block: AttentionBlock, waves: Tensor, to_hidden: Tensor, offsets: Iterable[tuple[int, int]]) -> None:
    hidden_size, embedding_size = to_hidden.shape
    head_size = hidden_size // block.num_heads
    num_fast = max(1, int(_FAST_SHARE * len(waves)))
    num_pairs = min(head_size // 2, num_fast)
    chosen = torch.arange(num_pairs) * num_fast // num_pairs
    # After LayerNorm a pair of values has a squared norm of 2, which the projection multiplies by H / E.
    scale = math.sqrt(_LOGIT * math.sqrt(head_size) / (num_pairs * 2 * hidden_size / embedding_size))
    for head, offset in offsets:
        rows = slice(head * head_size, head * head_size + 2 * num_pairs)
        for linear, turn in ((block.query, offset), (block.key, 0)):
            read = _read_waves(chosen, waves[chosen] * turn, embedding_size)  # (2 pairs, E)
            linear.weight[rows] = (scale * read @ to_hidden.T).to(linear.weight)


def _read_waves(chosen: Tensor, angles: Tensor, width: int) -> Tensor:
    """The matrix (2 pairs, E) that picks (sin, cos) of the chosen waves and rotates each by its angle."""
    pairs = torch.arange(len(chosen))
    matrix = torch.zeros(len(chosen), 2, width)
    sin, cos = angles.sin().float(), angles.cos().float()
    matrix[pairs, 0, 2 * chosen], matrix[pairs, 0, 2 * chosen + 1] = cos, sin
    matrix[pairs, 1, 2 * chosen], matrix[pairs, 1, 2 * chosen + 1] = -sin, cos
    return matrix.flatten(0, 1)


def _look_at_segments(block: AttentionBlock, embeddings: Embeddings, to_hidden: Tensor, *, output_gain: float) -> None:
    """Make the next two heads spread their attention over the first and the second segment, for every query."""
    hidden_size, embedding_size = to_hidden.shape
    head_size = hidden_size // block.num_heads
    apart = embeddings.segment.weight[1] - embeddings.segment.weight[0]
    variances = [part.weight.square().mean() for part in (embeddings.token, embeddings.segment, embeddings.position)]
    # between tokens of the two segments, after LayerNorm and projection
    distance = float(apart.norm() / sum(variances) ** 0.5) * math.sqrt(hidden_size / embedding_size)
    scale = math.sqrt(_LOGIT * math.sqrt(head_size) / distance)
    direction = to_hidden @ (apart / apart.norm()).to(to_hidden)
    for head, sign in enumerate((-1, 1), start=len(OFFSETS)):
        row = head * head_size
        block.query.weight[row], block.query.bias[row] = 0, scale
        block.key.weight[row] = sign * scale * direction
        of_head = slice(row, row + head_size)
        block.value.weight[of_head] *= _VALUE_GAIN
        block.output.weight[:, of_head] *= output_gain
