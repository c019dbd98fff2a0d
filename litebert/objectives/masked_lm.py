"""Masked tokens, and sentence order or a related task: what BERT, RoBERTa and ALBERT are pre-trained on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.batches.batch import Batch
from litebert.batches.options import MaskingOptions
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.cost import training_flops_per_token
from litebert.model.model import Model
from litebert.objectives.objective import Objective
from litebert.tasks.task import BatchLoss, Counts

if TYPE_CHECKING:
    from litebert.pretraining.recipe import Recipe

_SIGNIFICANT = 1.645  # standard errors above chance; luck alone gets there one time in twenty
_NAMES = {"mlm": "masked words", "sentence": "the sentence task"}


@dataclass(frozen=True)
class MaskedLM(Objective):
    """The mean loss over masked tokens, plus the mean loss of the sentence task over sequences where there is one."""

    num_sentence_labels: int = 2  # SOP and NSP 2, three-way 3; 0: no sentence task
    masking: MaskingOptions = field(default_factory=MaskingOptions)
    shown = ("loss", "mlm_accuracy", "sentence_accuracy")

    @classmethod
    def from_recipe(cls, recipe: "Recipe") -> Self:
        return cls(recipe.segments.num_labels, recipe.masking)

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        sentence = (HeadSpec("sentence", self.num_sentence_labels),) if self.num_sentence_labels else ()
        return (HeadSpec("mlm"), *sentence)

    @property
    def reads_pooler(self) -> bool:
        return self.num_sentence_labels > 0

    @property
    def vocabulary_rate(self) -> float:
        return self.masking.rate

    def flops_per_token(self, config: ModelConfig, length: int, *, step: int = 0) -> float:
        return training_flops_per_token(config, length, mlm_rate=self.masking.rate_at(step))

    def count(self, batch: Batch) -> dict[str, int]:
        return {
            "masked": len(batch.mlm_positions),
            "sequences": batch.num_sequences,
            "tokens": int(batch.mask.sum()),
            "positions": batch.mask.numel(),
        }

    def loss(self, model: Model, batch: Batch, totals: Counts) -> BatchLoss:
        first, masked = read_states(model, batch)
        summed, mlm_correct = model.masked_lm_loss(masked, batch.mlm_labels)
        loss = mlm_loss = summed / max(1, totals["masked"])
        sums = {"mlm_loss": mlm_loss, "mlm_correct": mlm_correct}
        if batch.sentence_labels is not None:
            logits = model.heads["sentence"](model.encoder.pool(first))  # (S, labels)
            summed = F.cross_entropy(logits, batch.sentence_labels, reduction="sum")
            sums["sentence_loss"] = summed / totals["sequences"]
            sums["sentence_correct"] = (logits.argmax(-1) == batch.sentence_labels).sum()
            loss = mlm_loss + sums["sentence_loss"]
        return BatchLoss(loss, {name: value.detach() for name, value in {"loss": loss, **sums}.items()})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        metrics = {
            "loss": sums["loss"],
            "mlm_loss": sums["mlm_loss"],
            "mlm_accuracy": sums["mlm_correct"] / max(totals["masked"], 1),
        }
        if self.num_sentence_labels:
            metrics |= {
                "sentence_loss": sums["sentence_loss"],
                "sentence_accuracy": sums["sentence_correct"] / totals["sequences"],
            }
        return metrics

    def find_at_chance(self, metrics: Mapping[str, float], batches: Sequence[Batch]) -> dict[str, str]:
        """The heads whose accuracy is no better than always giving the most frequent answer."""
        labels = {"mlm": [batch.mlm_labels for batch in batches]}
        if all(batch.sentence_labels is not None for batch in batches):
            labels["sentence"] = [batch.sentence_labels for batch in batches if batch.sentence_labels is not None]
        found: dict[str, str] = {}
        for head, of_batches in labels.items():
            answers = torch.cat(of_batches)
            if f"{head}_accuracy" not in metrics or not len(answers):
                continue
            chance = float(answers.bincount().max()) / len(answers)
            needed = chance + _SIGNIFICANT * math.sqrt(chance * (1 - chance) / len(answers))
            accuracy = metrics[f"{head}_accuracy"]
            if accuracy <= needed:
                found[head] = (
                    f"{_NAMES[head]} is not above chance: accuracy {accuracy:.3f} on {len(answers):,} validation "
                    f"examples (majority class {chance:.3f}; significant above {needed:.3f}); do not rely on this head"
                )
        return found


def read_states(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """The last states of first tokens (S, H) and masked tokens (M, H), the only ones that the last layer computes."""
    read_at, found_at = plan_reading(torch.cat([batch.first_tokens, batch.mlm_positions]), *batch.token_ids.shape)
    output = model.encoder(
        batch.token_ids,
        batch.segment_ids,
        batch.mask,
        position_ids=batch.position_ids,
        sequence_ids=batch.sequence_ids,
        read_at=read_at,
        dropout_seeds=batch.dropout_seeds,
    )
    states = output.hidden.flatten(0, 1)[found_at]  # (S + M, H)
    return states[: batch.num_sequences], states[batch.num_sequences :]


def plan_reading(wanted: Tensor, num_rows: int, length: int) -> tuple[Tensor, Tensor]:
    """The columns to read in each row (B, Q), and the index of each wanted flat position among the (B * Q) states.

    Rows with fewer positions than the fullest one read column 0 for the rest.
    """
    rows, columns = wanted // length, wanted % length
    order = rows.argsort(stable=True)
    counts = rows.bincount(minlength=num_rows)  # (B,)
    slots = torch.empty_like(rows)
    slots[order] = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows[order]]
    read_at = wanted.new_zeros(num_rows, int(counts.max()))  # (B, Q)
    read_at[rows, slots] = columns
    return read_at, rows * read_at.shape[1] + slots
