"""The blocks that layers are made of: self-attention and feed-forward, each with the LayerNorm that follows it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from litebert.model.config import Activation, ModelConfig
from litebert.model.lean import activated_linear, gelu_tanh

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": gelu_tanh,
    "gelu": F.gelu,
    "relu": F.relu,
}


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

    def fuse(self) -> tuple[Tensor, Tensor]:
        """Query, key and value as one matrix and bias: one large multiply is faster than three."""
        projections = (self.query, self.key, self.value)
        return torch.cat([p.weight for p in projections]), torch.cat([p.bias for p in projections])

    def forward(
        self, hidden: Tensor, fused: tuple[Tensor, Tensor], mask: Tensor | None, read_at: Tensor | None = None
    ) -> Tensor:
        """New hidden states; with `read_at` (B, Q), only those of these positions are computed."""
        if read_at is None:
            query, key, value = F.linear(hidden, *fused).chunk(3, dim=-1)
        else:
            width = hidden.shape[-1]
            weight, bias = fused
            key, value = F.linear(hidden, weight[width:], bias[width:]).chunk(2, dim=-1)
            hidden = gather_positions(hidden, read_at)  # (B, Q, H)
            query = F.linear(hidden, weight[:width], bias[:width])
        context = F.scaled_dot_product_attention(
            self._split(query),
            self._split(key),
            self._split(value),
            attn_mask=mask,
            dropout_p=self.attention_dropout_rate if self.training else 0.0,
        )  # (B, N, T, D)
        update = self.output(context.transpose(1, 2).flatten(2))  # (B, T, H)
        update = F.dropout(update, self.hidden_dropout_rate, self.training)
        normed: Tensor = self.norm(hidden + update)
        return normed

    def _split(self, x: Tensor) -> Tensor:
        batch_size, length, width = x.shape
        return x.view(batch_size, length, self.num_heads, width // self.num_heads).transpose(1, 2)  # (B, N, T, D)


class FeedForwardBlock(nn.Module):
    """Two linear maps with the activation between them, residual and LayerNorm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.ffn_size)
        self.down = nn.Linear(config.ffn_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_epsilon)
        self.activation = ACTIVATIONS[config.activation]
        self.hidden_dropout_rate = config.hidden_dropout_rate

    def forward(self, hidden: Tensor) -> Tensor:
        update = activated_linear(self.up(hidden), self.down.weight, self.down.bias, self.activation)
        update = F.dropout(update, self.hidden_dropout_rate, self.training)
        normed: Tensor = self.norm(hidden + update)
        return normed


def gather_positions(hidden: Tensor, read_at: Tensor) -> Tensor:
    """The states (B, Q, H) at each row's positions (B, Q)."""
    return hidden.gather(1, read_at[:, :, None].expand(-1, -1, hidden.shape[-1]))
