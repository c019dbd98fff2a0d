"""The heads on top of the encoder: masked LM, sentence order, classification, tokens, spans, choices."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from litebert.core.errors import ConfigError
from litebert.model.blocks import ACTIVATIONS, gather_positions
from litebert.model.config import HeadKind, HeadSpec, ModelConfig
from litebert.model.lean import cast_linear

FORBIDDEN = -1e30  # the logit of a position that cannot be an answer, as in the official SQuAD 2.0 head


def forbid(logits: Tensor, allowed: Tensor) -> Tensor:
    """Mask logits so that a softmax gives 0 where not allowed; in half precision by its lowest value, not -1e30."""
    return logits.masked_fill(~allowed, max(FORBIDDEN, torch.finfo(logits.dtype).min))


class MaskedLMHead(nn.Module):
    """Vocabulary logits; the decoder is the token table, passed as an argument so that it is stored only once."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = nn.LayerNorm(config.embedding_size, eps=config.norm_epsilon)
        self.bias = nn.Parameter(torch.empty(config.vocab_size))
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, hidden: Tensor, token_table: Tensor, positions: Tensor | None = None) -> Tensor:
        """Logits (..., V) everywhere, or (M, V) at `positions`: flat indices into the (B * T) states."""
        if positions is not None:
            hidden = hidden.flatten(0, -2)[positions]  # (M, H)
        return F.linear(self.transform(hidden), token_table, self.bias)

    def transform(self, hidden: Tensor) -> Tensor:
        """The vectors (..., E) whose products with the token table are the logits."""
        transformed: Tensor = self.norm(self.activation(cast_linear(hidden, self.dense)))
        return transformed


class SentenceHead(nn.Module):
    """Logits (S, labels) of a pooled vector: SOP, NSP (0 = as written, 1 = not) or three-way.

    It has no dropout, as in Google's code.
    """

    def __init__(self, config: ModelConfig, num_labels: int = 2) -> None:
        super().__init__()
        self.output = nn.Linear(config.hidden_size, num_labels)

    def forward(self, pooled: Tensor) -> Tensor:
        logits: Tensor = self.output(pooled)
        return logits


class ClassificationHead(nn.Module):
    """Logits (S, labels) of a pooled vector, or (B, T, labels) of every token; one label = regression."""

    def __init__(self, config: ModelConfig, num_labels: int) -> None:
        super().__init__()
        self.output = nn.Linear(config.hidden_size, num_labels)
        self.dropout_rate = config.classifier_dropout_rate

    def forward(self, states: Tensor) -> Tensor:
        logits: Tensor = self.output(F.dropout(states, self.dropout_rate, self.training))
        return logits


class ChoiceHead(nn.Module):
    """One logit for each of C choices from the pooled vectors of their (S = B * C) sequences."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.output = nn.Linear(config.hidden_size, 1)
        self.dropout_rate = config.classifier_dropout_rate

    def forward(self, pooled: Tensor, num_choices: int) -> Tensor:
        logits: Tensor = self.output(F.dropout(pooled, self.dropout_rate, self.training))  # (B * C, 1)
        return logits.view(-1, num_choices)


class SpanLogits(NamedTuple):
    """Logits of the start and the end of an answer, both (B, T)."""

    start: Tensor
    end: Tensor


class SpanHead(nn.Module):
    """Independent start and end logits: the SQuAD 1.1 head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.output = nn.Linear(config.hidden_size, 2)

    def forward(self, hidden: Tensor) -> SpanLogits:
        start, end = self.output(hidden).unbind(-1)
        return SpanLogits(start, end)


class ConditionalSpanLogits(NamedTuple):
    """Start logits, the starts for which ends were computed, their end logits, and the no-answer logit."""

    start: Tensor  # (B, T)
    starts: Tensor  # (B, K) positions: the gold start (K = 1) in training, the K best otherwise
    end: Tensor  # (B, K, T)
    unanswerable: Tensor  # (B,) logit; large = the question has no answer


class ConditionalSpanHead(nn.Module):
    """The SQuAD 2.0 head: the end depends on the start, and a classifier predicts whether there is an answer at all."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.start = nn.Linear(width, 1)
        self.end_dense = nn.Linear(2 * width, width)
        self.end_norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.end = nn.Linear(width, 1)
        self.answer_dense = nn.Linear(2 * width, width)
        self.answer = nn.Linear(width, 1, bias=False)
        self.dropout_rate = config.classifier_dropout_rate

    def forward(
        self, hidden: Tensor, allowed: Tensor, gold_start: Tensor | None = None, *, num_starts: int = 5
    ) -> ConditionalSpanLogits:
        """`allowed` (B, T): True where an answer may be; `gold_start` (B,) in training."""
        start = forbid(self.start(hidden).squeeze(-1), allowed)  # (B, T)
        if gold_start is not None:
            starts = gold_start[:, None]  # (B, 1)
        else:
            starts = start.topk(min(num_starts, start.shape[1]), dim=-1).indices  # (B, K)
        return ConditionalSpanLogits(
            start, starts, self._end_logits(hidden, allowed, starts), self._unanswerable(hidden, start)
        )

    def _end_logits(self, hidden: Tensor, allowed: Tensor, starts: Tensor) -> Tensor:
        # A linear map of a pair (token, start) is the sum of two maps: T + K multiplies instead of T * K.
        of_token, of_start = self.end_dense.weight.chunk(2, dim=1)  # (H, H) each
        start_states = gather_positions(hidden, starts)  # (B, K, H)
        from_tokens = F.linear(hidden, of_token)[:, None]  # (B, 1, T, H)
        from_starts = F.linear(start_states, of_start, self.end_dense.bias)[:, :, None]  # (B, K, 1, H)
        states = self.end_norm(torch.tanh(from_tokens + from_starts))  # (B, K, T, H)
        logits: Tensor = self.end(states).squeeze(-1)  # (B, K, T)
        return forbid(logits, allowed[:, None])

    def _unanswerable(self, hidden: Tensor, start: Tensor) -> Tensor:
        likely_start = torch.einsum("bt,bth->bh", start.softmax(-1), hidden)  # (B, H)
        features = torch.tanh(self.answer_dense(torch.cat([likely_start, hidden[:, 0]], dim=-1)))  # (B, H)
        features = F.dropout(features, self.dropout_rate, self.training)
        logits: Tensor = self.answer(features).squeeze(-1)  # (B,)
        return logits


BUILDERS: dict[HeadKind, Callable[[ModelConfig, int], nn.Module]] = {
    "mlm": lambda config, _: MaskedLMHead(config),
    "sentence": SentenceHead,
    "classification": ClassificationHead,
    "tokens": ClassificationHead,
    "span": lambda config, _: SpanHead(config),
    "conditional_span": lambda config, _: ConditionalSpanHead(config),
    "choice": lambda config, _: ChoiceHead(config),
}
NEEDS_POOLER: frozenset[HeadKind] = frozenset({"sentence", "classification", "choice"})


def build_head(config: ModelConfig, spec: HeadSpec) -> nn.Module:
    """The head of a specification; its weights are not initialized."""
    if spec.kind in NEEDS_POOLER and not config.has_pooler:
        raise ConfigError(
            "no-pooler", f"head '{spec.kind}' reads the pooled vector, but has_pooler = false: set it to true"
        )
    return BUILDERS[spec.kind](config, spec.num_labels)
