"""What the curves of a run are compared with."""

import math
from pathlib import Path

import numpy as np
import pytest
from small_runs import make_recipe

from litebert.corpus.shards import open_corpus
from litebert.pretraining.baselines import find_baselines
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
