"""A fine-tuning run and its folder: how it is opened, resumed and saved."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from litebert.checkpoint import (
    Checkpoint,
    CheckpointContent,
    list_checkpoints,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from litebert.core.errors import ConfigError, DataError, naming_shortages
from litebert.core.files import atomic_path
from litebert.core.options import dump_toml, read_toml_values
from litebert.core.runlog import METRICS_FILE, RunLog, check_log, describe_log, open_sinks, read_log
from litebert.core.runtime import choose_runtime
from litebert.core.view import View
from litebert.finetuning.recipe import FinetuneRecipe, Length, list_differences, settle_length
from litebert.inference.cutting import describe_cut
from litebert.interop.vocabulary_notes import note_vocabulary
from litebert.model.config import ATTENTION_FIELDS, ModelConfig
from litebert.model.model import Model, build_model
from litebert.tasks.catalog import (
    KINDS,
    find_embedding,
    find_kind,
    name_kind,
    task_facts,
    with_embedding,
    with_exits,
    with_passage,
)
from litebert.tasks.files.reading import EmbeddingOptions
from litebert.tasks.finetuning import Dataset, FinetuneTask, fingerprint
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm, build_form
from litebert.tasks.report import REPORT_FILE
from litebert.training.distributed import TaskLoss
from litebert.training.freezing import check_last_layers, freeze
from litebert.training.kept_checkpoints import (
    CHECKPOINTS,
    RECIPE_FILE,
    checkpoint_path,
    delete_old_checkpoints,
    find_last_checkpoint,
    rename_damaged,
)
from litebert.training.loop import (
    SMALLER_MODEL,
    Engine,
    Progress,
    build_scaler,
    encoder_dtype,
    pack_scaler,
    unpack_scaler,
)
from litebert.training.optimizers import build_optimizer

MANY_UNKNOWN = 0.1  # of the tokens: usual texts have less than one in a hundred


@dataclass(frozen=True)
class Job:
    """What to fine-tune, on which data and with which recipe."""

    source: Checkpoint
    dataset: Dataset
    recipe: FinetuneRecipe
    is_from_scratch: bool = False  # use only the shape and tokenizer of the source; the weights are random
    predicts_test: bool = True
    recipe_name: str = ""  # for display; only the values of the recipe matter

    @cached_property
    def values(self) -> dict[str, Any]:
        """Everything the result depends on; files are identified by their content, not their path."""
        identity = {
            "task": self.dataset.task.name,
            "metric": self.dataset.task.metric,
            "positive": getattr(self.dataset.task, "positive", ""),
            "class_weights": list(getattr(self.dataset.task, "class_weights", ())),
            # the boundary between train and dev, which the hash does not cover: it moves if more of a file is held out
            "num_train": len(self.dataset.train),
            "examples": fingerprint([self.dataset.train, *self.dataset.dev.values()]),
            "test": fingerprint(list(self.dataset.test.values())) if self.predicts_test else "",
            "weights": "" if self.is_from_scratch else self.source.fingerprint,
            "model": hash_config(self.source.config),
            "tokenizer": self.source.load_tokenizer().fingerprint,
            "is_from_scratch": self.is_from_scratch,
            "predicts_test": self.predicts_test,
        }
        if name_kind(self.dataset.task) not in KINDS:  # a user's own task may compute anything from its fields
            identity["own_task"] = json.dumps(task_facts(self.dataset.task, max_length=self.form.max_length))
        return {**self.recipe.values, "job": identity}

    @property
    def best_by(self) -> str:
        """The metric that selects the best checkpoint, by its name in the logs."""
        return f"{next(iter(self.dataset.dev))}_{self.dataset.task.metric}"

    def with_lengths(self) -> Self:
        """The job with the recipe's options for passages, early exit and vectors in its task."""
        task = with_exits(with_passage(self.dataset.task, self.recipe.passage), self.recipe.exit)
        spec, size = self.source.embedding_spec, self.source.config.hidden_size
        task = with_embedding(task, self.recipe.embedding, spec, hidden_size=size)
        return dataclasses.replace(self, dataset=dataclasses.replace(self.dataset, task=task))

    @cached_property
    def form(self) -> SequenceForm:
        config = self.source.config
        length = min(self.recipe.train.max_length, config.max_positions)
        return build_form(self.source.load_tokenizer(), max_length=length, num_segments=config.num_segments)


def hash_config(config: ModelConfig) -> str:
    """A hash of a model's shape. With full attention, it is the one of version 0.1.0, which knew no other."""
    values = dataclasses.asdict(config)
    if config.attention == "full":
        values = {name: value for name, value in values.items() if name not in ATTENTION_FIELDS}
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@dataclass
class Run:
    """A run in progress."""

    folder: Path
    job: Job
    form: SequenceForm
    length: Length
    train: Sequence[Group]
    dev: Mapping[str, Sequence[Group]]
    engine: Engine[GroupBatch]
    progress: Progress

    @property
    def task(self) -> FinetuneTask:
        return self.job.dataset.task

    @property
    def records(self) -> list[dict[str, Any]]:
        return read_log(self.folder / METRICS_FILE)


def check_job(job: Job) -> None:
    """Raise if the model or the task does not allow the recipe, before anything is computed or written."""
    job = job.with_lengths()
    settle_length(job.recipe, len(job.dataset.train))
    check_last_layers(job.source.config.layer_plan, job.recipe.train.num_last_layers)
    if job.recipe.train.num_last_layers == 0 and not job.dataset.task.heads:
        raise ConfigError(
            "conflicting-keys",
            f"train.trainable = 'head', but task {job.dataset.task.name} has no head: use 'all' or 'last-K'",
        )
    # raises if `max_length` leaves no room for text
    job.dataset.task.encode(job.dataset.train[:1], job.source.load_tokenizer(), job.form)


def open_run(job: Job, folder: Path, view: View) -> Run:
    """The run, resumed from its last complete checkpoint, or a new one."""
    dataset, tokenizer, form = job.dataset, job.source.load_tokenizer(), job.form
    if not dataset.train:
        raise DataError("empty-split", f"the data has no train split of {dataset.task.name}; add one", option="data")
    if not dataset.dev:
        raise DataError(
            "empty-split",
            f"the data has no dev split of {dataset.task.name}, which chooses the best checkpoint; add one",
            option="data",
        )
    for note in (*dataset.notes, *note_vocabulary(tokenizer, job.source.config.vocab_size)):
        view.say(note)
    groups = dataset.task.encode(dataset.train, tokenizer, form)
    if note := describe_unknown(groups, tokenizer.unk_id):
        view.say(note)
    dev = {name: dataset.task.encode(examples, tokenizer, form) for name, examples in dataset.dev.items()}
    for split, some in {"train": groups, **dev}.items():
        if note := describe_cut([group.num_cut for group in some], form.max_length):
            view.say(f"{split}: {note}")
    if note := find_kind(dataset.task).describe_lost(dataset.task, dataset.train, groups):
        view.say(note)
    last, damaged = find_last_checkpoint(folder)
    for path, reason in damaged.items():
        view.say(f"{reason}; renamed to {rename_damaged(path).name}")
    if last:
        check_log(folder / METRICS_FILE, last.begun_with.get("metrics", {}))
    engine = build_engine(job, last)
    progress = Progress()
    if last:
        view.say(f"resuming after step {last.step:,}")
        progress = Progress.of(last.path)
    return Run(folder, job, form, settle_length(job.recipe, len(groups)), groups, dev, engine, progress)


def describe_unknown(groups: Sequence[Group], unk_id: int) -> str:
    """A note if many tokens of the training texts are not in the vocabulary; otherwise empty."""
    num_unknown = sum(int((sequence.token_ids == unk_id).sum()) for group in groups for sequence in group.sequences)
    share = num_unknown / sum(group.num_tokens for group in groups)
    if share < MANY_UNKNOWN:
        return ""
    return (
        f"{share:.0%} of the training tokens are unknown to the vocabulary: is the model for this language and script?"
    )


@naming_shortages("building the model and its optimizer", fix=SMALLER_MODEL)
def build_engine(job: Job, last: Checkpoint | None) -> Engine[GroupBatch]:
    """The model with a new head, and its optimizer, or both restored from the last checkpoint."""
    recipe, task = job.recipe, job.dataset.task
    runtime = choose_runtime(recipe.runtime)
    if last and "dtype" in last.begun_with:  # "auto" might choose another one now
        runtime = runtime.in_format(last.begun_with["dtype"])
    model = build_task_model(job)
    if last:
        model.load_state_dict(last.load_weights(), strict=True)
    model.encoder.training_dtype = encoder_dtype(runtime)
    freeze(model, recipe.train.num_last_layers)
    model = model.to(runtime.device)
    optimizer = build_optimizer([(n, p) for n, p in model.named_parameters() if p.requires_grad], recipe.optim)
    if last:
        restore_optimizer(model, optimizer, last.load_optimizer())
    scaler = build_scaler(runtime)
    if last and (numbers := unpack_scaler(last.state)):
        scaler.load_state_dict(numbers)
    loss = TaskLoss(model, task)
    # dropout is drawn per micro-batch, not per row as in pre-training: the heads have dropout too, but no row seeds
    return Engine(model, loss, optimizer, task, runtime, scaler, recipe.optim.clip_norm, recipe.seed)


def build_task_model(job: Job) -> Model:
    """The pre-trained encoder with a randomly initialized head, and pooler if the source has none."""
    dropout = job.recipe.model
    config = dataclasses.replace(
        job.source.config,
        hidden_dropout_rate=dropout.dropout_rate,
        attention_dropout_rate=dropout.dropout_rate,
        classifier_dropout_rate=dropout.classifier_dropout_rate,
        has_pooler=bool(job.dataset.task.heads),  # vectors are pooled without weights
    )
    model = build_model(config, job.dataset.task.heads, seed=job.recipe.seed)
    if not job.is_from_scratch:
        weights = {name: w for name, w in job.source.load_weights().items() if name.startswith("encoder.")}
        if not config.has_pooler:
            weights = {name: w for name, w in weights.items() if not name.startswith("encoder.pooler.")}
        model.load_state_dict(weights, strict=False)
    return model


def open_log(run: Run) -> RunLog:
    """The run's logs, truncated to the step it resumes from; a new run also writes its recipe."""
    if not run.progress.step:
        with atomic_path(run.folder / RECIPE_FILE) as temporary:
            temporary.write_text(dump_toml(run.job.values), "utf-8")
    loggers = run.job.recipe.train.loggers
    sinks = open_sinks(loggers, run.folder, run_name=run.folder.name, config=run.job.values)
    log = RunLog(run.folder, resumed_step=run.progress.step, sinks=sinks)
    forget_checkpoints(run)  # the process may have been killed between saving and deleting
    return log


@naming_shortages("saving a checkpoint", fix=SMALLER_MODEL)
def save(run: Run, log: RunLog) -> None:
    """Write a checkpoint now, and delete those that are neither recent nor the best."""
    log.sync()  # a checkpoint must not be ahead of its metrics
    engine, progress = run.engine, run.progress
    content = CheckpointContent(
        step=progress.step,
        recipe_toml=run.job.recipe.to_toml(),
        state={"tokens": progress.tokens, "seconds": progress.seconds, **pack_scaler(engine.scaler)},
        begun_with={"dtype": engine.runtime.dtype_name, "metrics": describe_log(run.folder / METRICS_FILE)},
        optimizer=optimizer_tensors(engine.model, engine.optimizer),
        task=task_facts(run.task, max_length=run.form.max_length),
        embedding=find_embedding(run.task, max_length=run.form.max_length),
    )
    path = checkpoint_path(run.folder, progress.step)
    save_checkpoint(path, engine.model, run.job.source.load_tokenizer(), content)
    forget_checkpoints(run)


def forget_checkpoints(run: Run) -> None:
    """Delete checkpoints that are neither among the last nor the best."""
    keep_last = run.job.recipe.train.keep_last
    delete_old_checkpoints(run.folder, run.records, keep_last=keep_last, best_by=run.job.best_by)


def check_same_job(folder: Path, job: Job) -> None:
    """Raise if a run would be resumed with other options."""
    changes = list_job_changes(folder, job)
    if changes:
        raise ConfigError(
            "options-changed",
            f"{folder} was started with other options ({'; '.join(changes[:5])}); repeat them or use another folder",
            option="out",
        )


def list_job_changes(folder: Path, job: Job) -> list[str]:
    """How a job differs from the run in a folder; empty before its first checkpoint, as nothing can be resumed."""
    file = folder / RECIPE_FILE
    is_under_way = list_checkpoints(folder / CHECKPOINTS) or (folder / REPORT_FILE).is_file()
    if not file.is_file() or not is_under_way:
        return []
    begun = read_toml_values(file, "recipe")
    if "job" not in begun:
        raise ConfigError("wrong-folder", f"{folder} is a pre-training run; choose another folder", option="out")
    # runs of version 0.1 did not record these: a user's own classification task was always judged by accuracy
    usual = "accuracy" if job.dataset.task.name == "classification" else job.dataset.task.metric
    begun = {"embedding": dataclasses.asdict(EmbeddingOptions()), **begun}  # a section that they lack
    begun["job"] = {"metric": usual, "positive": "", **begun["job"]}
    return list_differences(begun, job.values)
