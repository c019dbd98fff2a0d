"""The story of pre-training: a recipe and a corpus become a run folder with checkpoints.

A run that is interrupted at any moment and started again with the same options ends with the same weights and the same
metrics as one that was never interrupted. On SIGINT or SIGTERM it saves the current step and ends.
"""

import time
from collections.abc import Collection
from pathlib import Path

import torch

from litebert.core.files import exclusive_lock
from litebert.core.runlog import NoLog, RunLog
from litebert.core.runtime import Ranks, Runtime, choose_device, measure_peak_flops
from litebert.core.signals import Stop, catch_stop_signals, exit_by_signal
from litebert.core.view import NoView, Status, View
from litebert.pretraining.baselines import describe_plateau
from litebert.pretraining.recipe import Recipe
from litebert.pretraining.run_folder import (
    Run,
    begin_run,
    check_same_recipe,
    join_run,
    open_log,
    open_run,
    record_corpora,
    resume_run,
    save,
)
from litebert.pretraining.stage import Stage, begin_stage, check_stages, end_stage
from litebert.training.distributed import agree_on_stop, main_process_first, wait_for_all
from litebert.training.kept_checkpoints import check_is_ours, checkpoint_path, find_last_checkpoint
from litebert.training.loop import Clock, StepReport, iter_updates


def pretrain(
    recipe: Recipe, folder: Path, *, clock: Clock = time.perf_counter, branch_steps: Collection[int] = ()
) -> Path:
    """Train, or resume training, in a folder; returns the path of the last checkpoint.

    Under torchrun this is one of several processes; the first one locks the folder, writes it and shows progress.
    `clock` measures `train.hours`: a benchmark on a busy machine passes processor time. The checkpoints of
    `branch_steps` are kept for other runs to start from (`init.from`, `init.continues`).
    """
    with join_run(folder, recipe) as (runtime, view):
        with main_process_first():  # it renames corrupt checkpoints before the others look for one
            run = open_run(folder, recipe, runtime, view, branch_steps)
            check_stages(run)
        with open_log(run) as log, catch_stop_signals() as stop:
            while not (run.is_finished or agree_on_stop(stop)):
                train_stage(run, view, log, stop, clock)
        for warning in run.at_chance.values() if run.is_finished else ():
            view.say(warning)
        wait_for_all()  # only the first process saves: the others must not exit or report the end before it is done
        if sent := agree_on_stop(stop):
            exit_by_signal(sent)
    return checkpoint_path(folder, run.progress.step)


def train_stage(run: Run, view: View, log: RunLog | NoLog, stop: Stop, clock: Clock) -> None:
    """Train until the recipe changes, the run is finished, or a signal asks this process to stop."""
    stage = begin_stage(run, view)
    options = stage.recipe.train
    for report in iter_updates(stage.engine, stage.batches, run.progress, options, stage.learning_rate, clock):
        step = run.progress.step
        due = stage.due(run.progress)
        measured: dict[str, float] = {}
        if due.measured:
            measured, run.at_chance = stage.measure(step)
            numbers = (f"{name.removeprefix('valid_')} {value:.3f}" for name, value in measured.items())
            view.say(f"step {step:,}, validation: {', '.join(numbers).replace('_', ' ')}")
            scheduled_step = run.progress.scheduled_step(options)
            if not run.is_plateau_known and (plateau := describe_plateau(run.recipe, scheduled_step, measured)):
                view.say(plateau)
                run.is_plateau_known = True
        show_progress(view, run, stage, report)
        if due.logged:
            metrics = report.metrics | measured | {"tokens": run.progress.tokens}
            timing = {"seconds": report.seconds, "tokens_per_second": report.num_tokens / report.seconds}
            log.write(step, metrics=metrics, timing=timing)
        if due.over and not run.is_finished:
            end_stage(run, stage)
        # a step that is saved because of a signal is not measured: the metrics stay those of an uninterrupted run
        is_stopped = bool(agree_on_stop(stop))
        if due.saved or is_stopped:
            save(run, stage.engine, log)
        if is_stopped and not run.is_finished:
            view.say(f"stopped after step {step:,}, which is saved: the same command resumes from there")
        if due.over or is_stopped:
            break


def show_progress(view: View, run: Run, stage: Stage, report: StepReport) -> None:
    """Show a person at the terminal how far the run is, how fast, and how long the rest will take."""
    options, now, opened_at = run.recipe.train, run.progress, run.opened_at
    done, done_before = now.scheduled_step(options), opened_at.scheduled_step(options)
    if not view.is_due(done / options.steps):
        return
    tokens_per_second = report.num_tokens / report.seconds
    flops = stage.objective.flops_per_token(stage.recipe.model, stage.recipe.segments.max_length, step=now.step)
    peak_flops = run.runtime.ranks.world_size * measure_peak_flops(run.runtime.device, run.runtime.dtype)
    # only the steps since this process started: a run that continues another one does not have its seconds
    seconds_per_step = (now.seconds - opened_at.seconds) / (done - done_before) if done > done_before else None
    view.show(
        Status(
            step=now.step,
            total_steps=options.steps,
            progress=done / options.steps,
            values={name: report.metrics[name] for name in stage.objective.shown if name in report.metrics},
            tokens_per_second=tokens_per_second,
            share_of_peak=tokens_per_second * flops / peak_flops,
            seconds_left=None if seconds_per_step is None else seconds_per_step * (options.steps - done),
        )
    )


def check_before_launch(recipe: Recipe, folder: Path, num_processes: int) -> None:
    """Raise the errors that every process of a run would raise after starting and joining the others."""
    device = choose_device(recipe.runtime.device, num_processes - 1, num_processes)
    runtime = Runtime(device, torch.float32, Ranks(world_size=num_processes))
    check_is_ours(folder)
    with exclusive_lock(folder, purpose="training"):
        check_same_recipe(folder, recipe)
        last, _ = find_last_checkpoint(folder)
        run = resume_run(last, folder, recipe, runtime) if last else begin_run(folder, recipe, runtime, NoView())
        check_stages(run)
        if not run.is_finished:
            record_corpora(run, recipe.at(run.progress.scheduled_step(recipe.train)))
