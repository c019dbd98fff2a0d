"""Score a fine-tuned model, or a file of answers, on a task's data."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from litebert.core.errors import ConfigError, DataError
from litebert.inference.predictor import Predictor
from litebert.inference.task_request import tell_notes
from litebert.tasks.catalog import KINDS, find_kind, list_readers, name_kind, read_dataset
from litebert.tasks.files.columnar import is_columnar
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output, OwnTask
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.embedding import Embedding
from litebert.tasks.leaderboard.answer_scores import read_answers, score_answers
from litebert.tasks.report import describe_split, is_labelled, learn_baseline
from litebert.tasks.seen_texts import SeenTexts
from litebert.tasks.squad.task import SpanTask

# data that a model can be evaluated on although it was trained on another task: GLUE's diagnostic set, and user files
_ALSO_ASKED = {
    "mnli": ("ax",),
    "squad-v1": ("cmrc2018", "drcd"),
    "squad-v2": ("squad-v2-simple",),
    "squad-v2-simple": ("squad-v2",),
    "cmrc2018": ("squad-v1", "drcd"),
    "drcd": ("squad-v1", "cmrc2018"),
}


def read_for(predictor: Predictor, name: str | OwnTask, path: Path, options: TableOptions) -> Dataset:
    """Read a task's data with the model's own labels; raises if the model has another task."""
    labels = tuple(getattr(predictor.task, "labels", ()))
    dataset = read_dataset(name, path, replace(options, labels=labels, dev_share=0.0, is_learned=False))
    check_task(predictor.task, dataset.task, predictor.checkpoint.path)
    return dataset


def check_task(models: FinetuneTask, asked: FinetuneTask, path: Path) -> None:
    """Raise if the data is for another task than the model's; user files of the same kind are accepted."""
    own = [kind.own_name or name for name, kind in KINDS.items() if kind.read]
    fitting = (models.name, *own, *_ALSO_ASKED.get(models.name, ()))
    if type(models) is not type(asked) or asked.name not in fitting:
        raise ConfigError(
            "wrong-task",
            f"{path} was fine-tuned for {models.name} ({type(models).__name__}), not for {asked.name} "
            f"({type(asked).__name__}): set task to '{models.name}', or use another model",
            option="task",
        )


class Chosen(NamedTuple):
    """The examples to score, and facts about them."""

    split: str
    examples: Sequence[Any]
    num_trained: int | None  # how many of their texts the model was trained on; None: not recorded
    to_learn: Sequence[Any]  # training examples for a baseline; empty if training rows are scored
    note: str  # a sentence for the user, or ""


def choose_examples(dataset: Dataset, split: str, path: Path, seen: SeenTexts | None = None) -> Chosen:
    """The examples of a split; by default dev, or all rows of a single file.

    If the model was fine-tuned on this file, its dev split is the rows that were held out then.
    """
    splits = {"train": dataset.train, **dataset.test, **dataset.dev}  # dev last: it has the diagnostic set's labels
    is_file = path.is_file() or is_columnar(path)
    own = seen.split(dataset.train) if seen and not dataset.dev else None
    if own:
        splits |= {"train": own[0], "dev": own[1]}
    elif is_file and not dataset.dev:
        splits = {}
    if is_file:
        splits["all"] = dataset.train
    usual = "dev" if own else "all" if is_file else next(iter(dataset.dev), "dev")
    examples = splits.get(split or usual, ())
    if not examples:
        has = ", ".join(name for name, some in splits.items() if some)
        raise DataError(
            "empty-split", f"{path} has no '{split or usual}' split; it has {has}: choose one of these", option="split"
        )
    num_trained = sum(map(seen.is_trained, examples)) if seen else None
    note = _describe_training(num_trained, len(examples))
    if own and (split or usual) == "dev":
        name = path.name or path
        note = f"the model was fine-tuned on {name}: only the {len(examples):,} rows of its dev split are scored"
    scored = {id(example) for example in examples}
    is_training = (split or usual) in ("train", "all")
    learned = own[0] if own else dataset.train  # a baseline learns from the rows that the model has learned from
    to_learn = [] if is_training else [example for example in learned if id(example) not in scored]
    return Chosen(split or usual, examples, num_trained, to_learn, note)


def _describe_training(num_trained: int | None, num_examples: int) -> str:
    if num_trained is None:
        return "the model has no record of its training texts: some of these texts may have been among them"
    if num_trained:
        return f"the model was trained on {num_trained:,} of these {num_examples:,} texts: expect less on new text"
    return ""


def name_task(models: FinetuneTask, path: Path) -> str | OwnTask:
    """The reader of a model's data: its task by name, the kind of task for a user's own file, or a user's own task."""
    kind, name = find_kind(models), name_kind(models)
    if name not in KINDS:
        return cast(OwnTask, models)  # `read_dataset` checks it
    is_own = path.is_file() or is_columnar(path) or models.name not in list_readers()
    return (kind.own_name or name) if is_own and kind.read else models.name


def evaluate(
    predictor: Predictor,
    dataset: Dataset,
    examples: Sequence[Any],
    report: Callable[[int], None] = lambda _: None,
    *,
    to_learn: Sequence[Any] = (),
) -> tuple[dict[str, Any], list[Output]]:
    """The scores (with chance level) and the outputs; without labels there are no scores.

    A baseline trained on the examples `to_learn` is scored too.
    """
    outputs = predictor.predict(examples, report=report)
    if not is_labelled(examples):
        return {}, outputs
    task = _with_metrics(predictor.task, dataset.task)
    return describe_split(task, outputs, examples, learn_baseline(task, to_learn)), outputs


def score_file(answers: Path, task: str, data: Path, split: str, options: TableOptions) -> dict[str, Any]:
    """Score a file of answers, of any model or person, by a task's labels.

    No rows of a single file are held out, unless its dev split is asked for.
    """
    dataset = read_dataset(task, data, replace(options, dev_share=0.0))
    if split == "dev" and dataset.train and not dataset.dev:
        dataset = read_dataset(task, data, options)
    tell_notes(dataset)
    chosen = choose_examples(dataset, split, data)
    if not is_labelled(chosen.examples):
        raise DataError("no-labels", f"{data}: {chosen.split} has no labels to score by")
    facts = score_answers(dataset, chosen.examples, read_answers(answers), where=str(answers), to_learn=chosen.to_learn)
    return {"split": chosen.split, **facts}


def _with_metrics(models: FinetuneTask, asked: FinetuneTask) -> FinetuneTask:
    """The model's task with the data's metrics added; for the diagnostic set they replace MNLI's.

    Answers are compared by characters where the data's language needs it, whatever the model was trained on.
    """
    if isinstance(models, SpanTask) and isinstance(asked, SpanTask):
        return replace(models, units=asked.units)
    if isinstance(models, Embedding) and isinstance(asked, Embedding):  # vectors can be scored by any form of data
        return replace(models, form=asked.form, metric=asked.metric, low=asked.low, high=asked.high)
    if not (isinstance(models, Classification) and isinstance(asked, Classification)):
        return models
    if asked.name in _ALSO_ASKED.get(models.name, ()):
        return replace(models, metrics=asked.metrics)
    return replace(models, metrics=tuple(dict.fromkeys((*models.metrics, *asked.metrics))))
