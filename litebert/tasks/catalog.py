"""All tasks by name, and the task of a checkpoint from the facts stored in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError, suggest
from litebert.core.options import build_options
from litebert.tasks.choice_files import race_reader, read_choice_dataset
from litebert.tasks.choices import Choices
from litebert.tasks.classification import Classification, MultiLabel, Regression
from litebert.tasks.custom import read_classes, read_multi_labels, read_numbers, read_tags
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output
from litebert.tasks.glue import GLUE, glue_reader
from litebert.tasks.reading import ExitOptions, PassageOptions, TableOptions
from litebert.tasks.splitting import describe_shared
from litebert.tasks.squad.files import squad_reader
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.token_tags import TokenTags

# The kind stored in a checkpoint -> the task's class, whose fields are the other facts stored there.
KINDS: dict[str, type[Any]] = {
    "classification": Classification,
    "regression": Regression,
    "multi-label": MultiLabel,
    "tags": TokenTags,
    "spans": SpanTask,
    "choices": Choices,
}
# The name of a task -> the reader of its data.
READERS: dict[str, Callable[[Path, TableOptions], Dataset]] = {
    **{name: glue_reader(name) for name in GLUE},
    "classification": read_classes,
    "regression": read_numbers,
    "multi-label": read_multi_labels,
    "tags": read_tags,
    "squad-v1": squad_reader(SpanTask("squad-v1")),
    "squad-v2": squad_reader(SpanTask("squad-v2", "2.0", "conditional_span")),
    "squad-v2-simple": squad_reader(SpanTask("squad-v2-simple", "2.0", "span")),  # BERT's way: [CLS] is no answer
    "race": race_reader(),
    "race-middle": race_reader(("middle",)),
    "race-high": race_reader(("high",)),
    "choice": read_choice_dataset,
}
# The TableOptions that a reader ignores: setting one is a mistake that would otherwise go unnoticed.
_COLUMNS = ("text", "text_b", "label", "has_header", "max_labels", "choices")
_CHOICE = ("metric", "positive")  # by which the best model is chosen
UNREAD: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(GLUE, ("dev", "test", *_COLUMNS, "group", "on_error", *_CHOICE)),
    "sts-b": ("dev", "test", *_COLUMNS, "group", "on_error", "is_balanced", *_CHOICE),
    "classification": ("choices", "on_error"),
    **dict.fromkeys(("regression", "multi-label"), ("choices", "on_error", "is_balanced", "positive")),
    "choice": ("has_header", "max_labels", "on_error", "is_balanced", *_CHOICE),
    "tags": ("text_b", "choices", "is_balanced", *_CHOICE),
    **dict.fromkeys(("squad-v1", "squad-v2", "squad-v2-simple"), (*_COLUMNS, "group", "is_balanced", *_CHOICE)),
    **dict.fromkeys(
        ("race", "race-middle", "race-high"),
        ("dev", "test", *_COLUMNS, "group", "on_error", "encoding", "is_balanced", *_CHOICE),
    ),
}
# Tasks that learn something more from the dev outputs of the finished model (a threshold), or write more files.
Finish = Callable[[Any, Sequence[Output], Sequence[Any]], tuple[FinetuneTask, dict[str, Any]]]
FINISHERS: dict[type[Any], Finish] = {SpanTask: SpanTask.finish}


def finish_task(
    task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]
) -> tuple[FinetuneTask, dict[str, Any]]:
    """The task as it is saved with the finished model, and the JSON files, by name, to write next to the report."""
    finish = FINISHERS.get(type(task))
    return finish(task, outputs, examples) if finish else (task, {})


def with_passage(task: FinetuneTask, options: PassageOptions) -> FinetuneTask:
    """The task with a recipe's lengths, where it reads long texts."""
    known = {field.name for field in fields(task)}  # type: ignore[arg-type]
    changed = {name for name, value in asdict(options).items() if value != getattr(PassageOptions(), name)}
    if changed - known:
        raise ConfigError(
            "conflicting-keys", f"passage.{min(changed - known)} does not apply to task {task.name}; remove it"
        )
    values = {name: value for name, value in asdict(options).items() if name in known}
    return replace(task, **values)  # type: ignore[type-var]


def with_exits(task: FinetuneTask, options: ExitOptions) -> FinetuneTask:
    """The task with early exits after every layer, if the recipe enables them."""
    if not options.enabled:
        return task
    if not isinstance(task, Classification | Regression):
        raise ConfigError(
            "unsupported-early-exit",
            f"exit.enabled = true needs a classification or regression task, not {task.name}; remove it",
        )
    return replace(task, exits=True)


def untuned(task: FinetuneTask) -> FinetuneTask:
    """The task without what it learned from the dev outputs of one model."""
    return replace(task, threshold=None) if isinstance(task, SpanTask) else task


def read_dataset(name: str, path: Path, options: TableOptions | None = None) -> Dataset:
    """The task of this name with the examples at a path."""
    if name not in READERS:
        raise ConfigError("unknown-task", f"unknown task '{name}'; {suggest(name, READERS)}", option="task")
    options = options or TableOptions()
    for option in UNREAD.get(name, ()):
        if getattr(options, option) != getattr(TableOptions(), option):
            argument = option.removeprefix("is_").removeprefix("has_")
            raise ConfigError(
                "conflicting-options", f"{argument} does not apply to task {name}; leave it out", option=argument
            )
    dataset = READERS[name](path, options)
    shared = describe_shared(dataset.train, {**dataset.dev, **dataset.test}) if options.is_learned else []
    return replace(dataset, notes=(*dataset.notes, *shared))


def task_facts(task: FinetuneTask, *, max_length: int) -> dict[str, Any]:
    """Everything needed to use a model of this task, as JSON."""
    kind = next(word for word, one in KINDS.items() if isinstance(task, one))
    return {"kind": kind, "max_length": max_length, **asdict(task)}  # type: ignore[call-overload]


def restore_task(facts: Mapping[str, Any], *, where: str) -> FinetuneTask:
    """The task of a checkpoint."""
    kind = KINDS.get(str(facts.get("kind")))
    if kind is None:
        raise DataError(
            "unknown-task",
            f"{where}: unknown kind of task '{facts.get('kind')}'; was it written by a newer version of litebert?",
        )
    fields = {key: value for key, value in facts.items() if key not in ("kind", "max_length")}
    task: FinetuneTask = build_options(kind, fields, where=where)
    return task
