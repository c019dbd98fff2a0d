"""What is asked of a model, and of any engine that computes it: the logits of one head, by name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from litebert.model.config import HeadKind
from litebert.model.early_exit import exit_early
from litebert.model.heads import NEEDS_POOLER
from litebert.model.pooling import Pooling, pool

if TYPE_CHECKING:
    from litebert.model.model import Model

ReadHead = Literal[HeadKind, "embedding"]  # every encoder gives embeddings
NUM_STARTS = 5  # that the start-conditioned span head computes ends for; the official value

# the outputs of heads that have more, or another, than `logits`
OUTPUTS: dict[ReadHead, tuple[str, ...]] = {
    "span": ("start", "end"),
    "conditional_span": ("start", "starts", "end", "unanswerable"),
    "embedding": ("embedding",),
}


class ReadInputs(NamedTuple):
    """S sequences of T tokens."""

    token_ids: Tensor  # (S, T) int64
    segment_ids: Tensor  # (S, T) int64
    mask: Tensor  # (S, T) bool, True = real token
    allowed: Tensor | None = None  # (S, T) bool, where an answer may lie; for the start-conditioned span head
    mask_id: int = -1  # the token whose places are to be filled; for the head of masked words
    pooling: Pooling = "mean"  # of embeddings; a graph has the one that it was written with
    patience: int = 0  # layers in a row with the same answer after which a text is done; 0: all layers are computed


class Reader(Protocol):
    """A model in evaluation mode, or an engine that computes one."""

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head.

        `logits`: (S, labels) of classification, sentence and choice (one label), (S, T, labels) of tokens, (M, V) of
        masked words: of each mask, row by row. `start` and `end` (S, T) of spans; of the start-conditioned head
        `start`, `starts` (S, K), `end` (S, K, T) and `unanswerable` (S,). `embedding` (S, H). With patience
        classification also gives `layers` (S,): how many were computed.
        """
        ...


def output_names(head: ReadHead, *, has_exits: bool = False) -> tuple[str, ...]:
    """The outputs of a head; `has_exits`: of one that may answer early."""
    return ("logits", "layers") if has_exits else OUTPUTS.get(head, ("logits",))


def read_head(model: "Model", head: ReadHead, inputs: ReadInputs) -> dict[str, Tensor]:
    """The outputs of a head of a model, which are those of `Reader.read`."""
    token_ids, segment_ids, mask = inputs.token_ids, inputs.segment_ids, inputs.mask
    if head == "classification" and inputs.patience:
        return exit_early(model, inputs, inputs.patience)._asdict()
    if head in NEEDS_POOLER:
        pooled = model.encoder.pool_sequences(token_ids, segment_ids, mask)
        return {"logits": model.heads[head](pooled, 1) if head == "choice" else model.heads[head](pooled)}
    hidden = model.encoder(token_ids, segment_ids, mask).hidden
    if head == "embedding":
        return {"embedding": pool(hidden, mask, inputs.pooling)}
    if head == "mlm":
        places = torch.nonzero((token_ids == inputs.mask_id).flatten()).squeeze(1)
        return {"logits": model.masked_lm_logits(hidden, places)}
    if head == "tokens":
        return {"logits": model.heads[head](hidden)}
    if head == "conditional_span":
        assert inputs.allowed is not None, "the start-conditioned head must know where an answer may lie"
        outputs: dict[str, Tensor] = model.heads[head](hidden, inputs.allowed, num_starts=NUM_STARTS)._asdict()
        return outputs
    spans: dict[str, Tensor] = model.heads[head](hidden)._asdict()
    return spans
