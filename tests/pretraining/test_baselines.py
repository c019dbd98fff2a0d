"""What the curves of a run are compared with."""

import math
from pathlib import Path

import numpy as np
import pytest
from small_runs import make_recipe

from litebert.corpus.shards import open_corpus
from litebert.pretraining.baselines import _measure_unigram, describe_plateau, find_baselines
from litebert.pretraining.pretrain import pretrain
from litebert.training.kept_checkpoints import RECIPE_FILE


def test_a_unigram_model_of_the_validation_text_and_chance(tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / RECIPE_FILE).write_text(make_recipe(tiny_corpus).to_toml(), "utf-8")
    found = find_baselines(tmp_path)
    tokens = np.concatenate([shard.token_ids for shard in open_corpus(tiny_corpus, "valid").shards])
    counts = [int((tokens == token).sum()) for token in set(tokens.tolist())]
    entropy = -sum(n / len(tokens) * math.log(n / len(tokens)) for n in counts)
    assert found.levels["mlm_loss"] == ("unigram", pytest.approx(entropy))
    assert found.levels["mlm_accuracy"] == ("unigram", pytest.approx(max(counts) / len(tokens)))
    assert found.levels["sentence_accuracy"] == ("chance", 0.5)


def test_without_its_corpus_a_run_has_chance_and_stages(tmp_path: Path) -> None:
    stages = [{"at": 4, "masking": {"rate": 0.2}}]
    recipe = make_recipe(tmp_path / "moved", stages=stages)
    (tmp_path / RECIPE_FILE).write_text(recipe.to_toml(), "utf-8")
    found = find_baselines(tmp_path)
    assert (set(found.levels), found.stages) == ({"sentence_accuracy"}, (4,))
    assert find_baselines(tmp_path / "no run").levels == {}


def test_a_run_that_knows_only_frequencies_after_a_tenth_of_it_says_once_what_to_change(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = {"warmup_steps": 0}
    stuck = {"learning_rate": 0.0}  # nothing is learned at all
    pretrain(make_recipe(tiny_corpus, optim=stuck, schedule=schedule), tmp_path / "stuck")
    said = capsys.readouterr().out
    assert said.count("has learned only how often each piece occurs") == 1
    assert "model.initializer=neighbours init.word_bias=frequencies" in said


@pytest.mark.parametrize(
    ("scheduled_step", "loss_below", "warns"),
    [(99, -0.5, False), (100, -0.5, True), (1000, -0.5, True), (1000, 0.0, True), (1000, 0.01, False)],
)
def test_the_plateau_is_the_unigram_entropy_after_a_tenth_of_the_run(
    scheduled_step: int, loss_below: float, warns: bool, tiny_corpus: Path
) -> None:
    recipe = make_recipe(tiny_corpus, train__steps=1000)
    _, unigram = _measure_unigram(recipe)["mlm_loss"]
    said = describe_plateau(recipe, scheduled_step, {"valid_mlm_loss": unigram - loss_below})
    assert bool(said) == warns
    assert describe_plateau(recipe, scheduled_step, {"valid_loss": 9.0}) is None  # another objective


def test_no_plateau_is_announced_during_the_warm_up_or_without_the_text(tiny_corpus: Path, tmp_path: Path) -> None:
    measured = {"valid_mlm_loss": 9.0}
    warming = make_recipe(tiny_corpus, schedule__warmup_steps=8)
    assert describe_plateau(warming, 7, measured) is None
    assert describe_plateau(warming, 8, measured)
    assert describe_plateau(make_recipe(tmp_path / "moved"), 12, measured) is None
