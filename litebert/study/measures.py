"""The measures of studies: a model's size, speed, memory, scores on held-out text, and layer behaviour."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from litebert.batches.batch import Batch
from litebert.core.errors import DataError
from litebert.core.runlog import METRICS_FILE, read_log
from litebert.core.runtime import choose_runtime
from litebert.evaluation.evaluate_intrinsic import IntrinsicOptions, evaluate_intrinsic
from litebert.evaluation.intrinsic.distances import apply_more_often, measure_distances
from litebert.evaluation.intrinsic.report import SentencePairs
from litebert.evaluation.intrinsic.score import Score
from litebert.evaluation.intrinsic.similarity import compare_effects, compare_weights, mean_off_diagonal
from litebert.interop.opening import load_checkpoint
from litebert.model.cost import count_parameters
from litebert.model.model import Model
from litebert.objectives.registry import build_objective
from litebert.plan.plan import describe_batch
from litebert.pretraining.recipe import Recipe
from litebert.pretraining.stage import draw_validation
from litebert.study.spec import Measure, ScaleSpec
from litebert.training.distributed import TaskLoss
from litebert.training.loop import Engine, build_scaler, update
from litebert.training.optimizers import build_optimizer

_DISTANCE_BATCHES = 8
_FURTHER = 4  # multiples of the depth, to see whether a shared layer converges
_SIMILARITY_BATCHES = 2
_MAX_POINTS = 200  # of a curve, so that reports stay small
_CURVES = {
    "mlm": ("valid_mlm_accuracy", 100.0),
    "sentence": ("valid_sentence_accuracy", 100.0),
    "loss": ("valid_loss", 1.0),
    "mlm_loss": ("valid_mlm_loss", 1.0),
}


@dataclass(frozen=True)
class Measured:
    """Values by metric, in the units of study/metrics.py, with their intervals, counts and baselines."""

    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # 95 %, over the choice of text or examples
    counts: dict[str, int] = field(default_factory=dict)  # tokens, pairs or examples behind a value
    levels: dict[str, float] = field(default_factory=dict)  # baselines by metric
    series: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by name: x and y
    matrices: dict[str, list[list[float]]] = field(default_factory=dict)
    timed: dict[str, float] = field(default_factory=dict)  # values that are not reproducible

    def __or__(self, other: "Measured") -> "Measured":
        return Measured(**{name: getattr(self, name) | getattr(other, name) for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Subject:
    """The subject of a measurement: a recipe with its paths, and its run if it was trained."""

    recipe: Recipe
    spec: ScaleSpec
    run: Path | None = None  # None: nothing is trained

    @property
    def last_recipe(self) -> Recipe:
        """The checkpoint at the end of training."""
        return self.recipe.at(self.recipe.train.steps - 1)

    def load_model(self) -> Model:
        assert self.run is not None, "only what was trained has a model to load"
        return load_checkpoint(self.run).load_model()


def count(subject: Subject) -> Measured:
    """Parameters as counted in the paper: without heads, and with the pooler only for shared models."""
    model = subject.last_recipe.model
    counted = count_parameters(model)
    is_shared = counted.layers < counted.unrolled_layers
    number = counted.with_pooler if is_shared else counted.without_pooler
    return Measured(values={"parameters": number / 1e6})


def time_steps(subject: Subject) -> Measured:
    """Tokens per second of a training step."""
    rate = measure_speed(subject.last_recipe, num_steps=subject.spec.speed_steps)
    return Measured(timed={"tokens_per_second": rate})


def weigh(subject: Subject) -> Measured:
    """The memory that autograd saves for a training step."""
    return Measured(values={"memory": measure_memory(subject.last_recipe) / 1e6})


def ask(subject: Subject) -> Measured:
    """Masked-token and sentence-pair accuracy on held-out text."""
    assert subject.run is not None
    options = IntrinsicOptions(pairs=subject.spec.pairs, length=subject.spec.length or None)
    report = evaluate_intrinsic(subject.run, Path(subject.recipe.data.corpora[0]), options)
    # all of them, to compare the arms of a study
    if report.sop is None or report.nsp is None or "mlm" in report.skipped:
        raise DataError(
            "cannot-measure",
            "; ".join(f"{name} cannot be measured: {reason}" for name, reason in report.skipped.items()),
        )
    measured = _of_pairs("sop", report.sop) | _of_pairs("nsp", report.nsp)
    if report.mlm is None:
        return measured
    words = _of_scores({"mlm": report.mlm.hidden, "mlm_usual": report.mlm.usual})
    levels = {"mlm": 100 * max(report.mlm.frequent.value, report.mlm.left_neighbour.value)}
    return measured | words | Measured(values={"perplexity": math.exp(report.mlm.hidden_loss)}, levels=levels)


def _of_pairs(name: str, pairs: SentencePairs) -> Measured:
    """The scores of a sentence task: from the model's own head, if it has one, and from a probe."""
    asked = {f"{name}_probe": pairs.probe} | ({name: pairs.head} if pairs.head else {})
    scores: dict[str, Score] = {}
    levels: dict[str, float] = {}
    for key, parts in asked.items():
        for suffix, part in (("", "any"), ("_lead", "lead"), ("_inner", "inner")):
            scores[f"{key}{suffix}"] = getattr(parts, part)
            levels[f"{key}{suffix}"] = 100 * getattr(pairs.baseline, part).value
    return _of_scores(scores) | Measured(levels=levels)


def _of_scores(scores: Mapping[str, Score]) -> Measured:
    counted = {name: score for name, score in scores.items() if score.total}
    return Measured(
        values={name: 100 * score.value for name, score in counted.items()},
        intervals={name: (100 * score.low, 100 * score.high) for name, score in counted.items()},
        counts={name: score.total for name, score in counted.items()},
    )


def follow_layers(subject: Subject) -> Measured:
    """The distance between each layer's input and output: the curve, its roughness and its minimum."""
    model, batches = subject.load_model(), _draw_unmasked(subject)[:_DISTANCE_BATCHES]
    distances = measure_distances(model, batches)
    curves = {"l2": distances.l2, "degrees": distances.degrees}
    summaries = {name: value for key, curve in curves.items() for name, value in summarize_curve(key, curve).items()}
    summaries["l2_floor_share"] = 100 * min(distances.shares)
    curves["l2_share"] = [100 * share for share in distances.shares]
    if model.config.layer_plan.is_one_layer:
        further = measure_distances(apply_more_often(model, _FURTHER * model.config.num_layers), batches)
        summaries["degrees_further"], curves["degrees_further"] = further.degrees[-1], further.degrees
    return Measured(
        values=summaries,
        series={key: {"x": [n + 1.0 for n in range(len(curve))], "y": curve} for key, curve in curves.items()},
    )


def summarize_curve(name: str, values: list[float]) -> dict[str, float]:
    """The minimum of a curve over the layers, and its roughness, which is 0 for a straight line."""
    bends = [
        abs(before - 2 * here + after) for before, here, after in zip(values, values[1:], values[2:], strict=False)
    ]
    summary = {f"{name}_floor": min(values)}
    if bends and sum(values):
        summary[f"{name}_roughness"] = 100 * (sum(bends) / len(bends)) / (sum(values) / len(values))
    return summary


def compare_layers(subject: Subject) -> Measured:
    """The similarity of layers, in their weights and in their effects."""
    model = subject.load_model()
    matrices = {
        "layer_weights": compare_weights(model),
        "layer_function": compare_effects(model, _draw_unmasked(subject)[:_SIMILARITY_BATCHES]),
    }
    return Measured(values={name: mean_off_diagonal(matrix) for name, matrix in matrices.items()}, matrices=matrices)


def _draw_unmasked(subject: Subject) -> list[Batch]:
    """Held-out batches of the main corpus, unmasked."""
    recipe = subject.last_recipe
    plain = replace(recipe, masking=replace(recipe.masking, rate=0.0, final_rate=None, rate_steps=0))
    return draw_validation(plain, subject.recipe.data.corpora[0])


def trace(subject: Subject) -> Measured:
    """The curves of a run over its steps: scores on held-out text, and the training loss."""
    assert subject.run is not None
    records = read_log(subject.run / METRICS_FILE)
    series = {name: _curve(records, key, scale) for name, (key, scale) in _CURVES.items()}
    series["train_mlm_loss"] = _smooth_curve(records, "mlm_loss")
    return Measured(series={name: curve for name, curve in series.items() if curve["x"]})


def _curve(records: list[dict[str, Any]], key: str, scale: float) -> dict[str, list[float]]:
    points = [(float(record["step"]), scale * record[key]) for record in records if key in record]
    points = [*points[:: max(1, -(-len(points) // _MAX_POINTS))][:-1], *points[-1:]]  # the last point is always kept
    return {"x": [step for step, _ in points], "y": [value for _, value in points]}


def _smooth_curve(records: list[dict[str, Any]], key: str) -> dict[str, list[float]]:
    """Smooth a noisy curve: each point is the mean of the steps since the previous point."""
    points = [(float(record["step"]), record[key]) for record in records if key in record]
    width = max(1, -(-len(points) // _MAX_POINTS))
    groups = [points[start : start + width] for start in range(0, len(points), width)]
    return {"x": [group[-1][0] for group in groups], "y": [fmean(value for _, value in group) for group in groups]}


FUNCTIONS: dict[Measure, Callable[[Subject], Measured]] = {
    "parameters": count,
    "speed": time_steps,
    "memory": weigh,
    "intrinsic": ask,
    "distances": follow_layers,
    "similarity": compare_layers,
    "curves": trace,
}


_WARM_UP_STEPS = 1  # the first step builds the optimizer's state


def measure_speed(recipe: Recipe, *, num_steps: int) -> float:
    """Tokens per second of updates of one micro-batch: the fastest of several, because others may have been delayed."""
    engine, batch = build_engine(recipe), make_batch(recipe)
    engine.model.train()
    seconds = []
    for step in range(_WARM_UP_STEPS + num_steps):
        started_at = time.perf_counter()
        update(engine, [batch], step, recipe.optim.learning_rate / 100)
        seconds.append(time.perf_counter() - started_at)
    return batch.token_ids.numel() / min(seconds[_WARM_UP_STEPS:])


def measure_memory(recipe: Recipe) -> int:
    """The bytes that autograd saves between forward and backward of one micro-batch, without parameters."""
    model = build_objective(recipe).build_model(recipe.model, seed=recipe.seed)
    batch = make_batch(recipe)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: list[Tensor] = []  # references keep the tensors alive and their addresses distinct

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        build_objective(recipe).batch_loss(model.train(), batch)
    sizes = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    return sum(size for address, size in sizes.items() if address not in parameters)


def build_engine(recipe: Recipe) -> Engine[Batch]:
    """A model with its optimizer, ready for a step of a recipe."""
    runtime = choose_runtime(recipe.runtime)
    objective = build_objective(recipe)
    model = objective.build_model(recipe.model, seed=recipe.seed).to(runtime.device)
    optimizer = build_optimizer([(n, p) for n, p in model.named_parameters() if p.requires_grad], recipe.optim)
    loss = TaskLoss(model, objective)
    scaler = build_scaler(runtime)
    return Engine(model, loss, optimizer, objective, runtime, scaler, recipe.optim.clip_norm, recipe.seed)


def make_batch(recipe: Recipe) -> Batch:
    """One micro-batch of a recipe, with random ids and no padding."""
    batching = describe_batch(recipe)
    num_rows, length = recipe.train.micro_batch or batching.num_rows, batching.length
    generator = torch.Generator().manual_seed(recipe.seed)
    token_ids = torch.randint(recipe.model.vocab_size, (num_rows, length), generator=generator)
    segment_ids = (torch.arange(length) >= length // 2).long() * int(recipe.model.num_segments > 1)
    num_masked = max(1, round(recipe.masking.rate * length))
    starts = torch.arange(num_rows) * length
    positions = (starts[:, None] + torch.arange(1, 1 + num_masked)).flatten()
    return Batch(
        token_ids=token_ids,
        segment_ids=segment_ids.expand(num_rows, length).contiguous(),
        mask=torch.ones(num_rows, length, dtype=torch.bool),
        position_ids=None,
        sequence_ids=None,
        first_tokens=starts,
        mlm_positions=positions,
        mlm_labels=token_ids.flatten()[positions],
        sentence_labels=torch.arange(num_rows) % 2 if recipe.segments.num_labels else None,
    )
