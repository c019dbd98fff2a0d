"""The GLUE tasks: the layout of their official files, and their scores.

The formats of the `datasets` library are also supported: JSON lines, Parquet, or a `save_to_disk` folder.
Their labels may be numbers, and -1 is a missing label.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.columnar import find_columnar
from litebert.tasks.files.reading import TableOptions, find_split
from litebert.tasks.files.tables import Row, Table, read_table
from litebert.tasks.finetuning import Dataset, FinetuneTask
from litebert.tasks.kinds.classification import Classification, Regression, balanced_weights
from litebert.tasks.texts import TextExample

NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")
BINARY = ("0", "1")
MAX_RAGGED_SHARE = 0.001  # of a file's lines; a larger share means that it is the wrong file


@dataclass(frozen=True)
class GlueTask:
    """The facts of one task."""

    folders: tuple[str, ...]  # GLUE's own name, and that of `datasets`
    texts: tuple[tuple[str, ...], ...]  # the possible column names of each text
    labels: tuple[str, ...]  # in the order of `datasets`; empty: a number between 0 and 5
    metrics: tuple[str, ...] = ("accuracy",)
    label_names: tuple[str, ...] = ("label",)


# For MRPC and QQP the leaderboard averages both metrics.
GLUE = {
    "cola": GlueTask(("CoLA", "cola"), (("sentence",),), BINARY, ("matthews", "accuracy")),
    "sst-2": GlueTask(("SST-2", "sst2"), (("sentence",),), BINARY),
    "mrpc": GlueTask(
        ("MRPC", "mrpc"),
        (("#1 String", "sentence1"), ("#2 String", "sentence2")),
        BINARY,
        ("accuracy", "f1"),
        ("Quality", "label"),
    ),
    "sts-b": GlueTask(("STS-B", "stsb"), (("sentence1",), ("sentence2",)), (), label_names=("score", "label")),
    "qqp": GlueTask(
        ("QQP", "qqp"), (("question1",), ("question2",)), BINARY, ("accuracy", "f1"), ("is_duplicate", "label")
    ),
    "mnli": GlueTask(
        ("MNLI", "mnli"),
        (("sentence1", "premise"), ("sentence2", "hypothesis")),
        NLI,
        label_names=("gold_label", "label"),
    ),
    "qnli": GlueTask(("QNLI", "qnli"), (("question",), ("sentence",)), ENTAILMENT),
    "rte": GlueTask(("RTE", "rte"), (("sentence1",), ("sentence2",)), ENTAILMENT),
    "wnli": GlueTask(("WNLI", "wnli"), (("sentence1",), ("sentence2",)), BINARY),
    # the diagnostic set: predicted by an MNLI model, never trained on
    "ax": GlueTask(
        ("AX", "diagnostic", "ax"),
        (("sentence1", "premise"), ("sentence2", "hypothesis")),
        NLI,
        ("matthews", "accuracy"),
    ),
}
# column names in other files, such as samples of a task
_PLAIN_TEXTS = (("text_a", "text"), ("text_b",))
_FILES: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    "mnli": {
        "train": {"train": ("train",)},
        "dev": {
            "dev_matched": ("dev_matched", "validation_matched", "dev"),
            "dev_mismatched": ("dev_mismatched", "validation_mismatched"),
        },
        "test": {"test_matched": ("test_matched", "test"), "test_mismatched": ("test_mismatched",)},
    },
    "ax": {"train": {}, "dev": {"ax": ("diagnostic-full",)}, "test": {"ax": ("diagnostic", "AX", "test")}},
}
_SUFFIXES = (".tsv", ".jsonl", ".parquet")


def build_glue_task(name: str, class_weights: tuple[float, ...] = ()) -> FinetuneTask:
    """The task with a name, without data."""
    facts = GLUE[name]
    if not facts.labels:
        return Regression(name, 0.0, 5.0, num_texts=len(facts.texts))
    return Classification(name, facts.labels, facts.metrics, class_weights, len(facts.texts))


def glue_reader(name: str) -> Callable[[Path, TableOptions], Dataset]:
    """The reader of a task's available splits, from GLUE's folder or the task's own."""
    return lambda path, options: read_glue(name, path, options)


def read_glue(name: str, path: Path, options: TableOptions) -> Dataset:
    """Read a task's available splits from GLUE's folder or the task's own."""
    folder = _find_folder(name, path)
    notes: list[str] = []
    read = partial(_read_splits, options=options, notes=notes)
    splits = {split: read(name, folder, split) for split in ("train", "dev", "test")}
    diagnostic = _find_inside("ax", folder.parent)
    if name == "mnli" and diagnostic:
        splits["test"] |= read("ax", diagnostic, "test")
    if not any(splits.values()):
        raise DataError("missing-file", f"{folder}: contains no train, dev or test file of {GLUE[name].folders[0]}")
    train = splits["train"].get("train", [])
    weights = balanced_weights(train, GLUE[name].labels) if options.is_balanced else ()
    return Dataset(build_glue_task(name, weights), train, splits["dev"], splits["test"], tuple(notes))


def _find_folder(name: str, path: Path) -> Path:
    if not path.is_dir():
        raise DataError("missing-folder", f"{path}: no such folder; give GLUE's folder or {GLUE[name].folders[0]}'s")
    return _find_inside(name, path) or path


def _find_inside(name: str, path: Path) -> Path | None:
    return next((path / folder for folder in GLUE[name].folders if (path / folder).is_dir()), None)


def _read_splits(
    name: str, folder: Path, split: str, *, options: TableOptions, notes: list[str]
) -> dict[str, list[TextExample]]:
    examples: dict[str, list[TextExample]] = {}
    for key, file in _find_files(name, folder, split).items():
        # skipping a test row would shift all answers after it
        skips_ragged = split != "test"
        has_header = not (name == "cola" and file.suffix == ".tsv" and file.stem != "test")
        table = read_table(
            file, encoding=options.encoding, has_header=has_header, skips_ragged=skips_ragged, may_be_quoted=False
        )
        _check_ragged(table)
        if table.ragged:
            notes.append(f"{len(table.ragged)} ragged lines were skipped ({', '.join(table.ragged[:3])}, ...)")
        examples[key] = _read_examples(name, table, is_test=split == "test")
    return examples


def _find_files(name: str, folder: Path, split: str) -> dict[str, Path]:
    if name not in _FILES:
        file = find_split(folder, split, _SUFFIXES)
        return {split: file} if file else {}
    found: dict[str, Path] = {}
    for key, stems in _FILES[name][split].items():
        files = [folder / f"{stem}{suffix}" for stem in stems for suffix in _SUFFIXES]
        candidates = [file for file in files if file.is_file()]
        candidates += [path for stem in stems for path in find_columnar(folder, stem)]
        if candidates:
            found[key] = candidates[0]
    return found


def _check_ragged(table: Table) -> None:
    if len(table.ragged) > max(1, MAX_RAGGED_SHARE * len(table.rows)):
        raise DataError(
            "ragged-row",
            f"{table.ragged[0]} and {len(table.ragged) - 1} more lines do not have {len(table.columns)} cells; "
            f"is this the right file?",
        )


def _read_examples(name: str, table: Table, *, is_test: bool) -> list[TextExample]:
    facts = GLUE[name]
    if name == "cola" and table.columns == ("1", "2", "3", "4"):
        text_columns, label_column = ["4"], "2"
    else:
        names = [(*official, *plain) for official, plain in zip(facts.texts, _PLAIN_TEXTS, strict=False)]
        text_columns = [_find_column(table, one, "is this the right file?") for one in names]
        label_column = "" if is_test else _find_column(table, facts.label_names, "is this a test split?")
    id_column = next((column for column in ("index", "id", "idx") if column in table.columns), "")
    examples = []
    for number, row in enumerate(table.rows):
        texts = [_read_text(row, column) for column in text_columns]
        label = None if is_test else _read_label(facts, row, label_column)
        row_id = str(row.cells[id_column]) if id_column else str(number)
        examples.append(TextExample(row_id, texts[0], texts[1] if len(texts) > 1 else None, label, row.where))
    return examples


def _find_column(table: Table, names: tuple[str, ...], doubt: str) -> str:
    by_lower_case = {column.lower(): column for column in reversed(table.columns)}
    for name in names:
        if name.lower() in by_lower_case:
            return by_lower_case[name.lower()]
    raise DataError(
        "unknown-column", f"{table.path}: no column '{names[0]}'; it has {', '.join(table.columns)}; {doubt}"
    )


def _read_text(row: Row, column: str) -> str:
    value = row.cells.get(column)
    if not isinstance(value, str):  # empty is valid: QQP has a few empty texts
        raise DataError("empty-cell", f"{row.where}: '{column}' has no text; fill it or remove the row")
    return value


def _read_label(facts: GlueTask, row: Row, column: str) -> Any:
    value = row.cells.get(column)
    if value is None or value == -1:
        raise DataError("missing-label", f"{row.where}: the label is missing; is this a test split?")
    if not facts.labels:
        return _read_score(value, row.where)
    if isinstance(value, int) and 0 <= value < len(facts.labels):
        return facts.labels[value]
    if str(value) not in facts.labels:
        raise DataError(
            "unknown-label",
            f"{row.where}: label '{value}' is not one of {', '.join(facts.labels)}; is this a test split?",
        )
    return str(value)


def _read_score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not 0 <= score <= 5:
        raise DataError("bad-number", f"{where}: '{value}' is not a number from 0 to 5")
    return score
