"""What the curves of a run are compared with: chance, a unigram model of its corpus, and where its stages begin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from litebert.core.errors import LitebertError
from litebert.corpus.shards import open_corpus
from litebert.pretraining.recipe import Recipe, build_recipe, read_recipe_values
from litebert.training.kept_checkpoints import RECIPE_FILE

_MAX_TOKENS = 2_000_000  # enough for a unigram distribution


@dataclass(frozen=True)
class Baselines:
    """Horizontal lines by metric, each with its name, and the steps at which stages begin."""

    levels: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    stages: tuple[int, ...] = ()


def find_baselines(run: Path) -> Baselines:
    """The baselines of a pre-training run; those of the text only if its corpus is still there."""
    folder = run.parent if run.is_file() else run
    try:
        recipe = build_recipe(read_recipe_values(folder / RECIPE_FILE))
    except (LitebertError, OSError):  # a fine-tuning run, or a metrics file alone
        return Baselines()
    levels = _measure_unigram(recipe)
    if recipe.segments.num_labels > 1:
        levels |= {"sentence_accuracy": ("chance", 1 / recipe.segments.num_labels)}
    return Baselines(levels, tuple(stage.at for stage in recipe.stages))


def _measure_unigram(recipe: Recipe) -> dict[str, tuple[str, float]]:
    """Loss and accuracy of predicting every token by its frequency alone, on validation text."""
    counts = np.zeros(recipe.model.vocab_size, np.int64)
    for path in recipe.data.corpora:
        try:
            corpus = open_corpus(Path(path), "valid")
            for shard in corpus.shards:
                counts += np.bincount(shard.token_ids[:_MAX_TOKENS], minlength=len(counts))
                if counts.sum() >= _MAX_TOKENS:
                    break
        except (LitebertError, OSError, ValueError):  # moved, or built with another tokenizer since
            return {}
    if not counts.any():
        return {}
    shares = counts[counts > 0] / counts.sum()
    return {
        "mlm_loss": ("unigram", float(-(shares * np.log(shares)).sum())),
        "mlm_accuracy": ("unigram", float(shares.max())),
    }
