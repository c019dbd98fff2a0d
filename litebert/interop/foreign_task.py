"""The task of a fine-tuned model from elsewhere, as far as its config.json and its heads reveal it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litebert.core.files import read_json
from litebert.interop.own_files import checked_file
from litebert.interop.source import Source
from litebert.interop.tokenizer_files import CONFIG_FILE
from litebert.model.config import HeadSpec
from litebert.tasks.catalog import restore_task, task_facts
from litebert.tasks.finetuning import FinetuneTask
from litebert.tasks.kinds.choices import Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask

OUR_KEY = "litebert"  # the key in config.json for facts that only litebert reads
MIN_LENGTH = 8  # a maximum length below this leaves no room for a text
# config.json has no standard keys for all of their facts: bounds, thresholds, how texts are cut into words
KEPT_KINDS = ("regression", "spans", "tags")


def read_foreign_task(source: Source) -> dict[str, Any] | None:
    """The task facts in the format of our checkpoints; None if the source has no task head."""
    kept = source.stated.get(OUR_KEY)
    if isinstance(kept, dict) and isinstance(kept.get("task"), dict):
        facts: dict[str, Any] = kept["task"]
        known = restore_task(facts, where=f"config.json: {OUR_KEY}")
        if facts["kind"] in KEPT_KINDS and set(known.heads) <= set(source.heads) and _has_labels(known, source):
            return facts
    task = next((task for spec in source.heads if (task := _build_task(spec, source.stated))), None)
    if task is None:
        return None
    longest = source.config.max_positions
    return task_facts(task, max_length=min(_read_max_length(source.tokenizer_path) or longest, longest))


def _read_max_length(tokenizer: Path | None) -> int | None:
    """Where a tokenizer's files say that texts are cut; None if they do not."""
    if tokenizer is None:
        return None
    folder = tokenizer if tokenizer.is_dir() else tokenizer.parent
    if not (folder / CONFIG_FILE).is_file():
        return None
    length = read_json(checked_file(folder, CONFIG_FILE)).get("model_max_length")
    return length if isinstance(length, int) and not isinstance(length, bool) and length >= MIN_LENGTH else None


def _has_labels(task: FinetuneTask, source: Source) -> bool:
    """Whether the labels of a task, if it has any, are those that config.json gives."""
    labels = getattr(task, "labels", None)
    return labels is None or labels == _labels(task.heads[0], source.stated)


def _build_task(spec: HeadSpec, stated: Mapping[str, Any]) -> FinetuneTask | None:
    match spec.kind:
        case "classification" if spec.num_labels == 1:
            return Regression("regression")
        case "classification" if stated.get("problem_type") == "multi_label_classification":
            return MultiLabel("multi-label", _labels(spec, stated))
        case "classification":
            return Classification("classification", _labels(spec, stated))
        case "tokens":
            return TokenTags("tags", _labels(spec, stated))
        case "span":
            return SpanTask("squad-v1")
        case "conditional_span":
            return SpanTask("squad-v2", "2.0", "conditional_span")
        case "choice":
            return Choices("choice")
        case _:
            return None


def _labels(spec: HeadSpec, stated: Mapping[str, Any]) -> tuple[str, ...]:
    """The label names by number; made unique if names repeat, LABEL_0, LABEL_1, ... if the model gives none."""
    named = stated.get("id2label")
    numbers = [str(number) for number in range(spec.num_labels)]
    if isinstance(named, dict) and set(map(str, named)) == set(numbers):
        by_number = {str(number): str(label) for number, label in named.items()}
        if len(set(by_number.values())) < len(numbers):  # answers are keyed by name, and one of the two would be lost
            return tuple(f"{by_number[number]} ({number})" for number in numbers)
        return tuple(by_number[number] for number in numbers)
    return tuple(f"LABEL_{number}" for number in numbers)
