"""Fine-tuning from start to finish: from a pre-trained model and a task's examples to a task model and its scores.

A run that is interrupted and started again with the same options ends with the same weights and the same report as an
uninterrupted one. In addition to recipe.toml, metrics.jsonl, timing.jsonl and checkpoints/, a run's folder contains:

model/          the checkpoint that was best on dev, with its task, ready for `litebert predict`
predictions/    one line per dev and test example: its answer and the model's output
report.json     scores, chance level, and the facts of the run; reproducible to the last digit
errors.md       the dev examples with the worst answers
data.json       hashes of the training and dev texts, by which `litebert evaluate` recognizes them
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from litebert.checkpoint import CheckpointContent, drop_optimizer, list_checkpoints, load_checkpoint, save_checkpoint
from litebert.core.files import exclusive_lock, remove_leftovers, write_json
from litebert.core.runlog import RunLog
from litebert.core.signals import Stop, catch_stop_signals, exit_by_signal
from litebert.core.view import Status, View, format_seconds, open_view
from litebert.finetuning.recipe import describe_length
from litebert.finetuning.run_folder import Job, Run, check_same_job, open_log, open_run, save
from litebert.inference.cutting import describe_cut
from litebert.inference.engines.torch_engine import TorchEngine
from litebert.inference.session import Session
from litebert.model.model import Model
from litebert.tasks.catalog import find_embedding, finish_task, task_facts
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.group_batch import GroupBatch, cut_micro_batches
from litebert.tasks.groups import Group, TuningPlan
from litebert.tasks.predictions import PREDICTIONS, predict_answers, predictions_file, write_predictions
from litebert.tasks.report import (
    ERRORS_FILE,
    REPORT_FILE,
    describe_split,
    explain_chance,
    is_labelled,
    learn_baseline,
    pick_examples,
    read_report,
    write_errors,
    write_report,
)
from litebert.tasks.seen_texts import write_seen_texts
from litebert.training.card import write_task_card
from litebert.training.kept_checkpoints import CHECKPOINTS, best_step, check_is_ours, checkpoint_path
from litebert.training.loop import StepReport, check_finite, iter_updates, time_batch, with_fastest_dtype
from litebert.training.schedule import learning_rate

MODEL = "model"
MEMORIZED = 0.05  # a training loss below this share of the first one: the training rows have nothing more to teach
NUM_LOSSES = 5  # the last logged ones, for a mean
LONG_BATCH = 5.0  # seconds: one batch this long is enough to estimate a run


def finetune(job: Job, folder: Path) -> dict[str, Any]:
    """Fine-tune in a folder, resuming an interrupted run; returns the report."""
    job = job.with_lengths()
    check_is_ours(folder)
    with exclusive_lock(folder, purpose="training"):
        check_same_job(folder, job)
        if (folder / REPORT_FILE).is_file():
            return close(folder)
        for place in (folder, folder / CHECKPOINTS, folder / PREDICTIONS):
            remove_leftovers(place)
        with open_view(folder.name) as view:
            run = open_run(job, folder, view)
            with open_log(run) as log, catch_stop_signals() as stop:
                train(run, view, log, stop)
            return finish(run, view)


def train(run: Run, view: View, log: RunLog, stop: Stop) -> None:
    """Train, evaluate and save until the last step, early stopping, or a signal to stop."""
    recipe, length = run.job.recipe, run.length
    if run.progress.is_finished(length.options) or is_out_of_patience(run):
        return
    if recipe.runtime.dtype == "auto" and not run.progress.step:
        first = [run.train[n] for n in plan_batches(run).batches(0)[0]]
        run.engine = with_fastest_dtype(run.engine, cut_batch(run, first)[0], view)
    announce(run, view)
    rate_at = lambda step: learning_rate(  # noqa: E731 (the schedule as a function of the step)
        step, peak=recipe.optim.learning_rate, total_steps=length.options.steps, options=length.schedule
    )
    for report in iter_updates(run.engine, iter_micro_batches(run), run.progress, length.options, rate_at):
        step = run.progress.step
        show(view, run, report)
        scores = measure_dev(run, view) if length.is_evaluated(step) else {}
        check_finite(scores, step)
        if scores or step % recipe.train.log_every == 0:
            speed = {"seconds": report.seconds, "tokens_per_second": report.num_tokens / report.seconds}
            log.write(step, metrics=report.metrics | scores, timing=speed)
        if scores or stop.received:
            save(run, log)
            if stop.received:
                view.say(f"stopped after step {step:,} and saved a checkpoint; run the same command again to resume")
                exit_by_signal(stop.received)
            if is_out_of_patience(run):
                view.say(f"stopped early after step {step:,}: no improvement in {recipe.train.patience} evaluations")
                return


def announce(run: Run, view: View) -> None:
    """Print what the run will do and about how long it will take, before its first step."""
    recipe, length = run.job.recipe, run.length
    name = f"recipe {run.job.recipe_name}: " if run.job.recipe_name else ""
    view.say(f"{name}{describe_length(recipe, length, len(run.train))}")
    device = run.engine.runtime.device.type
    most = "at most " if recipe.train.patience else ""
    view.say(f"{most}about {format_seconds(estimate_seconds(run))} on this {device}, estimated from two batches")


def estimate_seconds(run: Run) -> float:
    """Estimate the remaining time of a run, including evaluations, from the time of two batches."""
    plan = plan_batches(run)
    for numbers in (plan.batches(0) * 2)[:2]:  # the first one is a warm-up, unless it takes long
        groups = [run.train[n] for n in numbers]
        seconds = time_batch(run.engine, cut_batch(run, groups))
        if seconds > LONG_BATCH:
            break
    num_steps = run.length.options.steps - run.progress.step
    num_learned = num_steps * count_tokens(run.train) / plan.steps_per_epoch
    num_evaluations = -(-num_steps // run.length.evaluate_every)
    num_read = num_evaluations * sum(map(count_tokens, run.dev.values()))
    return seconds / count_tokens(groups) * (num_learned + num_read / 3)  # gradients are two thirds of the work


def count_tokens(groups: Sequence[Group]) -> int:
    return sum(group.num_tokens for group in groups)


def plan_batches(run: Run) -> TuningPlan:
    options = run.job.recipe.train
    return TuningPlan.of(run.train, options.batch_size, run.job.recipe.seed, options.bucket_batches)


def cut_batch(run: Run, groups: Sequence[Group]) -> Sequence[GroupBatch]:
    return cut_micro_batches(groups, run.job.recipe.train.micro_batch, run.form.pad_id)


def iter_micro_batches(run: Run) -> Iterator[Sequence[GroupBatch]]:
    """The micro-batches of each step from the current one on, epoch after epoch."""
    plan = plan_batches(run)
    epoch, skipped = divmod(run.progress.step, plan.steps_per_epoch)
    while True:
        for numbers in plan.batches(epoch)[skipped:]:
            yield cut_batch(run, [run.train[n] for n in numbers])
        epoch, skipped = epoch + 1, 0


def measure_dev(run: Run, view: View) -> dict[str, float]:
    """The scores of every dev split, by split and metric."""
    scores: dict[str, float] = {}
    for name, groups in run.dev.items():
        outputs = outputs_of(run, run.engine.model, groups)
        scores |= {f"{name}_{k}": v for k, v in run.task.score(outputs, run.job.dataset.dev[name]).items()}
    view.say(f"step {run.progress.step:,}: " + ", ".join(f"{k.replace('_', ' ')} {v:.4f}" for k, v in scores.items()))
    return scores


def outputs_of(run: Run, model: Model, groups: Sequence[Group]) -> list[Output]:
    return Session(TorchEngine(model, run.engine.runtime), run.form.pad_id).predict(run.task, groups)


def is_out_of_patience(run: Run) -> bool:
    """Whether none of the last `patience` evaluations was the best.

    A model that is still at chance has not started to learn yet and continues, unless it has memorized the training
    rows: with a small dev split, a model that has learned may not be distinguishable from chance.
    """
    patience, best_by = run.job.recipe.train.patience, run.job.best_by
    measured = {r["step"]: r[best_by] for r in run.records if best_by in r} if patience else {}
    if len(measured) <= patience or best_step(run.records, best_by) >= list(measured)[-patience]:
        return False
    losses = [record["loss"] for record in run.records if "loss" in record]
    if fmean(losses[-NUM_LOSSES:]) < MEMORIZED * losses[0]:
        return True
    chance = run.task.chance(next(iter(run.job.dataset.dev.values())))
    return bool(max(measured.values()) > chance.score + chance.margin)


def finish(run: Run, view: View) -> dict[str, Any]:
    """Save the best model, predict dev and test, and write the report last, since it marks a complete run."""
    job, step = run.job, best_step(run.records, run.job.best_by)
    best = load_checkpoint(checkpoint_path(run.folder, step))
    model = best.load_model().to(run.engine.runtime.device)
    outputs = {name: outputs_of(run, model, groups) for name, groups in run.dev.items()}
    chosen_by, chosen = next(iter(outputs.items()))
    task, files = finish_task(run.task, chosen, job.dataset.dev[chosen_by])
    baseline = learn_baseline(task, job.dataset.train)
    dev = {name: describe_split(task, outputs[name], job.dataset.dev[name], baseline) for name in outputs}
    save_model(run, model, task, step, dev[chosen_by])
    test = answer_test(run, model, task, view)
    examples = {**job.dataset.dev, **job.dataset.test}
    for name, values in (outputs | test).items():
        write_predictions(predictions_file(run.folder, name), predict_answers(task, values, examples[name]))
    for name, value in files.items():
        write_json(run.folder / name, value)
    write_errors(run.folder / ERRORS_FILE, task, chosen, job.dataset.dev[chosen_by], title=run.folder.name)
    scored = {n: describe_split(task, v, examples[n], baseline) for n, v in test.items() if is_labelled(examples[n])}
    for facts in (*dev.values(), *scored.values()):
        if facts["is_at_chance"]:
            facts["likely_cause"] = explain_chance(facts, run.records, num_train=len(run.train))
    write_seen_texts(run.folder, job.dataset)
    write_report(run.folder, build_report(run, task, step, dev, scored))
    return close(run.folder)


def close(folder: Path) -> dict[str, Any]:
    """Delete the optimizer states of a finished run, and return its report."""
    for path in list_checkpoints(folder / CHECKPOINTS):
        drop_optimizer(path)
    return read_report(folder)


def answer_test(run: Run, model: Model, task: FinetuneTask, view: View) -> dict[str, list[Output]]:
    """The outputs for the test splits, if requested."""
    outputs: dict[str, list[Output]] = {}
    for name, examples in run.job.dataset.test.items() if run.job.predicts_test else ():
        view.say(f"predicting {name} ({len(examples):,} examples)")
        groups = task.encode(examples, run.job.source.load_tokenizer(), run.form)
        if note := describe_cut([group.num_cut for group in groups], run.form.max_length):
            view.say(f"{name}: {note}")
        outputs[name] = outputs_of(run, model, groups)
    return outputs


def save_model(run: Run, model: Model, task: FinetuneTask, step: int, facts: Mapping[str, Any]) -> None:
    """Write the finished model, replacing one that a killed run left."""
    recipe_toml = run.job.recipe.to_toml()
    card = write_task_card(
        model=run.folder.name, task=task.name, source=run.job.source.path.name, facts=facts, recipe_toml=recipe_toml
    )
    content = CheckpointContent(
        step=step,
        recipe_toml=recipe_toml,
        card=card,
        task=task_facts(task, max_length=run.form.max_length),
        embedding=find_embedding(task, max_length=run.form.max_length),
    )
    save_checkpoint(run.folder / MODEL, model, run.job.source.load_tokenizer(), content, replaces=True)


def build_report(
    run: Run, task: FinetuneTask, step: int, dev: Mapping[str, Any], test: Mapping[str, Any]
) -> dict[str, Any]:
    """The facts of a run that are the same for two runs with the same options."""
    parameters = list(run.engine.model.parameters())
    history = [
        {k: v for k, v in record.items() if k == "step" or k.startswith(tuple(dev))}
        for record in run.records
        if run.job.best_by in record
    ]
    return {
        "task": task.name,
        "metric": task.metric,
        "facts": task_facts(task, max_length=run.form.max_length),
        "values": run.job.values,
        "num_parameters": sum(p.numel() for p in parameters),
        "num_trained_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        "num_train_examples": len(run.train),
        "steps": run.length.options.steps,
        "last_step": run.progress.step,
        "best_step": step,
        "dev": dict(dev),
        "test": dict(test),  # empty if the labels are not known
        "history": history,
        "examples": pick_examples(next(iter(run.job.dataset.dev.values()))),
    }


def show(view: View, run: Run, report: StepReport) -> None:
    """Show the progress of the run in the terminal."""
    done = run.progress.step / run.length.options.steps
    view.show(
        Status(
            step=run.progress.step,
            total_steps=run.length.options.steps,
            progress=done,
            values={name: report.metrics[name] for name in ("loss", "train_accuracy") if name in report.metrics},
            tokens_per_second=report.num_tokens / report.seconds,
            seconds_left=run.progress.seconds * (1 - done) / done,
        )
    )
