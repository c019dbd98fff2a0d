"""The catalog of tasks: a table of all kinds of task and a table of all published tasks.

A kind of task is a frozen dataclass (the contract is `FinetuneTask`) and a row of KINDS. A published task is a row of
TASKS: a kind with its own files. A `FinetuneTask` of a user's own needs no row; `find_kind` gives it the defaults.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from litebert.core.errors import ConfigError, DataError, suggest
from litebert.core.options import build_options
from litebert.model.engine import HeadName
from litebert.model.pooling import EmbeddingSpec
from litebert.tasks.bag_of_words import Answer, learn_choices, learn_labels, learn_numbers, learn_tags
from litebert.tasks.bm25 import learn_bm25
from litebert.tasks.files.chinese_tags import read_cluener, read_msra
from litebert.tasks.files.choice_files import race_reader, read_choice_dataset
from litebert.tasks.files.clue import CLUE, clue_reader
from litebert.tasks.files.clue_choices import read_c3, read_chid
from litebert.tasks.files.custom import read_classes, read_multi_labels, read_numbers, read_tags
from litebert.tasks.files.embedding_files import read_embeddings
from litebert.tasks.files.glue import GLUE, glue_reader
from litebert.tasks.files.reading import EmbeddingOptions, ExitOptions, PassageOptions, TableOptions
from litebert.tasks.files.splitting import describe_shared
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output, OwnTask, Rows, Tally
from litebert.tasks.groups import Group
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.embedding import EmbeddedText, Embedding
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags, describe_tag_errors
from litebert.tasks.squad.files import CMRC_FILES, DRCD_FILES, squad_reader
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample

Read = Callable[[Path, TableOptions], Dataset]
Learn = Callable[[Any, Sequence[Any]], Answer | None]  # None: no baseline for this form of the task


def tally_scores(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    """The default tally: the task's own scores, computed again for every resample."""

    def measure(name: str) -> Callable[[Rows], float]:
        return lambda rows: task.score([outputs[n] for n in rows], [examples[n] for n in rows])[name]

    return Tally(np.arange(len(examples)), {name: measure(name) for name in task.score(outputs, examples)})


@dataclass(frozen=True)
class Kind:
    """What litebert needs to know of a kind of task in addition to the task's own methods."""

    task: type[Any]  # its fields are the facts that a checkpoint stores
    # The kind of input. It determines how `predict` reads files, lines and values, and which server function answers.
    example: type[Any] = TextExample
    read: Read | None = None  # reads a user's own files; None: this kind has only published tasks
    own_name: str = ""  # the task's name for a user's own files, if not the kind's
    ignored: tuple[str, ...] = ()  # the TableOptions that `read` ignores
    tally: Callable[[Any, Sequence[Output], Sequence[Any]], Tally] = tally_scores  # what intervals are computed from
    baseline: tuple[str, Learn] | None = None  # its name, and the function that trains it
    is_baseline_trained: bool = True  # False: it needs no training examples
    # what a report has for each split in addition to the scores
    describe: Callable[[Any, Sequence[Output], Sequence[Any]], dict[str, Any]] = lambda *_: {}
    describe_error: Callable[[Any, Any, Any], list[str]] | None = None  # a wrong answer in errors.md; None: generic
    show_label: Callable[[Any, Any], Any] = lambda _, label: label  # a label as it appears in answers
    describe_lost: Callable[[Any, Sequence[Any], Sequence[Group]], str] = lambda *_: ""  # what was truncated
    # Tunes the task on the dev outputs of the finished model (a threshold, stored in the field `learned`); also returns
    # JSON files, by name, to write next to the report.
    finish: Callable[[Any, Sequence[Output], Sequence[Any]], tuple[FinetuneTask, dict[str, Any]]] = lambda task, *_: (
        task,
        {},
    )
    learned: tuple[str, ...] = ()


# what a user-defined task must have, in addition to a name and `read`
_METHODS = (
    *("metric", "heads", "encode", "count", "loss", "summarize"),
    *("predict", "combine", "decide", "score", "wrongness", "chance"),
)


class Reader(NamedTuple):
    """Describes how the files of a task are read."""

    read: Read
    ignored: tuple[str, ...] = ()  # TableOptions without effect here; setting one is an error


_COLUMNS = ("text", "text_b", "label", "has_header", "max_labels", "choices")
_CHOICE = ("metric", "positive")  # these select the best model

# The kind stored in a checkpoint -> its row. It is also the name of the task for a user's own files.
KINDS: dict[str, Kind] = {
    "classification": Kind(
        Classification,
        read=read_classes,
        ignored=("choices", "on_error"),
        tally=Classification.tally,
        baseline=("bag of words", learn_labels),
        describe=Classification.describe,
    ),
    "regression": Kind(
        Regression,
        read=read_numbers,
        ignored=("choices", "on_error", "is_balanced", "positive"),
        tally=Regression.tally,
        baseline=("bag of words", learn_numbers),
    ),
    "multi-label": Kind(
        MultiLabel,
        read=read_multi_labels,
        ignored=("choices", "on_error", "is_balanced", "positive"),
        tally=MultiLabel.tally,
        baseline=("bag of words", learn_labels),
        describe=MultiLabel.describe,
    ),
    "tags": Kind(
        TokenTags,
        TaggedWords,
        read=read_tags,
        ignored=("text_b", "choices", "is_balanced", *_CHOICE),
        tally=TokenTags.tally,
        baseline=("most frequent tag of each word", learn_tags),
        describe=TokenTags.describe,
        describe_error=describe_tag_errors,
    ),
    "spans": Kind(
        SpanTask,
        Question,
        tally=SpanTask.tally,
        describe_lost=SpanTask.describe_lost,
        finish=SpanTask.finish,
        learned=("threshold",),
    ),
    "choices": Kind(
        Choices,
        ChoiceExample,
        read=read_choice_dataset,
        own_name="choice",
        ignored=("has_header", "max_labels", "on_error", "is_balanced", *_CHOICE),
        tally=Choices.tally,
        baseline=("word overlap", learn_choices),
        show_label=Choices.name_choice,
    ),
    "embedding": Kind(
        Embedding,
        EmbeddedText,
        read=read_embeddings,
        ignored=("choices", "max_labels", "on_error", "is_balanced", "positive"),
        tally=Embedding.tally,
        baseline=("BM25", learn_bm25),
        is_baseline_trained=False,
    ),
}

_GLUE = ("dev", "test", *_COLUMNS, "group", "on_error", *_CHOICE)
_CLUE = (*_COLUMNS, "group", "on_error", *_CHOICE)
_SQUAD = (*_COLUMNS, "group", "is_balanced", *_CHOICE)
_CHINESE_CHOICE = (*_COLUMNS, "group", "on_error", "is_balanced", *_CHOICE)
_CHINESE_TAGS = (*_COLUMNS, "group", "is_balanced", *_CHOICE)
_RACE = ("dev", "test", *_COLUMNS, "group", "on_error", "encoding", "is_balanced", *_CHOICE)

# The name of a published task -> how its files are read.
TASKS: dict[str, Reader] = {
    **{name: Reader(glue_reader(name), (*_GLUE, "is_balanced") if name == "sts-b" else _GLUE) for name in GLUE},
    "squad-v1": Reader(squad_reader(SpanTask("squad-v1")), _SQUAD),
    "squad-v2": Reader(squad_reader(SpanTask("squad-v2", "2.0", "conditional_span")), _SQUAD),
    "squad-v2-simple": Reader(squad_reader(SpanTask("squad-v2-simple", "2.0", "span")), _SQUAD),  # BERT's [CLS]
    **{name: Reader(clue_reader(name), _CLUE) for name in CLUE},
    "c3": Reader(read_c3, _CHINESE_CHOICE),
    "chid": Reader(read_chid, _CHINESE_CHOICE),
    "cluener": Reader(read_cluener, _CHINESE_TAGS),
    "msra-ner": Reader(read_msra, _CHINESE_TAGS),
    "cmrc2018": Reader(squad_reader(SpanTask("cmrc2018", units="characters"), CMRC_FILES), _SQUAD),
    "drcd": Reader(squad_reader(SpanTask("drcd", units="characters"), DRCD_FILES), _SQUAD),
    "race": Reader(race_reader(), _RACE),
    "race-middle": Reader(race_reader(("middle",)), _RACE),
    "race-high": Reader(race_reader(("high",)), _RACE),
}


def find_kind(task: FinetuneTask) -> Kind:
    """The row of a task's kind; the defaults for a user-defined task."""
    return next((kind for kind in KINDS.values() if kind.task is type(task)), None) or Kind(type(task))


def name_kind(task: FinetuneTask) -> str:
    """The kind that a checkpoint stores: a key of KINDS, or a user-defined class as module:Class."""
    own = f"{type(task).__module__}:{type(task).__qualname__}"
    return next((name for name, kind in KINDS.items() if kind.task is type(task)), own)


def list_readers() -> dict[str, Reader]:
    """The readers of all tasks, by task name."""
    own = {kind.own_name or name: Reader(kind.read, kind.ignored) for name, kind in KINDS.items() if kind.read}
    return TASKS | own


def finish_task(
    task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]
) -> tuple[FinetuneTask, dict[str, Any]]:
    """The task to save with the finished model, and the JSON files, by name, to write next to the report."""
    return find_kind(task).finish(task, outputs, examples)


def with_passage(task: FinetuneTask, options: PassageOptions) -> FinetuneTask:
    """The task with a recipe's lengths, if it reads long texts."""
    known = _list_fields(task)
    changed = {name for name, value in asdict(options).items() if value != getattr(PassageOptions(), name)}
    if changed - known:
        raise ConfigError(
            "conflicting-keys", f"passage.{min(changed - known)} does not apply to task {task.name}; remove it"
        )
    return _replace(task, **{name: value for name, value in asdict(options).items() if name in known})


def with_exits(task: FinetuneTask, options: ExitOptions) -> FinetuneTask:
    """The task with early exits after every layer, if the recipe enables them."""
    if not options.enabled:
        return task
    if "exits" not in _list_fields(task):
        raise ConfigError(
            "unsupported-early-exit",
            f"exit.enabled = true needs a classification or regression task, not {task.name}; remove it",
        )
    return _replace(task, exits=True)


def with_embedding(
    task: FinetuneTask, options: EmbeddingOptions, spec: EmbeddingSpec, *, hidden_size: int
) -> FinetuneTask:
    """The task with a recipe's options for vectors; what they leave open is as the model states it."""
    if not isinstance(task, Embedding):
        if options != EmbeddingOptions():
            raise ConfigError(
                "conflicting-keys", f"the section embedding does not apply to task {task.name}; remove its keys"
            )
        return task
    if any(size >= hidden_size for size in options.sizes):
        raise ConfigError(
            "out-of-range",
            f"embedding.sizes = {list(options.sizes)} must be below {hidden_size}, the size of the model's vectors",
        )
    return replace(
        task,
        pooling=options.pooling or spec.pooling,
        normalize=spec.normalize if options.normalize is None else options.normalize,
        sizes=options.sizes,
        temperature=options.temperature,
        loss_of_scores=options.score_loss,
    )


def untuned(task: FinetuneTask) -> FinetuneTask:
    """The task without the values tuned on the dev outputs of one model."""
    return _replace(task, **dict.fromkeys(find_kind(task).learned))


def _list_fields(task: FinetuneTask) -> set[str]:
    return {field.name for field in fields(task)}  # type: ignore[arg-type]


def _replace(task: FinetuneTask, **changes: Any) -> FinetuneTask:
    return replace(task, **changes)  # type: ignore[type-var]


def read_dataset(task: str | OwnTask, path: Path, options: TableOptions | None = None) -> Dataset:
    """A task with the examples at a path: a task by name, or a user-defined task, which reads them itself."""
    options = options or TableOptions()
    if isinstance(task, str):
        readers = list_readers()
        if task not in readers:
            raise ConfigError("unknown-task", f"unknown task '{task}'; {suggest(task, readers)}", option="task")
        for option in readers[task].ignored:
            if getattr(options, option) != getattr(TableOptions(), option):
                argument = option.removeprefix("is_").removeprefix("has_")
                raise ConfigError(
                    "conflicting-options", f"{argument} does not apply to task {task}; leave it out", option=argument
                )
        dataset = readers[task].read(path, options)
    else:
        _check_own_task(task)
        dataset = task.read(path, options)
    shared = describe_shared(dataset.train, {**dataset.dev, **dataset.test}) if options.is_learned else []
    return replace(dataset, notes=(*dataset.notes, *shared))


def _check_own_task(task: Any) -> None:
    """Raise if a user's object is not a task."""
    if not is_dataclass(task) or isinstance(task, type):
        raise ConfigError(
            "not-a-task",
            f"{task!r:.80} is not a task: pass a name, or an instance of a frozen dataclass",
            option="task",
        )
    missing = [word for word in ("name", *_METHODS, "read") if not hasattr(task, word)]
    if missing:
        raise ConfigError(
            "not-a-task",
            f"{type(task).__name__} lacks {', '.join(missing)}: a task has all that OwnTask lists "
            "(litebert/tasks/finetuning.py)",
            option="task",
        )


def find_head(task: FinetuneTask) -> HeadName:
    """The head that answers the task."""
    return task.heads[0].kind if task.heads else "embedding"


def find_embedding(task: FinetuneTask, *, max_length: int) -> EmbeddingSpec | None:
    """How a model of this task makes vectors; None unless it was trained to."""
    return task.spec(max_length) if isinstance(task, Embedding) else None


def task_facts(task: FinetuneTask, *, max_length: int) -> dict[str, Any]:
    """Everything needed to use a model of this task, as JSON."""
    return {"kind": name_kind(task), "max_length": max_length, **asdict(task)}  # type: ignore[call-overload]


def restore_task(facts: Mapping[str, Any], *, where: str) -> FinetuneTask:
    """The task of a checkpoint."""
    name = str(facts.get("kind"))
    kind = KINDS[name].task if name in KINDS else _find_own_class(name, where)
    values = {key: value for key, value in facts.items() if key not in ("kind", "max_length")}
    task: FinetuneTask = build_options(kind, values, where=where)
    return task


def _find_own_class(name: str, where: str) -> type[Any]:
    """A user-defined class whose module is already imported; loading a checkpoint never imports anything."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module), attribute, None)
    if isinstance(found, type) and is_dataclass(found) and all(hasattr(found, word) for word in _METHODS):
        return found
    if attribute:
        raise DataError("unknown-task", f"{where}: the model has a task of your own, {name}: import {module} first")
    raise DataError(
        "unknown-task", f"{where}: unknown kind of task '{name}'; was it written by a newer version of litebert?"
    )
