"""What the training benchmark leaves out for its ablation changes speed and memory, not what is computed."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.objectives.masked_lm import MaskedLM

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from training.batches import make_full_batch
from training.without import WITHOUT


# logits at every token are computed for their cost alone: the labels lie beside other words
@pytest.mark.parametrize("technique", sorted(WITHOUT.keys() - {"logits at masked words only"}))
def test_without_a_technique_loss_and_gradients_stay_the_same(technique: str) -> None:
    config = preset("nano")
    batch = make_full_batch(2, 24, config.vocab_size)
    results = []
    for left_out in (nullcontext(), WITHOUT[technique]()):
        model = build_model(config, ["mlm", "sentence"], seed=1)
        with left_out:
            loss = MaskedLM().batch_loss(model, batch).loss
            loss.backward()
        results.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-6)
