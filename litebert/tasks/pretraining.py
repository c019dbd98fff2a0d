"""Pre-training as a task: the loss of masked words and of sentence order on one batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from litebert.data.batch import Batch
from litebert.model.config import HeadSpec
from litebert.model.model import Model
from litebert.tasks.task import Counts, PartLoss


class PretrainingLoss(NamedTuple):
    """The loss, its parts, and how many guesses were right."""

    loss: Tensor  # the sum of both parts
    mlm_loss: Tensor
    sentence_loss: Tensor | None  # None without a sentence task
    mlm_correct: Tensor
    num_masked: int
    sentence_correct: Tensor | None
    num_sequences: int


def pretraining_loss(
    model: Model, batch: Batch, *, num_masked: int | None = None, num_sequences: int | None = None
) -> PretrainingLoss:
    """The mean loss over the batch's masked words plus the mean sentence loss over its sequences.

    Micro-batches add up to exactly their global batch, loss and gradients, when each is divided by the global counts:
    give them as `num_masked` and `num_sequences`.
    """
    first, masked = read_states(model, batch)
    mlm_sum, mlm_correct = model.masked_lm_loss(masked, batch.mlm_labels)
    loss = mlm_loss = mlm_sum / max(1, len(masked) if num_masked is None else num_masked)
    sentence_loss = sentence_correct = None
    if batch.sentence_labels is not None:
        logits = model.heads["sentence"](model.encoder.pool(first))  # (S, labels)
        sentence_sum = F.cross_entropy(logits, batch.sentence_labels, reduction="sum")
        sentence_loss = sentence_sum / (len(first) if num_sequences is None else num_sequences)
        sentence_correct = (logits.argmax(-1) == batch.sentence_labels).sum()
        loss = mlm_loss + sentence_loss
    return PretrainingLoss(
        loss, mlm_loss, sentence_loss, mlm_correct, len(masked), sentence_correct, batch.num_sequences
    )


def read_states(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """The last states of first tokens (S, H) and of masked words (M, H), the only ones that the last layer computes."""
    read_at, found_at = plan_reading(torch.cat([batch.first_tokens, batch.mlm_positions]), *batch.token_ids.shape)
    output = model.encoder(
        batch.token_ids,
        batch.segment_ids,
        batch.mask,
        position_ids=batch.position_ids,
        sequence_ids=batch.sequence_ids,
        read_at=read_at,
    )
    states = output.hidden.flatten(0, 1)[found_at]  # (S + M, H)
    return states[: batch.num_sequences], states[batch.num_sequences :]


def plan_reading(wanted: Tensor, num_rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Columns to read in each row (B, Q), and where each wanted flat position is found among the (B * Q) states.

    A row that wants less than the fullest reads its first column again.
    """
    rows, columns = wanted // length, wanted % length
    order = rows.argsort(stable=True)
    counts = rows.bincount(minlength=num_rows)  # (B,)
    slots = torch.empty_like(rows)
    slots[order] = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows[order]]
    read_at = wanted.new_zeros(num_rows, int(counts.max()))  # (B, Q)
    read_at[rows, slots] = columns
    return read_at, rows * read_at.shape[1] + slots


@dataclass(frozen=True)
class Pretraining:
    """The task: masked words, and sentence order or its kin where `num_sentence_labels` is not 0."""

    num_sentence_labels: int = 2

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        sentence = (HeadSpec("sentence", self.num_sentence_labels),) if self.num_sentence_labels else ()
        return (HeadSpec("mlm"), *sentence)

    def count(self, part: Batch) -> dict[str, int]:
        return {
            "masked": len(part.mlm_positions),
            "sequences": part.num_sequences,
            "tokens": int(part.mask.sum()),
            "positions": part.mask.numel(),
        }

    def loss(self, model: Model, part: Batch, totals: Counts) -> PartLoss:
        result = pretraining_loss(model, part, num_masked=totals["masked"], num_sequences=totals["sequences"])
        sums = {"loss": result.loss, "mlm_loss": result.mlm_loss, "mlm_correct": result.mlm_correct}
        if result.sentence_loss is not None and result.sentence_correct is not None:
            sums |= {"sentence_loss": result.sentence_loss, "sentence_correct": result.sentence_correct}
        return PartLoss(result.loss, {name: value.detach() for name, value in sums.items()})

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
