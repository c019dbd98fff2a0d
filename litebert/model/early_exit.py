"""Early exit: one classifier reads every layer, and a text exits when its prediction no longer changes.

This is patience-based early exit (PABEE): a text exits once its prediction has stayed the same for `patience` layers
in a row. All layers of ALBERT are the same layer, so one pooler and one classifier serve them all.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from litebert.model.engine import HeadInputs
    from litebert.model.model import Model

TOLERANCE = 0.1  # in regression, predictions that differ by less count as the same; in the head's own unit


class ExitLogits(NamedTuple):
    """The classifier's logits for each text, and the layer after which the text exited."""

    logits: Tensor  # (S, labels)
    layers: Tensor  # (S,) from 1


def read_every_layer(model: "Model", token_ids: Tensor, segment_ids: Tensor, mask: Tensor | None) -> Tensor:
    """The classifier's logits (L, S, labels) after every layer."""
    layers = model.encoder(token_ids, segment_ids, mask, return_layers=True).layers[1:]
    first = torch.stack([states[:, 0] for states in layers])  # (L, S, H)
    logits: Tensor = model.heads["classification"](model.encoder.pool(first))
    return logits


def exit_early(model: "Model", inputs: "HeadInputs", patience: int) -> ExitLogits:
    """Compute layer by layer, each only for the texts that have not exited yet."""
    encoder = model.encoder
    hidden = encoder.embeddings(inputs.token_ids, inputs.segment_ids, None)  # (S, T, H)
    masks = encoder.build_masks(hidden, inputs.mask)
    rows = torch.arange(len(hidden), device=hidden.device)  # the texts that have not exited
    num_labels = next(spec.num_labels for spec in model.head_specs if spec.kind == "classification")
    left = ExitLogits(hidden.new_zeros(len(rows), num_labels), torch.zeros_like(rows))
    previous, repeats = None, torch.zeros_like(rows)
    layers = encoder.list_layers()
    for layer in layers:
        hidden = layer(hidden, masks)
        logits = model.heads["classification"](encoder.pool(hidden[:, 0]))
        # compared from layer to layer: the label's index, or the predicted number in regression
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
            masks = masks.select(stays)
        previous = answer
    return left


def weigh_layers(logits: Tensor, loss_of: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean loss over all layers' logits (L, S, labels); each weighted by its layer's number, as in PABEE."""
    weights = torch.arange(1, len(logits) + 1, device=logits.device, dtype=torch.float32)
    losses = torch.stack([loss_of(layer) for layer in logits])  # (L,)
    return (losses * weights).sum() / weights.sum()
