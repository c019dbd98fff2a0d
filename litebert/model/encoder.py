"""The encoder: factorised embeddings, then layers that look up their blocks in a table of what is shared.

ALBERT, BERT and RoBERTa are values of its configuration. A block that several layers use exists once, in memory and in
the state dict; its gradient is the sum over its uses.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litebert.core.errors import DataError
from litebert.model.blocks import AttentionBlock, FeedForwardBlock, drop, gather_positions
from litebert.model.config import ModelConfig
from litebert.model.noise import RowNoise


class EncoderOutput(NamedTuple):
    """What the encoder computed."""

    hidden: Tensor  # (B, T, H), or (B, Q, H) where `read_at` was given
    pooled: Tensor | None  # (B, H); None without a pooler
    layers: tuple[Tensor, ...]  # on request: the first layer's input, then each layer's output, all (B, T, H)


class Embeddings(nn.Module):
    """Token, segment and position vectors of width E, summed, normalised, and projected to width H."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.embedding_size
        self.token = nn.Embedding(config.vocab_size, width)
        self.segment = nn.Embedding(config.num_segments, width)
        self.position = nn.Embedding(config.max_positions, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.projection = nn.Linear(width, config.hidden_size) if config.has_projection else None
        self.hidden_dropout_rate = config.hidden_dropout_rate

    def forward(
        self, token_ids: Tensor, segment_ids: Tensor | None, position_ids: Tensor | None, noise: RowNoise | None = None
    ) -> Tensor:
        self._check_ids(token_ids, segment_ids)
        length = token_ids.shape[1]
        positions = self.position.weight[:length] if position_ids is None else self.position(position_ids)
        segments = self.segment.weight[0] if segment_ids is None else self.segment(segment_ids)
        embedded = self.norm(self.token(token_ids) + segments + positions)  # (B, T, E)
        embedded = drop(embedded, self.hidden_dropout_rate, self.training, noise, "embeddings")
        return self.projection(embedded) if self.projection is not None else embedded  # (B, T, H)

    def _check_ids(self, token_ids: Tensor, segment_ids: Tensor | None) -> None:
        length, max_positions = token_ids.shape[1], self.position.num_embeddings
        if length > max_positions:
            raise DataError(
                f"a sequence of {length} tokens does not fit the model's {max_positions} positions: shorten it to "
                f"{max_positions}, or build the model with max_positions = {length}"
            )
        # Looking at values would stall an accelerator and cannot be traced: there, the device itself refuses.
        if token_ids.device.type != "cpu" or torch.compiler.is_compiling():
            return
        for kind, ids, limit in (
            ("token", token_ids, self.token.num_embeddings),
            ("segment", segment_ids, self.segment.num_embeddings),
        ):
            if ids is not None and ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < limit):
                bad = int(ids.max()) if int(ids.max()) >= limit else int(ids.min())
                raise DataError(
                    f"{kind} id {bad} is outside the model's {limit} {kind}s (0 to {limit - 1}): "
                    f"was the text encoded with another model's tokenizer?"
                )


class Encoder(nn.Module):
    """Embeddings, layers and pooler."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.recompute = False  # keep only each layer's input for backward, and compute the rest again
        self.noise: RowNoise | None = None  # of dropout in the next forward pass; None: torch's own generator
        self.plan = config.layer_plan
        self.is_shared = len(self.plan.rows) > min(self.plan.num_attention_blocks, self.plan.num_ffn_blocks)
        self.embeddings = Embeddings(config)
        self.attention = nn.ModuleList(AttentionBlock(config) for _ in range(self.plan.num_attention_blocks))
        self.ffn = nn.ModuleList(FeedForwardBlock(config) for _ in range(self.plan.num_ffn_blocks))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if config.has_pooler else None

    def forward(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        position_ids: Tensor | None = None,
        sequence_ids: Tensor | None = None,
        read_at: Tensor | None = None,
        return_layers: bool = False,
    ) -> EncoderOutput:
        """Hidden states and the pooled first token.

        `mask` (B, T): True = real token; None = all are. `sequence_ids` (B, T) instead: several sequences packed in a
        row, numbered from 1 (0 = padding), which do not see each other. `read_at` (B, Q): the only positions whose last
        states are wanted; the last layer computes no others, and position 0 must be the first of them if pooled output
        is used.
        """
        noise = self.noise if self.training else None
        hidden = self.embeddings(token_ids, segment_ids, position_ids, noise)
        visible = attention_mask(mask, sequence_ids, hidden.dtype)
        # once a pass where several layers use a block; else in the block's own forward, where FSDP has gathered it
        fused = [block.fuse() if self.is_shared else None for block in self.attention]  # type: ignore[operator]
        layers = [hidden]
        for number, (attention_index, ffn_index) in enumerate(self.plan.rows, start=1):
            wanted = read_at if number == len(self.plan.rows) and not return_layers else None
            if wanted is not None and sequence_ids is not None:  # fewer tokens look; a plain mask is the same for all
                visible = attention_mask(mask, sequence_ids, hidden.dtype, wanted)
            of_layer = noise.at(number) if noise else None
            arguments = (hidden, attention_index, ffn_index, fused[attention_index], visible, wanted, of_layer)
            if self.recompute and self.training:
                hidden = checkpoint(self._compute_layer, *arguments, use_reentrant=False)
            else:
                hidden = self._compute_layer(*arguments)
            if return_layers:
                layers.append(hidden)
        if read_at is not None and return_layers:
            hidden = gather_positions(hidden, read_at)
        pooled = None if self.pooler is None else self.pool(hidden[:, 0])
        return EncoderOutput(hidden, pooled, tuple(layers) if return_layers else ())

    def _compute_layer(
        self,
        hidden: Tensor,
        attention_index: int,
        ffn_index: int,
        fused: tuple[Tensor, Tensor] | None,
        visible: Tensor | None,
        wanted: Tensor | None,
        noise: RowNoise | None,
    ) -> Tensor:
        hidden = self.attention[attention_index](hidden, fused, visible, wanted, noise)
        result: Tensor = self.ffn[ffn_index](hidden, noise)
        return result

    def pool(self, first: Tensor) -> Tensor:
        """The sequence vectors of first-token states (S, H)."""
        assert self.pooler is not None, "this model was built without a pooler"
        return torch.tanh(self.pooler(first))


def attention_mask(
    mask: Tensor | None, sequence_ids: Tensor | None, dtype: torch.dtype, read_at: Tensor | None = None
) -> Tensor | None:
    """What is added to attention scores: 0 where a token may look, else -inf; None = all at all.

    The tokens that look are all, or those at positions `read_at` (B, Q).
    """
    if sequence_ids is not None:
        looking = sequence_ids if read_at is None else sequence_ids.gather(1, read_at)
        # padding (0) sees padding: a row of nothing but -inf would be NaN
        visible = (looking[:, :, None] == sequence_ids[:, None, :])[:, None]  # (B, 1, T, T)
    elif mask is not None and not _is_full(mask):
        visible = mask[:, None, None, :]  # (B, 1, 1, T)
    else:
        return None
    # numbers, once: of a bool mask every layer would make and keep its own
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, -torch.inf)


def _is_full(mask: Tensor) -> bool:
    """Whether nothing is padded: attention is faster without a mask. Values cannot be looked at while tracing."""
    return not torch.compiler.is_compiling() and bool(mask.all())
