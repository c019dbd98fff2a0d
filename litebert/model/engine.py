"""The interface of engines (a head's inputs in, its named outputs out), and its implementation in torch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from litebert.model.config import HeadKind, Pooling
from litebert.model.early_exit import exit_early
from litebert.model.heads import NEEDS_POOLER
from litebert.model.pooling import pool

if TYPE_CHECKING:
    from litebert.model.model import Model

HeadName = Literal[HeadKind, "embedding"]  # every encoder has "embedding"
NUM_STARTS = 5  # start positions for which the start-conditioned span head computes ends; the official value

# the outputs of heads that return anything other than `logits`
OUTPUTS: dict[HeadName, tuple[str, ...]] = {
    "span": ("start", "end"),
    "conditional_span": ("start", "starts", "end", "unanswerable"),
    "embedding": ("embedding",),
}


class HeadInputs(NamedTuple):
    """S sequences of T tokens, and additional inputs of some heads."""

    token_ids: Tensor  # (S, T) int64
    segment_ids: Tensor  # (S, T) int64
    mask: Tensor  # (S, T) bool, True = real token
    allowed: Tensor | None = None  # (S, T) bool, where an answer may be; for the start-conditioned span head
    mask_id: int = -1  # the token whose positions are predicted; for the masked LM head
    pooling: Pooling = "mean"  # of embeddings; in an ONNX graph it is fixed
    patience: int = 0  # consecutive layers with the same answer after which a text exits; 0: compute all layers


class Engine(Protocol):
    """A model in evaluation mode, run by any library."""

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        """The outputs of a head by name, on the CPU; floats are float32.

        `logits`: (S, labels) of classification, sentence and choice (one label), (S, T, labels) of tokens, (M, V) of
        the masked LM head: one row per mask, in reading order. `start` and `end` (S, T) of spans; of the
        start-conditioned head `start`, `starts` (S, K), `end` (S, K, T) and `unanswerable` (S,). `embedding` (S, H).
        With `patience`, classification also returns `layers` (S,): how many were computed.
        """
        ...


def output_names(head: HeadName, *, has_exits: bool = False) -> tuple[str, ...]:
    """The names of a head's outputs, with early exit if `has_exits`."""
    return ("logits", "layers") if has_exits else OUTPUTS.get(head, ("logits",))


@torch.no_grad()
def run_head(model: "Model", head: HeadName, inputs: HeadInputs) -> dict[str, Tensor]:
    """The outputs of a head of a torch model, which it puts into evaluation mode; named as in `Engine.run`."""
    model.eval()
    token_ids, segment_ids, mask = inputs.token_ids, inputs.segment_ids, inputs.mask
    if head == "classification" and inputs.patience:
        return exit_early(model, inputs, inputs.patience)._asdict()
    if head in NEEDS_POOLER:
        pooled = model.encoder.pool_sequences(token_ids, segment_ids, mask)  # (S, H)
        return {"logits": model.heads[head](pooled, 1) if head == "choice" else model.heads[head](pooled)}
    hidden = model.encoder(token_ids, segment_ids, mask).hidden  # (S, T, H)
    if head == "embedding":
        return {"embedding": pool(hidden, mask, inputs.pooling)}
    if head == "mlm":
        masks = torch.nonzero((token_ids == inputs.mask_id).flatten()).squeeze(1)  # (M,)
        return {"logits": model.masked_lm_logits(hidden, masks)}
    if head == "tokens":
        return {"logits": model.heads[head](hidden)}
    if head == "conditional_span":
        assert inputs.allowed is not None, "the start-conditioned head must know where an answer may be"
        outputs: dict[str, Tensor] = model.heads[head](hidden, inputs.allowed, num_starts=NUM_STARTS)._asdict()
        return outputs
    spans: dict[str, Tensor] = model.heads[head](hidden)._asdict()
    return spans
