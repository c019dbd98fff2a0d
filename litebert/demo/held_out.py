"""Accuracy of a pre-trained model and of constant baselines on validation text, with confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from litebert.batches.batch import Batch
from litebert.evaluation.intrinsic.score import wilson_interval
from litebert.model.model import Model
from litebert.objectives.masked_lm import read_states


@dataclass(frozen=True)
class Share:
    """The share of correct predictions."""

    right: int
    total: int

    @property
    def value(self) -> float:
        return self.right / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, treating the predictions as independent."""
        return wilson_interval(self.value, self.total) if self.total else (0.0, 1.0)


@dataclass(frozen=True)
class HeldOutScore:
    """Accuracy on masked tokens and sentence pairs; `lead` are the pairs that open a document.

    A document's first sentence gives the order away, so those pairs are also counted separately.
    """

    masked: Share
    pairs: Share
    lead: Share
    inner: Share


@torch.no_grad()
def score_model(model: Model, batches: Sequence[Batch]) -> HeldOutScore:
    """A model's accuracy."""
    model.eval()
    right_words: list[torch.Tensor] = []
    right_pairs: list[torch.Tensor] = []
    for batch in batches:
        first, masked = read_states(model, batch)
        right_words.append(model.masked_lm_logits(masked).argmax(-1) == batch.mlm_labels)
        guesses = model.heads["sentence"](model.encoder.pool(first)).argmax(-1)  # (S,)
        right_pairs.append(guesses == _known(batch.sentence_labels))
    return _count(torch.cat(right_words), torch.cat(right_pairs), batches)


def score_constant(batches: Sequence[Batch], *, token_id: int, sentence_label: int) -> HeldOutScore:
    """The accuracy of always predicting the same token and the same order."""
    right_words = torch.cat([batch.mlm_labels == token_id for batch in batches])
    right_pairs = torch.cat([_known(batch.sentence_labels) == sentence_label for batch in batches])
    return _count(right_words, right_pairs, batches)


def _count(right_words: torch.Tensor, right_pairs: torch.Tensor, batches: Sequence[Batch]) -> HeldOutScore:
    is_lead = torch.cat([_known(batch.opens_document) for batch in batches])
    return HeldOutScore(
        masked=_share(right_words),
        pairs=_share(right_pairs),
        lead=_share(right_pairs[is_lead]),
        inner=_share(right_pairs[~is_lead]),
    )


def _share(is_right: torch.Tensor) -> Share:
    return Share(int(is_right.sum()), len(is_right))


def _known(values: torch.Tensor | None) -> torch.Tensor:
    assert values is not None, "the batch needs a sentence task and document openings"
    return values
