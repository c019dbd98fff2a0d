"""How alike layers are: laws that hold for every model."""

import pytest
import torch

from litebert.batches.batch import Batch
from litebert.evaluation.intrinsic.similarity import compare_effects, compare_weights, mean_off_diagonal
from litebert.model.model import Model, build_model
from litebert.pretraining.recipe import load_recipe
from tests.evaluation.intrinsic.test_distances import batch_of

SMALL = ("model.vocab_size=60", "model.hidden_size=16", "model.embedding_size=16", "model.ffn_size=32")


def three_layers(*words: str) -> Model:
    return build_model(load_recipe("laptop", [*SMALL, "model.num_layers=3", *words]).model, ["mlm"])


def some_batch() -> Batch:
    token_ids = torch.randint(60, (4, 16), generator=torch.Generator().manual_seed(1))
    return batch_of(token_ids, torch.ones_like(token_ids, dtype=torch.bool))


def test_a_shared_layer_is_like_itself_and_does_what_it_does() -> None:
    model = three_layers("model.sharing=all")
    for matrix in (compare_weights(model), compare_effects(model, [some_batch()])):
        assert torch.tensor(matrix).allclose(torch.ones(3, 3), atol=1e-5)
        assert mean_off_diagonal(matrix) == pytest.approx(1.0, abs=1e-5)


def test_independently_initialized_layers_are_unlike_and_each_is_like_itself() -> None:
    model = three_layers("model.sharing=none", "model.initializer=normal")
    weights, effects = compare_weights(model), compare_effects(model, [some_batch()])
    for matrix in (weights, effects):
        assert [matrix[layer][layer] for layer in range(3)] == pytest.approx([1.0] * 3, abs=1e-5)
    assert abs(mean_off_diagonal(weights)) < 0.1
    assert weights[0][2] == pytest.approx(weights[2][0])


def test_one_layer_is_like_itself() -> None:
    assert mean_off_diagonal([[1.0]]) == 1.0
