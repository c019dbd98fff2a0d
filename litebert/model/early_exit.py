"""Answering before the last layer: one classifier looks after every layer, and stops when it has settled.

Patience-based early exit (PABEE): a text leaves after the layer at which the answer has stayed the same for so many
layers in a row. The layers of an ALBERT are one layer, so one pooler and one classifier serve them all.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from litebert.model.blocks import AttentionBlock
from litebert.model.encoder import attention_mask

if TYPE_CHECKING:
    from litebert.model.model import Model
    from litebert.model.reading import ReadInputs

TOLERANCE = 0.1  # numbers (one label) are the same that differ by less, in the head's own unit


class ExitLogits(NamedTuple):
    """What the classifier said of each text when it left, and after which layer that was."""

    logits: Tensor  # (S, labels)
    layers: Tensor  # (S,) from 1


def read_every_layer(model: "Model", token_ids: Tensor, segment_ids: Tensor, mask: Tensor | None) -> Tensor:
    """The classifier's logits (L, S, labels) after every layer."""
    layers = model.encoder(token_ids, segment_ids, mask, return_layers=True).layers[1:]
    logits: Tensor = model.heads["classification"](model.encoder.pool(torch.stack([states[:, 0] for states in layers])))
    return logits


def exit_early(model: "Model", inputs: "ReadInputs", patience: int) -> ExitLogits:
    """Compute layer after layer, each for the texts that have not left yet."""
    encoder = model.encoder
    hidden = encoder.embeddings(inputs.token_ids, inputs.segment_ids, None)
    visible = attention_mask(inputs.mask, None, hidden.dtype)
    fused = [block.fuse() for block in encoder.attention if isinstance(block, AttentionBlock)]
    rows = torch.arange(len(hidden), device=hidden.device)
    num_labels = next(spec.num_labels for spec in model.head_specs if spec.kind == "classification")
    answers = ExitLogits(hidden.new_zeros(len(rows), num_labels), torch.zeros_like(rows))
    last, count = None, torch.zeros_like(rows)
    num_layers = len(encoder.plan.rows)
    for number, (attention_index, ffn_index) in enumerate(encoder.plan.rows, start=1):
        hidden = encoder.attention[attention_index](hidden, fused[attention_index], visible)
        hidden = encoder.ffn[ffn_index](hidden)
        logits = model.heads["classification"](encoder.pool(hidden[:, 0]))
        guess = _guess(logits)
        count = torch.where(_is_same(guess, last), count + 1, 0) if last is not None else count
        leaves = (count >= patience) | (number == num_layers)
        answers.logits[rows[leaves]] = logits[leaves].to(answers.logits.dtype)
        answers.layers[rows[leaves]] = number
        stays = ~leaves
        if not bool(stays.any()):
            break
        if bool(leaves.any()):
            hidden, rows, guess, count = (values[stays] for values in (hidden, rows, guess, count))
            visible = None if visible is None else visible[stays]
        last = guess
    return answers


def _guess(logits: Tensor) -> Tensor:
    """What is compared from layer to layer: the label's number, or the number that is the answer."""
    return logits.argmax(-1) if logits.shape[-1] > 1 else logits.squeeze(-1)


def _is_same(guess: Tensor, last: Tensor) -> Tensor:
    return (guess - last).abs() < TOLERANCE if guess.is_floating_point() else guess == last
