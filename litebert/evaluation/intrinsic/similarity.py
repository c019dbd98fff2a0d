"""How similar the layers of a model are: in their weights, and in their effect on the same input."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from litebert.batches.batch import Batch
from litebert.model.model import Model

Matrix = list[list[float]]


@torch.no_grad()
def compare_weights(model: Model) -> Matrix:
    """For each pair of layers, the mean cosine between their corresponding weight matrices."""
    matrices = [
        [
            weight.flatten()
            for block in (layer.attention, layer.ffn)
            for weight in block.parameters()
            if weight.dim() == 2
        ]
        for layer in model.encoder.list_layers()
    ]
    return [[_mean_cosine(one, other) for other in matrices] for one in matrices]


def _mean_cosine(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    cosines = [torch.cosine_similarity(a, b, dim=0) for a, b in zip(one, other, strict=True)]
    return float(torch.stack(cosines).mean())


@torch.no_grad()
def compare_effects(model: Model, batches: Sequence[Batch]) -> Matrix:
    """Row i, column j: the mean cosine between the updates of layers i and j to the input of layer i, over real tokens.

    If it is 1, layer j could replace layer i.
    """
    model.eval()
    layers = model.encoder.list_layers()
    sums = torch.zeros(len(layers), len(layers), dtype=torch.float64)
    num_tokens = 0
    for batch in batches:
        output = model.encoder(batch.token_ids, batch.segment_ids, batch.mask, return_layers=True)
        masks = model.encoder.build_masks(output.hidden, batch.mask)
        num_tokens += int(batch.mask.sum())
        for number, (states, after) in enumerate(pairwise(output.layers)):  # (B, T, H) each
            own = (after - states)[batch.mask]  # (tokens, H)
            for other, layer in enumerate(layers):
                moved = layer(states, masks) - states  # (B, T, H)
                sums[number, other] += torch.cosine_similarity(own, moved[batch.mask], dim=-1).sum()
    matrix: Matrix = (sums / num_tokens).tolist()
    return matrix


def mean_off_diagonal(matrix: Matrix) -> float:
    """The mean over pairs of different layers; 1 if there is only one layer."""
    others = [value for i, row in enumerate(matrix) for j, value in enumerate(row) if i != j]
    return sum(others) / len(others) if others else 1.0
