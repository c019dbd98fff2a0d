"""The demo's report: one self-contained HTML page that loads nothing from the network."""

import platform
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litebert.core.errors import ConfigError
from litebert.core.view import format_seconds
from litebert.corpus.shards import open_corpus
from litebert.demo.evaluation import GAPS, Evaluation
from litebert.demo.words import (
    describe_fillings,
    describe_scores,
    format_interval,
    format_share,
    list_scores,
    next_commands,
)
from litebert.inference.fill_mask import MASK
from litebert.model.cost import count_parameters
from litebert.objectives.registry import build_objective
from litebert.plots.charts import Chart, Line, draw_chart
from litebert.plots.curves import Run, read_run, smooth
from litebert.pretraining.recipe import Recipe

_TEMPLATE = "page.html.j2"
_MAX_POINTS = 150  # per line; more would not be visible and only make the page larger


def build_page(run: Path, recipe: Recipe, evaluation: Evaluation, times: dict[str, float | None]) -> str:
    """The page of a finished run. Values that differ between machines are in <time> elements.

    A stage's time is None if the demo was interrupted before it was recorded.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ConfigError(
            "missing-package", "the report needs jinja2; install it with pip install 'litebert[plots]'"
        ) from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"share": format_share, "interval": format_interval, "seconds": format_seconds}
    template = environment.from_string((files("litebert.demo") / _TEMPLATE).read_text("utf-8"))
    curves = read_run(run)
    return template.render(
        evaluation=evaluation,
        scores=list_scores(evaluation),
        words=describe_scores(evaluation),
        sureness=describe_fillings(evaluation),
        gaps=list_gaps(evaluation),
        curves=[(chart.title, draw_chart(chart)) for chart in plot_learning(recipe, curves, evaluation)],
        layers=[(chart.title, draw_chart(chart)) for chart in plot_distances(recipe, evaluation)],
        has_stages=bool(recipe.stages),
        facts=list_facts(recipe, curves),
        times=times.items(),
        total_seconds=sum(seconds or 0 for seconds in times.values()),
        recipe=recipe.to_toml(),
        commands=next_commands(),
        versions=f"litebert {version('litebert')}, torch {torch.__version__}, Python {platform.python_version()}",
    )


def list_gaps(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Each sentence split at its mask, with the predictions."""
    gaps = []
    for gap, guesses in zip(GAPS, evaluation.fillings, strict=True):
        before, after = gap.split(MASK)
        gaps.append({"before": before, "after": after, "guesses": guesses})
    return gaps


def list_facts(recipe: Recipe, curves: Run) -> list[tuple[str, str]]:
    """Facts about the run, as (name, value) rows."""
    model = last_stage(recipe).model
    count = count_parameters(model, build_objective(recipe).heads)
    train, valid = (open_corpus(Path(recipe.data.corpora[0]), split) for split in ("train", "valid"))
    num_steps, num_tokens = int(curves["tokens"].steps[-1]), int(curves["tokens"].values[-1])
    return [
        ("Text", f"{train.num_documents + valid.num_documents:,} documents of Python's documentation"),
        ("Training split", f"{train.num_documents:,} documents, {train.num_tokens:,} tokens"),
        ("Validation split", f"{valid.num_documents:,} documents, {valid.num_tokens:,} tokens"),
        ("Vocabulary", f"{model.vocab_size:,} pieces"),
        (
            "Model",
            f"ALBERT, one shared layer applied {model.num_layers} times, hidden size {model.hidden_size}, embedding "
            f"size {model.embedding_size}, {model.num_heads} attention heads",
        ),
        ("Parameters", f"{count.total:,} stored ({count.unrolled:,} if layers were not shared)"),
        (
            "Training",
            f"{num_steps:,} steps of {recipe.batch.sequences} sequences of up to {recipe.segments.max_length} "
            f"tokens: {num_tokens:,} tokens, {num_tokens / train.num_tokens:.1f} epochs",
        ),
        ("Optimizer", f"{recipe.optim.name}, learning rate {recipe.optim.learning_rate:g}"),
    ]


def plot_learning(recipe: Recipe, curves: Run, evaluation: Evaluation) -> list[Chart]:
    """Loss and both accuracies by step, for training and validation; a mark where the second stage begins."""
    second_stage = recipe.stages[0].at if recipe.stages else None

    def draw(title: str, metric: str, **options: Any) -> Chart:
        lines = [_thin(curves, "training", metric, "faint"), _held_out(curves, metric)]
        return Chart(title, [line for line in lines if line], mark_x=second_stage, **options)

    masked = evaluation.constant.masked.value
    return [
        draw("Loss", "loss"),
        draw(
            "Masked-token accuracy",
            "mlm_accuracy",
            is_share=True,
            level=masked,
            level_label=f"always “{evaluation.constant_piece}”",
        ),
        draw("Sentence-order accuracy", "sentence_accuracy", is_share=True, level=0.5, level_label="chance"),
    ]


def _thin(curves: Run, label: str, metric: str, color: str) -> Line:
    """The running mean of a metric, thinned to at most `_MAX_POINTS` points."""
    steps, values = curves[metric]
    window = max(1, len(values) // 30)
    values = smooth(values, window)
    # leave out the ends: the window is narrow there, so single batches would show as spikes
    chosen = np.unique(np.linspace(window // 2, len(steps) - 1 - window // 2, _MAX_POINTS).astype(int))
    return Line(label, steps[chosen], values[chosen], color)


def _held_out(curves: Run, metric: str) -> Line | None:
    if f"valid_{metric}" not in curves:
        return None
    return Line("validation", *curves[f"valid_{metric}"], "accent", has_points=True)


def plot_distances(recipe: Recipe, evaluation: Evaluation) -> list[Chart]:
    """How far each application of the layer moves a token, trained and untrained."""
    trained, untrained = evaluation.distances_trained, evaluation.distances_untrained
    numbers = list(range(1, len(trained.l2) + 1))

    def draw(title: str, ours: list[float], before: list[float]) -> Chart:
        lines = [
            Line("trained", numbers, ours, "accent", has_points=True),
            Line("untrained", numbers, before, "faint", is_dashed=True, has_points=True),
        ]
        return Chart(title, lines, x_label="layer", has_whole_x=True, mark_x=last_stage(recipe).model.num_layers + 0.5)

    return [
        draw("L2 distance", trained.l2, untrained.l2),
        draw("Angle in degrees", trained.degrees, untrained.degrees),
    ]


def last_stage(recipe: Recipe) -> Recipe:
    """The recipe as of the last training step."""
    return recipe.at(recipe.train.steps - 1)
