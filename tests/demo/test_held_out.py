"""Scores on held-out text: Wilson's interval as statisticians compute it, and counts that add up."""

from pathlib import Path

import pytest
import torch
from scipy.stats import binomtest

from litebert.demo.evaluation import draw_held_out
from litebert.demo.held_out import Share, score_constant, score_model
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.objectives.masked_lm import MaskedLM
from litebert.pretraining.recipe import load_recipe
from litebert.text.tokenizer import Tokenizer
from tests.evaluation.intrinsic.test_distances import batch_of


@pytest.mark.parametrize(("right", "total"), [(0, 10), (7, 10), (10, 10), (512, 1000), (3, 4000)])
def test_the_interval_is_wilsons(right: int, total: int) -> None:
    expected = binomtest(right, total).proportion_ci(0.95, method="wilson")
    assert Share(right, total).interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_what_is_asked_for_cannot_be_copied(tiny_corpus: Path, tiny_tokenizer: Tokenizer) -> None:
    """Whatever the recipe learns from: `nano` leaves some of its targets visible."""
    batches = draw_held_out(load_recipe("nano", [f"data.corpora={tiny_corpus}"]))
    shown = torch.cat([batch.token_ids.flatten()[batch.mlm_positions] for batch in batches])
    assert len(shown) > 100
    assert (shown == tiny_tokenizer.mask_id).all()


def test_scores_count_what_the_loss_counts() -> None:
    from dataclasses import replace

    token_ids = torch.randint(5, 4000, (6, 10), generator=torch.Generator().manual_seed(1))
    batch = replace(
        batch_of(token_ids, torch.ones_like(token_ids, dtype=torch.bool)),
        mlm_positions=torch.arange(1, 60, 4),
        mlm_labels=token_ids.flatten()[torch.arange(1, 60, 4)],
        sentence_labels=torch.tensor([0, 1, 1, 0, 1, 0]),
        opens_document=torch.tensor([True, False, True, False, False, False]),
    )
    model = build_model(preset("nano"), ["mlm", "sentence"], seed=2).eval()
    score = score_model(model, [batch, batch])
    loss = MaskedLM().batch_loss(model, batch)
    right = {name: int(value) for name, value in loss.sums.items()}
    assert (score.masked.right, score.masked.total) == (2 * right["mlm_correct"], 2 * len(batch.mlm_labels))
    assert (score.pairs.right, score.pairs.total) == (2 * right["sentence_correct"], 12)
    assert score.lead.total == 4
    assert score.lead.right + score.inner.right == score.pairs.right
    constant = score_constant([batch], token_id=int(batch.mlm_labels[0]), sentence_label=1)
    assert constant.pairs == Share(3, 6)
    assert constant.masked.right == int((batch.mlm_labels == batch.mlm_labels[0]).sum())
