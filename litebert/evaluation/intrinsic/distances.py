"""How far each layer moves its input, as in the ALBERT paper's Figure 1 on the effect of parameter sharing."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from litebert.batches.batch import Batch
from litebert.model.model import Model, build_model


class LayerDistances(NamedTuple):
    """Distances between the input and output of each layer; means over real tokens."""

    l2: list[float]
    degrees: list[float]
    shares: list[float]  # L2 distance divided by the norm of the input


@torch.no_grad()
def measure_distances(model: Model, batches: Sequence[Batch]) -> LayerDistances:
    """L2 distance and angle between each layer's input and output."""
    model.eval()
    num_layers = len(model.config.layer_plan.rows)
    sums = torch.zeros(3, num_layers, dtype=torch.float64)
    num_tokens = 0
    for batch in batches:
        output = model.encoder(
            batch.token_ids,
            batch.segment_ids,
            batch.mask,
            position_ids=batch.position_ids,
            sequence_ids=batch.sequence_ids,
            return_layers=True,
        )
        num_tokens += int(batch.mask.sum())
        for layer in range(num_layers):
            before, after = output.layers[layer][batch.mask], output.layers[layer + 1][batch.mask]  # (tokens, H)
            moved = (after - before).norm(dim=-1)  # (tokens,)
            sums[0, layer] += moved.sum()
            sums[2, layer] += (moved / before.norm(dim=-1)).sum()
            sums[1, layer] += torch.cosine_similarity(before, after, dim=-1).clamp(-1, 1).acos().sum()
    l2, radians, shares = (sums / num_tokens).tolist()
    return LayerDistances(l2, [math.degrees(angle) for angle in radians], shares)


def apply_more_often(model: Model, num_layers: int) -> Model:
    """The same weights, with the one shared layer applied this many times.

    The additional applications were never trained: they show whether the states converge.
    """
    assert model.config.layer_plan.is_one_layer, model.config.sharing
    deeper = build_model(replace(model.config, num_layers=num_layers), model.head_specs)
    deeper.load_state_dict(model.state_dict())
    return deeper
