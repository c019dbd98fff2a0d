"""A model's outputs for sentence pairs: the [CLS] state, its own head's answer, and masked-token predictions."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from litebert.batches.batch import Batch
from litebert.evaluation.intrinsic.logistic import fit_classifier
from litebert.evaluation.intrinsic.pair_batches import PairWriter
from litebert.evaluation.intrinsic.pairs import IN_ORDER, NOT_IN_ORDER, PairTable
from litebert.evaluation.intrinsic.shallow import FrequentPieces
from litebert.model.model import Model
from litebert.objectives.masked_lm import read_states

Advance = Callable[[int], None]  # called with the number of sequences read


@dataclass(frozen=True)
class PairStates:
    """A model's outputs for S pairs."""

    first: Tensor  # (S, H) the last state of [CLS]
    answers: NDArray[np.int64] | None  # (S,) its own head's IN_ORDER or NOT_IN_ORDER; None without a head


@dataclass(frozen=True)
class GuessedWords:
    """Which of M masked tokens the model and each baseline predicted correctly."""

    by_model: NDArray[np.bool_]  # every target masked
    by_model_usual: NDArray[np.bool_]  # 80/10/10
    by_frequency: NDArray[np.bool_]
    by_left_neighbour: NDArray[np.bool_]
    losses: NDArray[np.float64]  # of the model, every target masked
    losses_usual: NDArray[np.float64]
    documents: NDArray[np.int64]  # the document of each token


@torch.no_grad()
def read_pairs(model: Model, writer: PairWriter, pairs: PairTable, advance: Advance) -> PairStates:
    """Read pairs without masks."""
    first = torch.empty(len(pairs.labels), model.config.hidden_size)
    answers = np.empty(len(pairs.labels), np.int64)
    has_head = "sentence" in model.heads
    for numbers, batch in writer.iter_batches(pairs):
        states, _ = read_states(model, _prepare(batch, model))
        first[torch.from_numpy(numbers)] = states.cpu()
        if has_head:
            logits = model.heads["sentence"](model.encoder.pool(states))
            answers[numbers] = answer(logits, pairs.alternative).cpu().numpy()
        advance(len(numbers))
    return PairStates(first, answers if has_head else None)


def answer(logits: Tensor, alternative: int) -> Tensor:
    """IN_ORDER if class 0, the original order, is at least as probable as the alternative.

    With three classes that is `alternative`, SWAPPED or RANDOM; a head with two classes has one class for both.
    """
    other = logits[:, min(alternative, logits.shape[1] - 1)]
    return torch.where(logits[:, 0] >= other, IN_ORDER, NOT_IN_ORDER)


def probe(states: PairStates, learned_states: PairStates, learned: PairTable) -> NDArray[np.int64]:
    """A label per pair by a linear probe on the state of [CLS], trained on other pairs."""
    mean, std = learned_states.first.mean(0), learned_states.first.std(0).clamp_min(1e-6)
    classifier = fit_classifier(
        ((learned_states.first - mean) / std).double(),
        torch.from_numpy(learned.labels),
        torch.from_numpy(learned.documents),
    )
    logits = classifier.logits(((states.first - mean) / std).double())
    return np.where(logits.numpy() > 0, NOT_IN_ORDER, IN_ORDER)


@torch.no_grad()
def guess_words(
    model: Model, writer: PairWriter, pairs: PairTable, frequent: FrequentPieces, advance: Advance
) -> GuessedWords:
    """Predict masked tokens twice: with [MASK] for every target, and with 80/10/10 masking as in training."""
    parts = []
    for numbers, usual in writer.iter_batches(pairs, is_masked=True):
        hidden_ids = usual.token_ids.flatten().clone()
        hidden_ids[usual.mlm_positions] = writer.writer.vocabulary.mask_id
        hidden = replace(usual, token_ids=hidden_ids.view_as(usual.token_ids))
        labels = usual.mlm_labels.numpy()
        left = hidden_ids[usual.mlm_positions - 1].numpy()
        is_right, losses = _guess(model, hidden)
        is_right_usual, losses_usual = _guess(model, usual)
        rows = (usual.mlm_positions // usual.token_ids.shape[1]).numpy()
        parts.append(
            (
                is_right,
                is_right_usual,
                labels == frequent.anywhere,
                labels == frequent.after[left],
                losses,
                losses_usual,
                pairs.documents[numbers][rows],
            )
        )
        advance(2 * len(numbers))
    return GuessedWords(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _guess(model: Model, batch: Batch) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    on_device = _prepare(batch, model)
    _, states = read_states(model, on_device)
    logits = model.masked_lm_logits(states)  # (M, V)
    is_right = logits.argmax(-1) == on_device.mlm_labels
    losses = F.cross_entropy(logits.float(), on_device.mlm_labels, reduction="none")
    return is_right.cpu().numpy(), losses.double().cpu().numpy()


def _prepare(batch: Batch, model: Model) -> Batch:
    """The batch on the model's device, with a single segment id if the model has only one."""
    if model.config.num_segments == 1:
        batch = replace(batch, segment_ids=torch.zeros_like(batch.segment_ids))
    return batch.to(model.encoder.embeddings.token.weight.device)
