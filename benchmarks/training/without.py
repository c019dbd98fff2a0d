"""Disable one technique of our training step: inside a `with` block, the plain implementation replaces it."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.batches.batch import Batch
from litebert.model.blocks import AttentionBlock, gather_positions
from litebert.model.encoder import attention_mask
from litebert.model.model import Model


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    return F.linear(activation(x), weight, bias)


def spelled_linear(x: Tensor, weight: Tensor, bias: Tensor, _: Callable[[Tensor], Tensor]) -> Tensor:
    """GELU, one operation at a time, as transformers implements it."""
    return F.linear(
        0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))), weight, bias
    )


def plain_vocabulary_loss(
    states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: None = None
) -> tuple[Tensor, Tensor]:
    assert weights is None
    logits = F.linear(states, table, bias)
    return F.cross_entropy(logits, labels, reduction="sum"), (logits.argmax(-1) == labels).sum()


def read_everywhere(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    hidden = model.encoder(batch.token_ids, batch.segment_ids).hidden.flatten(0, 1)
    return hidden[batch.first_tokens], hidden[batch.mlm_positions]


def predict_everywhere(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    hidden = model.encoder(batch.token_ids, batch.segment_ids).hidden.flatten(0, 1)
    return hidden[batch.first_tokens], hidden


def whole_vocabulary_loss(
    states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, weights: None = None
) -> tuple[Tensor, Tensor]:
    """Logits at every token; unlabelled tokens are ignored."""
    everywhere = F.pad(labels, (0, len(states) - len(labels)), value=-100)
    return plain_vocabulary_loss(states, table, bias, everywhere, weights)


def attend_unfused(
    self: AttentionBlock, hidden: Tensor, _: Any, mask: Tensor | None, read_at: Tensor | None, *__: Any
) -> Tensor:
    queries = hidden if read_at is None else gather_positions(hidden, read_at)
    context = F.scaled_dot_product_attention(
        self._split(self.query(queries)), self._split(self.key(hidden)), self._split(self.value(hidden)), attn_mask=mask
    )
    return self.norm(queries + self.output(context.transpose(1, 2).flatten(2)))


def replaced(**replacements: Any) -> Callable[[], AbstractContextManager[Any]]:
    """A `with` block in which names have other values; double underscores stand for dots."""

    @contextmanager
    def replacing() -> Iterator[None]:
        with ExitStack() as stack:
            for name, value in replacements.items():
                stack.enter_context(patch(f"litebert.{name.replace('__', '.')}", value))
            yield

    return replacing


def attention_mask_always(mask: Tensor | None, sequence_ids: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Add the mask even if it masks nothing."""
    if sequence_ids is not None or mask is None:
        return attention_mask(mask, sequence_ids, dtype)
    visible = mask[:, None, None, :]  # (B, 1, 1, T)
    return torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, -torch.inf)


WITHOUT: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "logits at masked words only": replaced(
        objectives__masked_lm__read_states=predict_everywhere, model__model__vocabulary_loss=whole_vocabulary_loss
    ),
    "logits a few rows at a time": replaced(model__model__vocabulary_loss=plain_vocabulary_loss),
    "reading some of the last layer": replaced(objectives__masked_lm__read_states=read_everywhere),
    "computing the activation again": replaced(model__blocks__activated_linear=plain_linear),
    "a GELU of few operations": replaced(model__blocks__activated_linear=spelled_linear),
    "GELU through sigmoid": replaced(model__lean___has_fast_form=lambda *_: False),
    "fused query, key, value": replaced(model__blocks__AttentionBlock__forward=attend_unfused),
    "leaving out an empty mask": replaced(model__encoder__attention_mask=attention_mask_always),
    "fused AdamW": nullcontext,  # set where the optimizer is built
}
