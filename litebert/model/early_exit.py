"""Answering before the last layer: one classifier looks at every layer, and a text leaves once its answer has settled.

Patience-based early exit (PABEE): a text leaves after the layer at which its answer has stayed the same for so many
layers in a row. The layers of an ALBERT are one layer, so one pooler and one classifier serve them all.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from litebert.model.engine import HeadInputs
    from litebert.model.model import Model

TOLERANCE = 0.1  # with one label (regression), answers that differ by less count as the same; in the head's own unit


class ExitLogits(NamedTuple):
    """The classifier's logits for each text when it left, and the layer after which it left."""

    logits: Tensor  # (S, labels)
    layers: Tensor  # (S,) from 1


def read_every_layer(model: "Model", token_ids: Tensor, segment_ids: Tensor, mask: Tensor | None) -> Tensor:
    """The classifier's logits (L, S, labels) after every layer."""
    layers = model.encoder(token_ids, segment_ids, mask, return_layers=True).layers[1:]
    first = torch.stack([states[:, 0] for states in layers])  # (L, S, H)
    logits: Tensor = model.heads["classification"](model.encoder.pool(first))
    return logits


def exit_early(model: "Model", inputs: "HeadInputs", patience: int) -> ExitLogits:
    """Compute layer after layer, each for the texts that have not left yet."""
    encoder = model.encoder
    hidden = encoder.embeddings(inputs.token_ids, inputs.segment_ids, None)  # (S, T, H)
    visible = encoder.see(hidden, inputs.mask)
    rows = torch.arange(len(hidden), device=hidden.device)  # the texts that are still here
    num_labels = next(spec.num_labels for spec in model.head_specs if spec.kind == "classification")
    left = ExitLogits(hidden.new_zeros(len(rows), num_labels), torch.zeros_like(rows))
    previous, repeats = None, torch.zeros_like(rows)
    layers = encoder.list_layers()
    for layer in layers:
        hidden = layer(hidden, visible)
        logits = model.heads["classification"](encoder.pool(hidden[:, 0]))
        # what is compared from layer to layer: the label's number, or the number that is the answer
        answer = logits.argmax(-1) if num_labels > 1 else logits.squeeze(-1)
        if previous is not None:
            is_same = answer == previous if num_labels > 1 else (answer - previous).abs() < TOLERANCE
            repeats = torch.where(is_same, repeats + 1, 0)
        leaves = (repeats >= patience) | (layer is layers[-1])
        left.logits[rows[leaves]] = logits[leaves].to(left.logits.dtype)
        left.layers[rows[leaves]] = layer.number
        stays = ~leaves
        if not bool(stays.any()):
            break
        if bool(leaves.any()):
            hidden, rows, answer, repeats = (values[stays] for values in (hidden, rows, answer, repeats))
            visible = visible.select(stays)
        previous = answer
    return left


def weigh_layers(logits: Tensor, loss_of: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean loss over all layers' logits (L, S, labels); a layer weighs as much as its number, as in PABEE."""
    weights = torch.arange(1, len(logits) + 1, device=logits.device, dtype=torch.float32)
    losses = torch.stack([loss_of(layer) for layer in logits])  # (L,)
    return (losses * weights).sum() / weights.sum()
