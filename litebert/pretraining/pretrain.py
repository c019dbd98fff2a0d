"""The story of pre-training: a recipe and a corpus become a run with checkpoints.

Interrupted at any moment and started again with the same words, it ends with the same weights and the same metrics as
if it had never stopped. Told to end (SIGINT, SIGTERM), it saves the step it is at.
"""

import dataclasses
import math
import time
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path

from litebert.batches.batch import Batch
from litebert.batches.options import BatchOptions
from litebert.batches.segments import NoSequencesError
from litebert.batches.stream import open_stream
from litebert.checkpoint import list_checkpoints, model_tensors, optimizer_tensors
from litebert.core.errors import TrainingError
from litebert.core.files import exclusive_lock, remove_leftovers
from litebert.core.runlog import RunLog
from litebert.core.runtime import choose_runtime, measure_peak_flops
from litebert.core.stopping import end_by, noting_stops
from litebert.core.view import NoView, Status, View, open_view
from litebert.corpus.shards import open_corpus
from litebert.objectives.chance import find_at_chance
from litebert.objectives.registry import build_objective
from litebert.pretraining.recipe import Recipe
from litebert.pretraining.run_folder import (
    Run,
    build_engine,
    check_same_recipe,
    check_same_text,
    check_stages,
    check_tokenizer,
    continue_to_new_positions,
    open_log,
    open_run,
    save,
)
from litebert.training.distributed import agree_on_stop, in_one_format, process_group, wait_for_all, whole
from litebert.training.kept_checkpoints import CHECKPOINTS, check_is_ours, checkpoint_path
from litebert.training.loop import Clock, StepReport, check_finite, iter_updates, measure
from litebert.training.schedule import learning_rate

EVALUATION_SEQUENCES = 32  # in one held-out batch, whatever the training batch is


def pretrain(
    recipe: Recipe, folder: Path, *, clock: Clock = time.perf_counter, branch_steps: Collection[int] = ()
) -> Path:
    """Train, or go on training, in a folder; gives the last checkpoint's path.

    Started by torchrun, it is one of the run's processes; the first of them keeps the folder, the logs and the view.
    `clock` is what `train.hours` are counted by: a benchmark on a busy machine counts processor time. The checkpoints
    of `branch_steps` are kept, for other runs to go on from (`init.from`, `init.continues`).
    """
    runtime = choose_runtime(recipe.runtime)
    is_main = runtime.ranks.is_main
    check_is_ours(folder)
    with process_group(runtime), exclusive_lock(folder, purpose="training") if is_main else nullcontext():
        runtime = in_one_format(runtime)
        check_same_recipe(folder, recipe)
        if is_main:
            remove_leftovers(folder / CHECKPOINTS)
        with open_view(folder.name) if is_main else NoView() as view:
            if not is_main:
                wait_for_all()  # the first process puts damaged checkpoints aside before the others look
            run = open_run(folder, recipe, runtime, view)
            run.branch_steps = branch_steps
            check_stages(run)
            if is_main:
                wait_for_all()
            with open_log(run) if is_main else nullcontext() as log, noting_stops() as run.stop:
                train_all(run, view, log, clock)
            wait_for_all()  # the first process saves alone, and nobody may leave or speak of the end before it is done
            stopped_by = agree_on_stop(run.stop)
            if stopped_by:  # while the last step was measured and saved
                end_by(stopped_by)
    return checkpoint_path(folder, run.progress.step)


def train_all(run: Run, view: View, log: RunLog | None, clock: Clock) -> None:
    """Train stage by stage to the end; a run that cannot go on says where it can be taken up."""
    try:
        while not run.progress.is_finished(run.recipe.train):
            train_stage(run, view, log, clock)
    except TrainingError as error:
        saved = list_checkpoints(run.folder / CHECKPOINTS)
        raise TrainingError(f"{error}; the last checkpoint is {saved[-1] if saved else 'none'}") from error


def train_stage(run: Run, view: View, log: RunLog | None, clock: Clock) -> None:
    """Train until the recipe changes or the run is finished."""
    begun_at = run.progress.scheduled_step(run.recipe.train)
    recipe = run.recipe.at(begun_at)
    next_stage = min((stage.at for stage in run.recipe.stages if stage.at > begun_at), default=math.inf)
    stream, corpora = open_stream(recipe.data, recipe.stream)
    check_tokenizer(corpora, run.tokenizer)
    check_same_text(run, recipe)
    engine = build_engine(run, recipe)
    try:
        held_out = draw_held_out(recipe, run.recipe.data.corpora[0])  # in all stages the same text
        why_none = "the corpus holds no documents out"
    except (
        NoSequencesError
    ) as error:  # of a document or two not every kind of pair can be made; there is much to train on
        held_out, why_none = [], f"of what is held out, {error}"
    if not held_out:
        view.say(f"nothing is measured on unseen text: {why_none} (corpus build --valid-share)")
    parts = stream.iter_parts(
        run.progress.step,
        micro_rows=recipe.train.micro_batch,
        rank=run.runtime.ranks.rank,
        world_size=run.runtime.ranks.world_size,
        workers=recipe.data.workers,
    )
    rate_at = lambda step: learning_rate(  # noqa: E731 (the schedule, with all but the step settled)
        step, peak=recipe.optim.learning_rate, total_steps=recipe.train.steps, options=recipe.schedule
    )
    for report in iter_updates(engine, parts, run.progress, recipe.train, rate_at, clock):
        step = run.progress.step
        is_over = run.progress.scheduled_step(recipe.train) >= min(next_stage, recipe.train.steps)
        is_saved = is_over or step % recipe.train.save_every == 0 or step in run.branch_steps
        is_measured = bool(held_out) and (is_saved or is_due(step, recipe.train.evaluate_every))
        measured = measure(engine, held_out) if is_measured else {}
        valid = {f"valid_{k}": v for k, v in measured.items()}
        if is_measured:
            run.at_chance = find_at_chance(measured, held_out)
        check_finite(valid, step)
        if log:
            show(view, run, recipe, report, valid)
        if log and (is_measured or is_due(step, recipe.train.log_every)):
            log.write(step, metrics=report.metrics | valid | {"tokens": run.progress.tokens}, timing=timing(report))
        if is_over:
            continue_to_new_positions(run, engine, begun_at)
        stopped_by = agree_on_stop(
            run.stop
        )  # what is saved for it is not measured: metrics are those of a run without it
        if is_saved or stopped_by:
            save(run, engine, log)
        if is_over:
            break
        if stopped_by:
            view.say(f"stopped after step {step:,}, which is saved: the same command continues from there")
            wait_for_all()  # whoever left now would let torchrun end the process that saves
            end_by(stopped_by)
    if run.progress.is_finished(run.recipe.train):
        for sentence in run.at_chance.values():
            view.say(sentence)
    else:  # for the next stage
        run.weights = model_tensors(engine.model, whole)
        run.optimizer = optimizer_tensors(engine.model, engine.optimizer, whole)
        run.scaler = engine.scaler.state_dict()


def draw_held_out(recipe: Recipe, corpus: str) -> list[Batch]:
    """The first held-out batches of a corpus, the same ones at each measurement; none where it holds nothing out."""
    if not open_corpus(Path(corpus), "valid").num_documents:
        return []
    data = dataclasses.replace(recipe.data, corpora=(corpus,), weights=())
    held_out = dataclasses.replace(recipe.stream, batch=BatchOptions(sequences=EVALUATION_SEQUENCES))
    stream, _ = open_stream(data, held_out, split="valid")
    return [stream.batch(step) for step in range(min(recipe.train.evaluate_batches, stream.steps_per_epoch))]


def show(view: View, run: Run, recipe: Recipe, report: StepReport, valid: dict[str, float]) -> None:
    """Tell the person at the terminal where the run stands."""
    done = run.progress.scheduled_step(recipe.train) / recipe.train.steps
    tokens_per_second = report.num_tokens / report.seconds
    objective = build_objective(recipe)
    flops = objective.flops_per_token(recipe.model, recipe.segments.max_length, step=run.progress.step)
    peak_flops = run.runtime.ranks.world_size * measure_peak_flops(run.runtime.device, run.runtime.dtype)
    view.show(
        Status(
            step=run.progress.step,
            total_steps=recipe.train.steps,
            progress=done,
            values={name: report.metrics[name] for name in objective.shown if name in report.metrics},
            tokens_per_second=tokens_per_second,
            share_of_peak=tokens_per_second * flops / peak_flops,
            seconds_left=estimate_seconds_left(run),
        )
    )
    if valid:
        figures = ", ".join(
            f"{name.removeprefix('valid_').replace('_', ' ')} {value:.3f}" for name, value in valid.items()
        )
        view.say(f"step {run.progress.step:,}, held out: {figures}")


def estimate_seconds_left(run: Run) -> float | None:
    """By what this process has done: a run that goes on from another's step has none of its seconds."""
    first, options = run.taken_up_at, run.recipe.train
    done, done_before = run.progress.scheduled_step(options), first.scheduled_step(options)
    if done == done_before:
        return None
    return (run.progress.seconds - first.seconds) * (options.steps - done) / (done - done_before)


def is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def timing(report: StepReport) -> dict[str, float]:
    return {"seconds": report.seconds, "tokens_per_second": report.num_tokens / report.seconds}
