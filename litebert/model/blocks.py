"""The two blocks of a layer: self-attention and feed-forward, each with the LayerNorm that follows it.

A block computes in the dtype of its input. If its parameters are wider, it multiplies by copies in that dtype
(`cast_weights`), which are made once per pass for all layers that share the block. LayerNorm weights are not cast,
since LayerNorm always computes in float32.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from litebert.model.config import Activation, ModelConfig
from litebert.model.dropout import RowNoise, drop
from litebert.model.lean import activated_linear, attend, gelu_tanh
from litebert.model.sparse import SparseMask, attend_sparsely

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": gelu_tanh,
    "gelu": F.gelu,
    "relu": F.relu,
}


class AttentionWeights(NamedTuple):
    """The matrices and biases of attention, in the dtype of the computation."""

    fused: Tensor  # (3 H, H) query, key and value as one matrix: one large multiply is faster than three
    fused_bias: Tensor  # (3 H,)
    output: Tensor  # (H, H)
    output_bias: Tensor  # (H,)


class FeedForwardWeights(NamedTuple):
    """The matrices and biases of the two linear maps, in the dtype of the computation."""

    up: Tensor  # (F, H)
    up_bias: Tensor  # (F,)
    down: Tensor  # (H, F)
    down_bias: Tensor  # (H,)


class AttentionBlock(nn.Module):
    """Multi-head self-attention, residual and LayerNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_size
        # Three parameters, not one: LAMB gives each its own trust ratio, as the official code does.
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.num_heads = config.num_heads
        self.attention_dropout_rate = config.attention_dropout_rate
        self.hidden_dropout_rate = config.hidden_dropout_rate

    def cast_weights(self, dtype: torch.dtype) -> AttentionWeights:
        """The weights cast to a dtype; gradients flow back to the parameters."""
        projections = (self.query, self.key, self.value)
        fused, bias = torch.cat([p.weight for p in projections]), torch.cat([p.bias for p in projections])
        return AttentionWeights(*(x.to(dtype) for x in (fused, bias, self.output.weight, self.output.bias)))

    def forward(
        self,
        hidden: Tensor,
        weights: AttentionWeights | None,
        mask: Tensor | SparseMask | None,
        read_at: Tensor | None = None,
        noise: RowNoise | None = None,
    ) -> Tensor:
        """The states (B, T, H) after attention; with `read_at` (B, Q) only those at these positions, (B, Q, H).

        `mask` is added to the scores: (B, 1, 1, T), or (B, 1 or N, T, T) if it differs by query.
        """
        weight, bias, output, output_bias = weights or self.cast_weights(hidden.dtype)
        rate = self.attention_dropout_rate if self.training else 0.0
        if isinstance(mask, SparseMask) and (read_at is None or not mask.are_global(read_at)):
            projected = F.linear(hidden, weight, bias)  # (B, T, 3 H)
            context = attend_sparsely(projected, mask, self.num_heads, rate=rate, noise=noise)  # (B, T, H)
            if read_at is not None:  # scattered queries do not form blocks, so all are computed
                hidden, context = (gather_positions(states, read_at) for states in (hidden, context))  # (B, Q, H) each
        else:
            if read_at is None:  # every position is queried: Q = T
                query, key, value = F.linear(hidden, weight, bias).chunk(3, dim=-1)  # (B, T, H) each
            else:
                width = hidden.shape[-1]
                key, value = F.linear(hidden, weight[width:], bias[width:]).chunk(2, dim=-1)  # (B, T, H) each
                hidden = gather_positions(hidden, read_at)  # (B, Q, H)
                query = F.linear(hidden, weight[:width], bias[:width])  # (B, Q, H)
                if isinstance(mask, SparseMask):
                    mask = mask.see_sequences(read_at)  # (B, 1, Q, T)
                elif mask is not None and mask.shape[2] > 1:  # it differs by query
                    mask = mask.gather(2, read_at[:, None, :, None].expand(-1, mask.shape[1], -1, mask.shape[3]))
            assert not isinstance(mask, SparseMask)
            query, key, value = self._split(query), self._split(key), self._split(value)  # (B, N, Q or T, D)
            if noise is None or rate == 0:
                heads = attend(query, key, value, mask, rate)  # (B, N, Q, D)
            else:
                scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)  # (B, N, Q, T)
                probabilities = torch.softmax(scores if mask is None else scores + mask, dim=-1)
                # Drawn per query, so that it gets the same mask whether all positions are queried or only some.
                probabilities = noise.drop(probabilities.transpose(1, 2), rate, "probabilities").transpose(1, 2)
                heads = probabilities @ value  # (B, N, Q, D)
            context = heads.transpose(1, 2).flatten(2)  # (B, Q, H)
        update = F.linear(context, output, output_bias)  # (B, Q, H)
        update = drop(update, self.hidden_dropout_rate, self.training, noise, "attention")
        normed: Tensor = self.norm(hidden + update)
        return normed

    def attention_weights(self, hidden: Tensor, seen: Tensor | None = None) -> Tensor:
        """The attention probabilities (B, N, T, T) for states (B, T, H) without padding.

        `seen` (B, 1 or N, T, T): the positions that each position may attend to; None: all.
        """
        query, key = self._split(self.query(hidden)), self._split(self.key(hidden))  # (B, N, T, D)
        scores: Tensor = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5  # (B, N, T, T)
        return (scores if seen is None else scores.masked_fill(~seen, -torch.inf)).softmax(-1)

    def _split(self, x: Tensor) -> Tensor:
        """Split vectors (B, T, H) into heads (B, N, T, D)."""
        batch_size, length, width = x.shape
        return x.view(batch_size, length, self.num_heads, width // self.num_heads).transpose(1, 2)


class FeedForwardBlock(nn.Module):
    """Two linear maps with the activation between them, residual and LayerNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.ffn_size)
        self.down = nn.Linear(config.ffn_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_epsilon)
        self.activation = ACTIVATIONS[config.activation]
        self.hidden_dropout_rate = config.hidden_dropout_rate

    def cast_weights(self, dtype: torch.dtype) -> FeedForwardWeights:
        """The weights cast to a dtype; gradients flow back to the parameters."""
        parameters = (self.up.weight, self.up.bias, self.down.weight, self.down.bias)
        return FeedForwardWeights(*(x.to(dtype) for x in parameters))

    def forward(
        self, hidden: Tensor, weights: FeedForwardWeights | None = None, noise: RowNoise | None = None
    ) -> Tensor:
        """The states after the block, of the same shape: (B, T, H) or (B, Q, H)."""
        up, up_bias, down, down_bias = weights or self.cast_weights(hidden.dtype)
        update = activated_linear(F.linear(hidden, up, up_bias), down, down_bias, self.activation)
        update = drop(update, self.hidden_dropout_rate, self.training, noise, "feed-forward")
        normed: Tensor = self.norm(hidden + update)
        return normed


def gather_positions(hidden: Tensor, read_at: Tensor) -> Tensor:
    """The states (B, Q, H) at each row's positions (B, Q)."""
    return hidden.gather(1, read_at[:, :, None].expand(-1, -1, hidden.shape[-1]))
