"""By which score the model for a user's own files is chosen: never one that prefers not to see a rare label."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.texts import TextExample


def read_rows(folder: Path, num_rare: int, task: str = "classification", **options: Any) -> Any:
    labels: dict[str, Callable[[int], Any]] = {
        "classification": lambda n: "yes" if n < num_rare else "no",
        "regression": float,
        "multi-label": lambda n: [str(n % 2)],
    }
    rows = [{"text": f"text {n}", "label": labels[task](n)} for n in range(100)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_dataset(task, folder / "rows.jsonl", TableOptions(**options))


@pytest.mark.parametrize(("num_rare", "metric"), [(3, "macro_f1"), (20, "macro_f1"), (40, "accuracy")])
def test_with_a_rare_label_macro_f1_chooses_the_model(num_rare: int, metric: str, tmp_path: Path) -> None:
    dataset = read_rows(tmp_path, num_rare)
    assert dataset.task.metric == metric
    assert {"accuracy", "macro_f1"} == set(dataset.task.metrics)
    assert any("chosen by macro-F1" in note for note in dataset.notes) == (metric == "macro_f1")


@pytest.mark.parametrize(
    ("num_rare", "options", "is_balanced"),
    [
        (3, {}, True),
        (3, {"is_balanced": False}, False),
        (3, {"metric": "accuracy"}, False),
        (40, {}, False),
        (40, {"metric": "macro-f1"}, True),
        (40, {"is_balanced": True}, True),
        (3, {"is_learned": False, "labels": ("no", "yes")}, False),
    ],
)
def test_the_loss_weighs_labels_as_the_metric_does(
    num_rare: int, options: dict[str, Any], is_balanced: bool, tmp_path: Path
) -> None:
    dataset = read_rows(tmp_path, num_rare, **options)
    assert bool(dataset.task.class_weights) == is_balanced
    told = "the loss weighs all labels equally, as macro-F1 does" in dataset.notes
    assert told == (is_balanced and "is_balanced" not in options)


@pytest.mark.parametrize(
    ("options", "metrics"),
    [
        ({"metric": "accuracy"}, ("accuracy", "macro_f1")),
        ({"metric": "mcc"}, ("matthews", "accuracy", "macro_f1")),
        ({"metric": "macro-f1"}, ("macro_f1", "accuracy")),
        ({"metric": "f1", "positive": "yes"}, ("f1", "accuracy")),
        ({"positive": "yes"}, ("f1", "accuracy")),
        ({"metric": "accuracy", "positive": "yes"}, ("accuracy", "f1")),
    ],
)
def test_the_metric_that_is_named_comes_first(
    options: dict[str, str], metrics: tuple[str, ...], tmp_path: Path
) -> None:
    task = read_rows(tmp_path, 3, **options).task
    assert task.metrics == metrics
    assert task.positive == options.get("positive", "")


@pytest.mark.parametrize(("task", "metric"), [("regression", "spearman"), ("multi-label", "exact_match")])
def test_numbers_and_sets_of_labels_have_a_choice_too(task: str, metric: str, tmp_path: Path) -> None:
    chosen = read_rows(tmp_path, 3, task, metric=metric.replace("_", "-")).task
    assert chosen.metric == metric
    example = TextExample("1", "text", label=1.0 if task == "regression" else ("1",))
    assert metric in chosen.score([1.0] if task == "regression" else [[0.0, 1.0]], [example])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"metric": "bleu"}, "unknown-metric"),
        ({"metric": "f1"}, "missing-option"),
        ({"positive": "maybe"}, "unknown-label"),
    ],
)
def test_a_metric_that_cannot_choose_is_refused(options: dict[str, str], code: str, tmp_path: Path) -> None:
    with refuses(ConfigError, code):
        read_rows(tmp_path, 3, **options)


def test_f1_is_of_the_positive_label_and_chance_is_the_best_constant_answer() -> None:
    examples = [TextExample(str(n), "text", label="no" if n else "yes") for n in range(10)]
    task = Classification("classification", ("no", "yes"), ("f1", "macro_f1"), positive="yes")
    outputs = np.array([[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 8).tolist()  # one of two right
    assert task.score(outputs, examples)["f1"] == pytest.approx(2 / 3)
    assert task.chance(examples).score == pytest.approx(2 / 11)  # always yes: one of ten is right
