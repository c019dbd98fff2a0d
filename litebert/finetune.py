"""The story of fine-tuning: a pre-trained model and a task's examples become a model that answers, and its score.

Interrupted at any moment and started again with the same words, it ends with the same weights and the same report as if
it had never stopped. A run's folder has, beside recipe.toml, metrics.jsonl, timing.jsonl and checkpoints/:

model/          the checkpoint that was best on dev, with its task, ready for `litebert predict`
predictions/    a line for each example of dev and test: its answer and the model's output
report.json     scores, what chance would score, how they came about; reproducible to the last digit
errors.md       the dev examples that were answered most wrongly
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.files import exclusive_lock, remove_leftovers, write_json
from litebert.core.runlog import RunLog
from litebert.core.view import Status, View, open_view
from litebert.data.group_batch import GroupBatch, cut_into_parts
from litebert.data.groups import Group, TuningPlan
from litebert.finetune_run import Job, Run, check_same_job, open_log, open_run, save
from litebert.infer.outputs import compute_outputs
from litebert.model.model import Model
from litebert.tasks.catalog import finish_task, task_facts
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.predictions import PREDICTIONS, predict_answers, predictions_file, write_predictions
from litebert.tasks.report import (
    ERRORS_FILE,
    REPORT_FILE,
    describe_split,
    is_labelled,
    read_report,
    write_errors,
    write_report,
)
from litebert.train.card import write_task_card
from litebert.train.keeping import CHECKPOINTS, best_step, check_is_ours, checkpoint_path
from litebert.train.loop import StepReport, check_finite, iter_updates
from litebert.train.schedule import learning_rate

MODEL = "model"


def finetune(job: Job, folder: Path) -> dict[str, Any]:
    """Fine-tune, or go on, in a folder; gives the report."""
    job = job.with_lengths()
    check_is_ours(folder)
    with exclusive_lock(folder, purpose="training"):
        check_same_job(folder, job)
        if (folder / REPORT_FILE).is_file():
            return read_report(folder)
        for place in (folder, folder / CHECKPOINTS, folder / PREDICTIONS):
            remove_leftovers(place)
        with open_view(folder.name) as view:
            run = open_run(job, folder, view)
            with open_log(run) as log:
                train(run, view, log)
            return finish(run, view)


def train(run: Run, view: View, log: RunLog) -> None:
    """Update, measure and save until the end, or until dev no longer improves."""
    recipe, length = run.job.recipe, run.length
    if run.progress.is_finished(length.options) or is_out_of_patience(run):
        return
    rate_at = lambda step: learning_rate(  # noqa: E731 (the schedule, with all but the step settled)
        step, peak=recipe.optim.learning_rate, total_steps=length.options.steps, options=length.schedule
    )
    for report in iter_updates(run.engine, iter_parts(run), run.progress, length.options, rate_at):
        step = run.progress.step
        show(view, run, report)
        scores = measure_dev(run, view) if length.is_evaluated(step) else {}
        check_finite(scores, step)
        if scores or step % recipe.train.log_every == 0:
            speed = {"seconds": report.seconds, "tokens_per_second": report.num_tokens / report.seconds}
            log.write(step, metrics=report.metrics | scores, timing=speed)
        if scores:
            save(run, log)
            if is_out_of_patience(run):
                view.say(f"stopped after step {step:,}: {recipe.train.patience} evaluations without a better one")
                return


def iter_parts(run: Run) -> Iterator[Sequence[GroupBatch]]:
    """The parts of each step's batch from where the run stands, epoch after epoch."""
    options = run.job.recipe.train
    plan = TuningPlan.of(run.train, options.batch_size, run.job.recipe.seed, options.bucket_batches)
    epoch, skipped = divmod(run.progress.step, plan.steps_per_epoch)
    while True:
        for numbers in plan.batches(epoch)[skipped:]:
            yield cut_into_parts([run.train[n] for n in numbers], options.micro_batch, run.form.pad_id)
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
    return compute_outputs(model, run.task, groups, run.engine.runtime, pad_id=run.form.pad_id)


def is_out_of_patience(run: Run) -> bool:
    """Whether the last evaluations, as many as the patience, were none of them the best."""
    patience = run.job.recipe.train.patience
    measured = [r["step"] for r in run.records if run.job.best_by in r] if patience else []
    return len(measured) > patience and best_step(run.records, run.job.best_by) < measured[-patience]


def finish(run: Run, view: View) -> dict[str, Any]:
    """Keep the best model, let it answer dev and test, and write the report: last, for it says that all is there."""
    job, step = run.job, best_step(run.records, run.job.best_by)
    best = load_checkpoint(checkpoint_path(run.folder, step))
    model = best.load_model().to(run.engine.runtime.device)
    outputs = {name: outputs_of(run, model, groups) for name, groups in run.dev.items()}
    chosen_by, chosen = next(iter(outputs.items()))
    task, files = finish_task(run.task, chosen, job.dataset.dev[chosen_by])
    dev = {name: describe_split(task, outputs[name], job.dataset.dev[name]) for name in outputs}
    save_model(run, model, task, step, dev[chosen_by]["scores"])
    test = answer_test(run, model, task, view)
    examples = {**job.dataset.dev, **job.dataset.test}
    for name, values in (outputs | test).items():
        write_predictions(predictions_file(run.folder, name), predict_answers(task, values, examples[name]))
    for name, value in files.items():
        write_json(run.folder / name, value)
    write_errors(run.folder / ERRORS_FILE, task, chosen, job.dataset.dev[chosen_by], title=run.folder.name)
    scored = {n: describe_split(task, v, examples[n]) for n, v in test.items() if is_labelled(examples[n])}
    write_report(run.folder, build_report(run, task, step, dev, scored))
    return read_report(run.folder)


def answer_test(run: Run, model: Model, task: FinetuneTask, view: View) -> dict[str, list[Output]]:
    """The outputs for the test splits, if they are wanted."""
    outputs: dict[str, list[Output]] = {}
    for name, examples in run.job.dataset.test.items() if run.job.predicts_test else ():
        view.say(f"answering {name} ({len(examples):,} examples)")
        groups = task.encode(examples, run.job.source.load_tokenizer(), run.form)
        outputs[name] = outputs_of(run, model, groups)
    return outputs


def save_model(run: Run, model: Model, task: FinetuneTask, step: int, scores: Mapping[str, float]) -> None:
    """Write the finished model, over one that a killed run left."""
    recipe_toml = run.job.recipe.to_toml()
    card = write_task_card(
        model=run.folder.name, task=task.name, source=run.job.source.path.name, scores=scores, recipe_toml=recipe_toml
    )
    content = CheckpointContent(
        step=step, recipe_toml=recipe_toml, card=card, task=task_facts(task, max_length=run.form.max_length)
    )
    save_checkpoint(run.folder / MODEL, model, run.job.source.load_tokenizer(), content, replaces=True)


def build_report(
    run: Run, task: FinetuneTask, step: int, dev: Mapping[str, Any], test: Mapping[str, Any]
) -> dict[str, Any]:
    """All that is worth knowing of the run, and nothing that differs between two runs of the same words."""
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
        "test": dict(test),  # empty where the right answers are not known
        "history": history,
    }


def show(view: View, run: Run, report: StepReport) -> None:
    """Tell the person at the terminal where the run stands."""
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
