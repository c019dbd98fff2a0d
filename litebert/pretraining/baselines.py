"""What a run is compared with: chance, a unigram model of its corpus, and where its stages begin.

A run that is no better than the unigram model after a tenth of its steps rarely leaves that plateau, and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from litebert.core.errors import LitebertError
from litebert.corpus.shards import open_corpus
from litebert.pretraining.recipe import Recipe, build_recipe, read_recipe_values
from litebert.training.kept_checkpoints import RECIPE_FILE

_MAX_TOKENS = 2_000_000  # enough for a unigram distribution
_PLATEAU_FROM = 0.1  # the share of a run after which it should know more than frequencies


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


def describe_plateau(recipe: Recipe, scheduled_step: float, measured: Mapping[str, float]) -> str | None:
    """What to change if a run has learned nothing but frequencies; None if it has, or is still in its beginnings."""
    loss = measured.get("valid_mlm_loss")
    if loss is None or scheduled_step < max(_PLATEAU_FROM * recipe.train.steps, recipe.schedule.warmup_steps):
        return None
    _, unigram = _measure_unigram(recipe).get("mlm_loss", ("", 0.0))
    if loss < unigram or not unigram:
        return None
    changes = [f"optim.learning_rate={recipe.optim.learning_rate / 2:g}"]
    if recipe.model.initializer != "neighbours":
        changes.append("model.initializer=neighbours")
    if recipe.init.word_bias != "frequencies":
        changes.append("init.word_bias=frequencies")
    return (
        f"warning: the model has learned only how often each piece occurs (validation loss {loss:.3f}, unigram entropy "
        f"{unigram:.3f}) and may never learn more: start another run with {' '.join(changes)}"
    )


def _measure_unigram(recipe: Recipe) -> dict[str, tuple[str, float]]:
    """Loss and accuracy of predicting every token by its frequency alone, on the text of the validation batches."""
    counts = np.zeros(recipe.model.vocab_size, np.int64)
    for path in recipe.data.corpora[:1]:
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
