"""A stage: a part of a run during which the recipe does not change, with its model, optimizer and batches."""

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from litebert.batches.batch import Batch
from litebert.batches.options import BatchOptions
from litebert.batches.segments import NoSequencesError
from litebert.batches.stream import open_corpora, open_stream
from litebert.checkpoint import model_tensors, optimizer_tensors
from litebert.core.errors import ConfigError, naming_shortages
from litebert.core.view import View
from litebert.corpus.shards import open_corpus
from litebert.model.model import build_model
from litebert.model.positions import continue_positions
from litebert.objectives.objective import Objective
from litebert.objectives.registry import build_objective
from litebert.pretraining.initialization import State, load_matching_moments, load_matching_weights
from litebert.pretraining.recipe import Recipe
from litebert.pretraining.run_folder import Run, check_tokenizer, record_corpora
from litebert.training.distributed import TaskLoss, gather_tensor, parallelize, reshard, shard_like
from litebert.training.loop import (
    SMALLER_MODEL,
    Engine,
    Progress,
    build_scaler,
    check_finite,
    encoder_dtype,
    measure,
    seed_dropout,
    with_fastest_dtype,
)
from litebert.training.optimizers import build_optimizer
from litebert.training.schedule import learning_rate

VALIDATION_SEQUENCES = 32  # per validation batch, whatever the training batch is


class Due(NamedTuple):
    """What happens after a step."""

    measured: bool
    logged: bool
    saved: bool
    over: bool  # the next step belongs to another stage, or there is none


@dataclass(frozen=True)
class Stage:
    """A stage in progress."""

    recipe: Recipe  # with the changes of this stage
    objective: Objective
    engine: Engine[Batch]
    batches: Iterator[Sequence[Batch]]  # the micro-batches of each step, without end
    validation: Sequence[Batch]  # empty: nothing is measured
    ends_at: float  # on the scale of train.steps
    branch_steps: Collection[int]  # saved too

    def due(self, progress: Progress) -> Due:
        step, train = progress.step, self.recipe.train
        over = progress.scheduled_step(train) >= self.ends_at
        saved = over or step % train.save_every == 0 or step in self.branch_steps
        is_evaluation = train.evaluate_every > 0 and step % train.evaluate_every == 0
        measured = bool(self.validation) and (saved or is_evaluation)
        return Due(measured, measured or step % train.log_every == 0, saved, over)

    def learning_rate(self, scheduled_step: float) -> float:
        recipe = self.recipe
        peak, total_steps = recipe.optim.learning_rate, recipe.train.steps
        return learning_rate(scheduled_step, peak=peak, total_steps=total_steps, options=recipe.schedule)

    def measure(self, step: int) -> tuple[dict[str, float], Mapping[str, str]]:
        """The validation metrics, and a warning for each head that is no better than chance."""
        metrics = measure(self.engine, self.validation)
        named = {f"valid_{name}": value for name, value in metrics.items()}
        check_finite(named, step)
        return named, self.objective.find_at_chance(metrics, self.validation)


def begin_stage(run: Run, view: View) -> Stage:
    """The stage that the run's next step belongs to."""
    begins_at = run.progress.scheduled_step(run.recipe.train)
    recipe = run.recipe.at(begins_at)
    stream, corpora = open_stream(recipe.data, recipe.stream)
    check_tokenizer(corpora, run.tokenizer)
    record_corpora(run, recipe)
    first_step = run.progress.step
    batches: Iterator[Sequence[Batch]] = stream.iter_micro_batches(
        first_step,
        micro_rows=recipe.train.micro_batch,
        rank=run.runtime.ranks.rank,
        world_size=run.runtime.ranks.world_size,
        workers=recipe.data.workers,
    )
    if run.runtime.device.type == "cpu" and not recipe.train.compile:  # elsewhere kernels draw the noise
        seed = recipe.seed
        batches = (
            [seed_dropout(micro_batch, seed, step) for micro_batch in micro_batches]
            for step, micro_batches in enumerate(batches, first_step)
        )
    validation: list[Batch] = []
    reason = "the corpus has no validation split"
    try:
        validation = draw_validation(recipe, run.recipe.data.corpora[0])  # the same text in all stages
    except NoSequencesError as error:  # a split of a few documents may not allow every kind of pair
        reason = f"in the validation split, {error}"
    if not validation:
        view.say(f"no validation: {reason}")
    objective = build_objective(recipe)
    engine = build_engine(run, recipe, objective)
    if run.measures_dtype:
        first = next(batches)
        batches = itertools.chain([first], batches)
        engine = with_fastest_dtype(engine, first[0], view)
        run.runtime, run.measures_dtype = engine.runtime, False
    return Stage(
        recipe=recipe,
        objective=objective,
        engine=engine,
        batches=batches,
        validation=validation,
        ends_at=min((stage.at for stage in run.recipe.stages if stage.at > begins_at), default=recipe.train.steps),
        branch_steps=run.branch_steps,
    )


def draw_validation(recipe: Recipe, corpus: str) -> list[Batch]:
    """The first batches of a corpus's validation split, the same ones at each measurement; none without a split."""
    if not open_corpus(Path(corpus), "valid").num_documents:
        return []
    data = dataclasses.replace(recipe.data, corpora=(corpus,), weights=())
    options = dataclasses.replace(recipe.stream, batch=BatchOptions(sequences=VALIDATION_SEQUENCES))
    stream, _ = open_stream(data, options, split="valid")
    return [stream.batch(step) for step in range(min(recipe.train.evaluate_batches, stream.steps_per_epoch))]


@naming_shortages("building the model and its optimizer", fix=SMALLER_MODEL)
def build_engine(run: Run, recipe: Recipe, objective: Objective) -> Engine[Batch]:
    """The model and optimizer of a stage. The run's weights and moments move into it, to exist only once."""
    model = objective.build_model(recipe.model, seed=recipe.seed)
    load_matching_weights(model, run.state.weights, recipe)
    model.encoder.recompute = recipe.train.recompute
    model.encoder.training_dtype = encoder_dtype(run.runtime)
    model = model.to(run.runtime.device)
    if recipe.train.compile:
        # a block is compiled for each combination of mask, number of positions and mode: more than the default of 8
        torch._dynamo.config.recompile_limit = 64
        for block in [*model.encoder.attention, *model.encoder.ffn]:
            block.compile()
    compute_loss = parallelize(TaskLoss(model, objective), recipe.train.parallel, run.runtime)
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    optimizer = build_optimizer(trained.items(), recipe.optim)
    load_matching_moments(optimizer, model, run.state.moments)
    scaler = build_scaler(run.runtime)
    if run.state.scaler:
        scaler.load_state_dict(dict(run.state.scaler))
    run.state = State()  # the engine has it now
    return Engine(
        model,
        compute_loss,
        optimizer,
        objective,
        run.runtime,
        scaler,
        recipe.optim.clip_norm,
        recipe.seed,
    )


def end_stage(run: Run, stage: Stage) -> None:
    """Move weights and moments back to the run; extend the position table if the next stage reads longer text."""
    now = run.progress.scheduled_step(run.recipe.train)
    begun = (0, *(change.at for change in run.recipe.stages if change.at < stage.ends_at))
    num_known = max(run.recipe.at(step).segments.max_length for step in begun)
    engine = stage.engine
    if run.recipe.init.new_positions == "continued" and run.recipe.at(now).segments.max_length > num_known:
        reshard(engine.compute_loss)
        table = engine.model.encoder.embeddings.position.weight
        with torch.no_grad():
            table.copy_(shard_like(continue_positions(gather_tensor(table), num_known), table))
    run.state = State(
        model_tensors(engine.model, gather_tensor),
        optimizer_tensors(engine.model, engine.optimizer, gather_tensor),
        engine.scaler.state_dict(),
    )


def check_stages(run: Run) -> None:
    """Fail before training if a later stage would: other weight shapes, missing corpora, fewer rows than processes."""
    encoder = _list_encoder_shapes(run.recipe)
    now = run.progress.scheduled_step(run.recipe.train)
    check_rows(run.recipe.at(now), run.runtime.ranks.world_size)
    for stage in (stage for stage in run.recipe.stages if stage.at > now):
        check_rows(stage.recipe, run.runtime.ranks.world_size)
        shapes = _list_encoder_shapes(stage.recipe)
        changed = sorted(name for name in encoder.keys() | shapes.keys() if encoder.get(name) != shapes.get(name))
        if changed:
            raise ConfigError(
                "stage-changes-shapes",
                f"stages: the stage at = {stage.at} changes the shape of weights ({', '.join(changed[:5])}"
                f"{' ...' if len(changed) > 5 else ''}); of [model], a stage may only change keys that keep every "
                "shape, such as dropout rates or the depth of shared layers",
            )
        check_tokenizer(open_corpora(stage.recipe.data), run.tokenizer)
        record_corpora(run, stage.recipe)


def check_rows(recipe: Recipe, num_processes: int) -> None:
    """Raise if a batch has fewer rows than there are processes; with `batch.tokens` this is known only in training."""
    if 0 < recipe.batch.sequences < num_processes:
        raise ConfigError(
            "too-few-sequences",
            f"batch.sequences = {recipe.batch.sequences} cannot be divided among {num_processes} processes: raise it, "
            "or start fewer processes",
        )


def _list_encoder_shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    """The shapes that must be the same in every stage; heads may be new."""
    encoder = build_model(recipe.model, (), device="meta").encoder
    return {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
