"""Layer distances: zero where a layer changes nothing, and blind to padding."""

import math
from dataclasses import replace

import pytest
import torch

from litebert.batches.batch import Batch
from litebert.evaluation.intrinsic.distances import apply_more_often, measure_distances
from litebert.model.model import build_model
from litebert.model.presets import preset


def batch_of(token_ids: torch.Tensor, mask: torch.Tensor) -> Batch:
    nothing = torch.zeros(0, dtype=torch.int64)
    return Batch(
        token_ids=token_ids,
        segment_ids=torch.zeros_like(token_ids),
        mask=mask,
        position_ids=None,
        sequence_ids=None,
        first_tokens=torch.arange(len(token_ids)) * token_ids.shape[1],
        mlm_positions=nothing,
        mlm_labels=nothing,
        sentence_labels=None,
        opens_document=torch.zeros(len(token_ids), dtype=torch.bool),
    )


def test_distances_are_those_of_the_states() -> None:
    model = build_model(replace(preset("nano"), num_layers=3), seed=1).eval()
    token_ids = torch.tensor([[2, 40, 50, 60, 3]])
    distances = measure_distances(model, [batch_of(token_ids, token_ids > 0)])
    layers = model.encoder(token_ids, torch.zeros_like(token_ids), return_layers=True).layers
    for layer in range(3):
        before, after = layers[layer][0].detach().double(), layers[layer + 1][0].detach().double()
        l2 = sum(math.dist(b.tolist(), a.tolist()) for b, a in zip(before, after, strict=True)) / 5
        assert distances.l2[layer] == pytest.approx(l2, rel=1e-5)
        cosines = [float(b @ a / (b.norm() * a.norm())) for b, a in zip(before, after, strict=True)]
        assert distances.degrees[layer] == pytest.approx(sum(math.degrees(math.acos(c)) for c in cosines) / 5, abs=1e-2)


def test_padding_does_not_count() -> None:
    model = build_model(preset("nano"), seed=1)
    short = torch.tensor([[2, 40, 50, 3]])
    padded = torch.tensor([[2, 40, 50, 3, 0, 0]])
    alone = measure_distances(model, [batch_of(short, short > 0)])
    beside = measure_distances(model, [batch_of(padded, padded > 0)])
    assert alone.l2 == pytest.approx(beside.l2, rel=1e-5)
    assert alone.degrees == pytest.approx(beside.degrees, rel=1e-4)


def test_further_layer_applications_begin_with_the_trained_ones() -> None:
    model = build_model(replace(preset("nano"), num_layers=3), ["mlm"], seed=1)
    token_ids = torch.tensor([[2, 40, 50, 60, 3]])
    batches = [batch_of(token_ids, token_ids > 0)]
    trained, further = (measure_distances(each, batches) for each in (model, apply_more_often(model, 12)))
    assert len(further.degrees) == 12
    assert further.degrees[:3] == pytest.approx(trained.degrees, rel=1e-6)
