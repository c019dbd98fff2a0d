"""A fine-tuned model's scores on examples that it may not have seen."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.infer.predictor import Predictor
from litebert.tasks.catalog import read_dataset
from litebert.tasks.columnar import is_columnar
from litebert.tasks.finetuning import Dataset, FinetuneTask, Output
from litebert.tasks.reading import TableOptions
from litebert.tasks.report import describe_split, is_labelled

# data that a model may be asked, though it was never trained on them: GLUE's diagnostic set, and one's own files
_ALSO_ASKED = {"mnli": ("ax",), "squad-v2": ("squad-v2-simple",), "squad-v2-simple": ("squad-v2",)}
_OWN_FILES = ("classification", "regression", "multi-label", "tags", "choice")


def read_for(predictor: Predictor, name: str, path: Path, options: TableOptions) -> Dataset:
    """A task's data, if it is this model's task; labels are the model's own."""
    dataset = read_dataset(name, path, without_learning(predictor.task, options))
    check_task(predictor.task, dataset.task, predictor.checkpoint.path)
    return dataset


def without_learning(task: FinetuneTask, options: TableOptions) -> TableOptions:
    """Options to read what a finished model is asked: its labels are settled, and no row is held out."""
    return replace(options, labels=tuple(getattr(task, "labels", ())), dev_share=0.0, is_learned=False)


def check_task(models: FinetuneTask, asked: FinetuneTask, path: Path) -> None:
    """Refuse data of another task than the model's; a user's own files of its kind are none."""
    fitting = (models.name, *_OWN_FILES, *_ALSO_ASKED.get(models.name, ()))
    if type(models) is not type(asked) or asked.name not in fitting:
        raise ConfigError(
            f"{path} answers {models.name} ({type(models).__name__}), not {asked.name} ({type(asked).__name__}): "
            f"say --task {models.name}, or take another model"
        )


def choose_examples(dataset: Dataset, split: str, path: Path) -> Sequence[Any]:
    """The examples of a split, the first of dev without a name; of a file, all there are."""
    splits = {"train": dataset.train, **dataset.test, **dataset.dev}  # the diagnostic set is both, labelled in dev
    if path.is_file() or is_columnar(path):
        if split:
            raise ConfigError(
                f"--split {split}: {path} is a file, all of which is read; leave --split out, or name a folder"
            )
        return dataset.train
    split = split or next(iter({**dataset.dev, **dataset.test}), "dev")
    if split not in splits or not splits[split]:
        has = ", ".join(name for name, examples in splits.items() if examples)
        raise DataError(f"{path} has no split '{split}', but {has}: say --split")
    return splits[split]


def evaluate(
    predictor: Predictor, dataset: Dataset, examples: Sequence[Any], report: Callable[[int], None] = lambda _: None
) -> tuple[dict[str, Any], list[Output]]:
    """The scores, beside chance, and the outputs they come from; without labels no scores."""
    outputs = predictor.predict(examples, report=report)
    if not is_labelled(examples):
        return {}, outputs
    return describe_split(_with_metrics(predictor.task, dataset.task), outputs, examples), outputs


def _with_metrics(models: FinetuneTask, asked: FinetuneTask) -> FinetuneTask:
    """The model's task, scored as the data's is: the diagnostic set has another metric than MNLI."""
    if any(field.name == "metrics" for field in fields(asked)):  # type: ignore[arg-type]
        changed: FinetuneTask = replace(models, metrics=asked.metrics)  # type: ignore[type-var, attr-defined]
        return changed
    return models
