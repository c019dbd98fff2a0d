"""The encoder: factorized embeddings, then layers that look up their blocks in the sharing table.

ALBERT, BERT and RoBERTa are configurations of it. A block that several layers use exists once, in memory and in
the state dict; its gradient is the sum over its uses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litebert.core.errors import DataError
from litebert.model.blocks import (
    AttentionBlock,
    AttentionWeights,
    FeedForwardBlock,
    FeedForwardWeights,
    gather_positions,
)
from litebert.model.config import ModelConfig
from litebert.model.dropout import RowNoise, drop
from litebert.model.lean import cast_linear
from litebert.model.sparse import SparseMask, build_sparse_mask


class EncoderOutput(NamedTuple):
    """The hidden states. `Encoder.pool(hidden[:, 0])` gives the sequence vectors."""

    hidden: Tensor  # (B, T, H), or (B, Q, H) at the positions of `read_at`
    layers: tuple[Tensor, ...]  # with `return_layers`: the first layer's input, then each layer's output, (B, T, H)


class AttentionMasks(NamedTuple):
    """The masks of full and of sparse layers, built once per pass. None: every token attends to all."""

    full: Tensor | None  # added to the scores: (B, 1, 1, T), or (B, 1, T, T) for packed sequences
    sparse: SparseMask | Tensor | None = None

    def select(self, rows: Tensor) -> "AttentionMasks":
        """The masks of some rows of the batch; `rows` is a boolean mask (B,)."""
        sparse = self.sparse.select(rows) if isinstance(self.sparse, SparseMask) else _select(self.sparse, rows)
        return AttentionMasks(_select(self.full, rows), sparse)


@dataclass(frozen=True)
class Layer:
    """A callable layer of an encoder, whose blocks may be shared with other layers.

    Only this class defines what a layer computes: training, early exit, layer similarity and attention traces all call
    it, and `graph/encoder.py` writes the same operations as ONNX nodes.
    """

    number: int  # from 1
    attention: AttentionBlock
    ffn: FeedForwardBlock
    is_sparse: bool = False  # whether tokens attend only to local and global tokens
    # weights cast once for all layers that share the blocks; None: each block casts its own when called
    cast_attention: AttentionWeights | None = None
    cast_ffn: FeedForwardWeights | None = None

    def __call__(
        self, hidden: Tensor, masks: AttentionMasks, read_at: Tensor | None = None, noise: RowNoise | None = None
    ) -> Tensor:
        """The layer's output (B, T, H) for its input (B, T, H); with `read_at` (B, Q) only at these, (B, Q, H).

        `masks` come from `Encoder.build_masks`. Without `noise`, dropout draws from torch's global generator.
        """
        noise = replace(noise, layer=self.number) if noise else None
        mask = masks.sparse if self.is_sparse else masks.full
        hidden = self.attention(hidden, self.cast_attention, mask, read_at, noise)  # (B, Q, H)
        output: Tensor = self.ffn(hidden, self.cast_ffn, noise)
        return output


class Embeddings(nn.Module):
    """Token, segment and position vectors of width E, summed, normalized, and projected to width H."""

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
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None,
        position_ids: Tensor | None,
        noise: RowNoise | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """The first layer's input (B, T, H), projected in this dtype; None: that of the weights."""
        self._check_ids(token_ids, segment_ids)
        length = token_ids.shape[1]
        positions = self.position.weight[:length] if position_ids is None else self.position(position_ids)
        segments = self.segment.weight[0] if segment_ids is None else self.segment(segment_ids)
        embedded = self.norm(self.token(token_ids) + segments + positions)  # (B, T, E)
        embedded = drop(embedded, self.hidden_dropout_rate, self.training, noise, "embeddings")
        embedded = embedded.to(dtype or embedded.dtype)
        return cast_linear(embedded, self.projection) if self.projection is not None else embedded  # (B, T, H)

    def _check_ids(self, token_ids: Tensor, segment_ids: Tensor | None) -> None:
        length, max_positions = token_ids.shape[1], self.position.num_embeddings
        if length > max_positions:
            raise DataError(
                "text-too-long",
                f"a sequence of {length} tokens does not fit the model's {max_positions} positions: shorten it to "
                f"{max_positions}, or build the model with max_positions = {length}",
            )
        # Reading values would stall an accelerator and cannot be traced; accelerators check the ids themselves.
        if token_ids.device.type != "cpu" or torch.compiler.is_compiling():
            return
        for kind, ids, limit in (
            ("token", token_ids, self.token.num_embeddings),
            ("segment", segment_ids, self.segment.num_embeddings),
        ):
            if ids is not None and ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < limit):
                bad = int(ids.max()) if int(ids.max()) >= limit else int(ids.min())
                raise DataError(
                    "id-out-of-range",
                    f"{kind} id {bad} is outside the model's {limit} {kind}s (0 to {limit - 1}): "
                    f"was the text encoded with another model's tokenizer?",
                )


class Encoder(nn.Module):
    """Embeddings, layers and pooler."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # The dtype of the layers in training, if not that of the weights. Weights are cast to it and get gradients in
        # their own dtype; embeddings, LayerNorm statistics, softmax and losses stay in float32.
        self.training_dtype: torch.dtype | None = None
        self.recompute = False  # in training keep only each layer's input, and recompute the rest in the backward pass
        self.plan = config.layer_plan
        self.is_sparse = [config.is_sparse(layer) for layer in range(1, len(self.plan.rows) + 1)]
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
        dropout_seeds: Sequence[int] | None = None,
        return_layers: bool = False,
    ) -> EncoderOutput:
        """The hidden states of token ids (B, T), and of every layer if `return_layers`.

        `mask` (B, T): True = real token; None = all are. `sequence_ids` (B, T) replaces it for packed sequences, which
        are numbered from 1 in each row (0 = padding) and do not attend to each other. `read_at` (B, Q): the positions
        whose last states are needed, in any order; the last layer computes only these. `dropout_seeds` (one per row):
        dropout masks are drawn from these instead of torch's global generator.
        """
        noise = RowNoise(dropout_seeds) if self.training and dropout_seeds is not None else None
        hidden = self.embeddings(token_ids, segment_ids, position_ids, noise, self.narrow_dtype)  # (B, T, H)
        masks = self.build_masks(hidden, mask, sequence_ids)
        layers, states = self.list_layers(hidden.dtype), [hidden]
        for layer in layers:
            queried = read_at if layer is layers[-1] and not return_layers else None
            if self.recompute and self.training:
                hidden = checkpoint(layer, hidden, masks, queried, noise, use_reentrant=False)
            else:
                hidden = layer(hidden, masks, queried, noise)  # (B, T, H), or (B, Q, H) where queried
            if return_layers:
                states.append(hidden)
        if read_at is not None and return_layers:
            hidden = gather_positions(hidden, read_at)  # (B, Q, H)
        if self.narrow_dtype:
            hidden = hidden.float()  # the heads read float32
        return EncoderOutput(hidden, tuple(states) if return_layers else ())

    def build_masks(self, hidden: Tensor, mask: Tensor | None, sequence_ids: Tensor | None = None) -> AttentionMasks:
        """The attention masks for states (B, T, H); `mask` and `sequence_ids` as in `forward`."""
        full = None if all(self.is_sparse) else attention_mask(mask, sequence_ids, hidden.dtype)
        if not any(self.is_sparse):
            return AttentionMasks(full)
        if sequence_ids is None:
            ones = torch.ones(hidden.shape[:2], dtype=torch.long, device=hidden.device)
            sequence_ids = ones if mask is None else mask.long()
        return AttentionMasks(full, build_sparse_mask(self.config, sequence_ids, hidden.dtype))

    @property
    def narrow_dtype(self) -> torch.dtype | None:
        """The dtype of the layers, if not that of the weights; `training_dtype` does not affect evaluation."""
        return self.training_dtype if self.training else None

    def list_layers(self, dtype: torch.dtype | None = None) -> list[Layer]:
        """The layers in the order they are computed, for states of this dtype; None: that of the weights."""
        dtype = dtype or self.embeddings.token.weight.dtype
        # Shared weights are cast here, once per pass; others in their block's forward, where FSDP has gathered them.
        attention_weights, ffn_weights = (
            [block.cast_weights(dtype) if self.is_shared else None for block in blocks]  # type: ignore[operator]
            for blocks in (self.attention, self.ffn)
        )
        return [
            Layer(
                number,
                self.attention[a],  # type: ignore[arg-type]
                self.ffn[f],  # type: ignore[arg-type]
                self.is_sparse[number - 1],
                attention_weights[a],
                ffn_weights[f],
            )
            for number, (a, f) in enumerate(self.plan.rows, start=1)
        ]

    def pool(self, first: Tensor) -> Tensor:
        """The sequence vectors (S, H) of first-token states (S, H)."""
        assert self.pooler is not None, "this model was built without a pooler"
        return torch.tanh(self.pooler(first))

    def pool_sequences(self, token_ids: Tensor, segment_ids: Tensor | None, mask: Tensor | None) -> Tensor:
        """The sequence vectors (B, H) of token ids (B, T); the last layer computes only first tokens."""
        first = token_ids.new_zeros(len(token_ids), 1)  # (B, 1)
        return self.pool(self(token_ids, segment_ids, mask, read_at=first).hidden[:, 0])


def attention_mask(mask: Tensor | None, sequence_ids: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """The additive attention mask: 0 where a token may attend, else -inf; None if all may attend to all.

    (B, 1, 1, T) for a padding mask, (B, 1, T, T) for packed sequences.
    """
    if sequence_ids is not None:
        # Padding (0) attends to padding: the softmax of a row of only -inf is NaN.
        visible = (sequence_ids[:, :, None] == sequence_ids[:, None, :])[:, None]  # (B, 1, T, T)
    elif mask is not None and (torch.compiler.is_compiling() or not mask.all()):
        visible = mask[:, None, None, :]  # (B, 1, 1, T); without padding, attention is faster without a mask
    else:
        return None
    # Converted to floats once: from a bool mask, every layer would make and store its own float mask.
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, -torch.inf)


def _select(mask: Tensor | None, rows: Tensor) -> Tensor | None:
    return mask[rows] if mask is not None and len(mask) == len(rows) else mask
