"""An objective of your own is one class: it trains, is measured, planned and resumed, without a change elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
import torch
from refusals import refuses
from small_runs import make_recipe
from torch.nn import functional as F

from litebert.batches.batch import Batch
from litebert.checkpoint import load_checkpoint
from litebert.core.errors import ConfigError
from litebert.core.runlog import read_log
from litebert.model.config import HeadSpec
from litebert.model.model import Model
from litebert.objectives.objective import Objective
from litebert.objectives.registry import build_objective
from litebert.plan.devices import load_device
from litebert.plan.plan import plan_run
from litebert.pretraining.pretrain import pretrain
from litebert.pretraining.recipe import Recipe, load_recipe
from litebert.study.measures import measure_memory
from litebert.tasks.task import BatchLoss, Counts


@dataclass(frozen=True)
class FindMasked(Objective):
    """For each token: was it a masking target (replaced, or kept as it was)?"""

    heads = (HeadSpec("tokens", 2),)
    shown = ("loss", "found")

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Self:  # noqa: ARG003
        return cls()

    def count(self, part: Batch) -> dict[str, int]:
        return {"tokens": int(part.mask.sum())}

    def loss(self, model: Model, part: Batch, totals: Counts) -> BatchLoss:
        logits = model.heads["tokens"](model.encoder(part.token_ids, part.segment_ids, part.mask).hidden)[part.mask]
        is_chosen = torch.zeros(part.token_ids.numel(), dtype=torch.long)
        is_chosen[part.mlm_positions] = 1
        labels = is_chosen.view_as(part.token_ids)[part.mask]
        loss = F.cross_entropy(logits, labels, reduction="sum") / totals["tokens"]
        return BatchLoss(loss, {"loss": loss.detach(), "right": (logits.argmax(-1) == labels).sum()})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "found": sums["right"] / totals["tokens"]}


OWN = f"{__name__}:FindMasked"  # as a recipe names it


@pytest.fixture
def recipe(tiny_corpus: Path) -> Recipe:
    return make_recipe(tiny_corpus, objective={"name": OWN})


def test_it_trains_and_is_measured(recipe: Recipe, tmp_path: Path) -> None:
    last = pretrain(recipe, tmp_path / "run")
    records = read_log(tmp_path / "run" / "metrics.jsonl")
    assert records[-1]["valid_found"] > 0.8
    assert records[-1]["loss"] < records[0]["loss"]
    assert [head.kind for head in load_checkpoint(last).heads] == ["tokens"]
    # no objective of ours has touched the pooler
    trained = load_checkpoint(last).load_weights()
    start = build_objective(recipe).build_model(recipe.model, seed=recipe.seed).state_dict()
    assert torch.equal(trained["encoder.pooler.weight"], start["encoder.pooler.weight"])


def test_it_is_planned_without_the_cost_of_a_vocabulary(recipe: Recipe, tiny_corpus: Path) -> None:
    device = load_device("a100-40g")
    own, masked_lm = (plan_run(one, device, 1).stages[0] for one in (recipe, make_recipe(tiny_corpus)))
    assert own.flops_per_step < masked_lm.flops_per_step
    assert own.num_parameters < masked_lm.num_parameters
    assert measure_memory(recipe) > 0


def test_an_unknown_objective_is_refused_by_name(tiny_corpus: Path) -> None:
    with refuses(ConfigError, "unknown-objective", at="objective.name"):
        make_recipe(tiny_corpus, objective={"name": "mml"})
    for lost in ("nowhere:Objective", "litebert.objectives.masked_lm:Nothing"):
        with refuses(ConfigError, "unknown-objective") as caught:
            build_objective(make_recipe(tiny_corpus, objective={"name": lost}))
        assert caught.value.code == "unknown-objective"


def test_a_recipe_of_masked_words_keeps_the_fingerprint_it_had_before_objectives_had_names() -> None:
    """Results of finished studies are found by it."""
    laptop = load_recipe("laptop", ["data.corpora=corpus"])
    assert laptop.fingerprint == "9686ca7f6483f454ef5e62671825f8d598b9862cf06ea7a54796fd60a52a6e8b"
    own = load_recipe("laptop", ["data.corpora=corpus", f"objective.name='{OWN}'"])
    assert own.fingerprint != laptop.fingerprint
