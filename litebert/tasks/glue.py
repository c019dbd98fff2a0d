"""The GLUE tasks: where their official files keep texts and labels, and how each is scored.

Also read are files of the same rows in JSON lines or Parquet, as the `datasets` library writes them; labels there may
be numbers, and -1 stands for a label that is not told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.classification import Classification, Regression, balanced_weights
from litebert.tasks.finetuning import Dataset, FinetuneTask
from litebert.tasks.reading import ReadOptions, find_split
from litebert.tasks.tables import Row, Table, read_table
from litebert.tasks.texts import TextExample

NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")
BINARY = ("0", "1")
MAX_RAGGED_SHARE = 0.001  # of a file's lines; more means that the file is not what it seems


@dataclass(frozen=True)
class GlueTask:
    """The facts of one task."""

    folder: str
    texts: tuple[tuple[str, ...], ...]  # of one or two texts, the names their column goes by
    labels: tuple[str, ...]  # in the order of `datasets`; empty: a number between 0 and 5
    metrics: tuple[str, ...] = ("accuracy",)
    label_names: tuple[str, ...] = ("label",)


# What is printed second for MRPC and QQP is averaged with the first by the leaderboard.
GLUE = {
    "cola": GlueTask("CoLA", (("sentence",),), BINARY, ("matthews", "accuracy")),
    "sst-2": GlueTask("SST-2", (("sentence",),), BINARY),
    "mrpc": GlueTask(
        "MRPC",
        (("#1 String", "sentence1"), ("#2 String", "sentence2")),
        BINARY,
        ("accuracy", "f1"),
        ("Quality", "label"),
    ),
    "sts-b": GlueTask("STS-B", (("sentence1",), ("sentence2",)), (), label_names=("score", "label")),
    "qqp": GlueTask("QQP", (("question1",), ("question2",)), BINARY, ("accuracy", "f1"), ("is_duplicate", "label")),
    "mnli": GlueTask(
        "MNLI",
        (("sentence1", "premise"), ("sentence2", "hypothesis")),
        NLI,
        label_names=("gold_label", "label"),
    ),
    "qnli": GlueTask("QNLI", (("question",), ("sentence",)), ENTAILMENT),
    "rte": GlueTask("RTE", (("sentence1",), ("sentence2",)), ENTAILMENT),
    "wnli": GlueTask("WNLI", (("sentence1",), ("sentence2",)), BINARY),
    # the diagnostic set: read by an MNLI model, never trained on
    "ax": GlueTask("AX", (("sentence1", "premise"), ("sentence2", "hypothesis")), NLI, ("matthews", "accuracy")),
}
# our own files, such as samples of a task
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
    "ax": {"train": {}, "dev": {"ax": ("diagnostic-full",)}, "test": {"ax": ("diagnostic", "test")}},
}
_SUFFIXES = (".tsv", ".jsonl", ".parquet")


def build_glue_task(name: str) -> FinetuneTask:
    """The task of a name, without data."""
    facts = GLUE[name]
    if not facts.labels:
        return Regression(name, 0.0, 5.0)
    return Classification(name, facts.labels, facts.metrics)


def glue_reader(name: str) -> Callable[[Path, ReadOptions], Dataset]:
    """What reads the splits of a task that are there, from GLUE's folder or the task's own."""
    return lambda path, options: read_glue(name, path, options)


def read_glue(name: str, path: Path, options: ReadOptions) -> Dataset:
    """The splits of a task that are there, from GLUE's folder or the task's own."""
    folder = _find_folder(name, path)
    notes: list[str] = []
    splits = {split: _read_splits(name, folder, split, notes) for split in ("train", "dev", "test")}
    if name == "mnli" and (folder.parent / "AX").is_dir():
        splits["test"] |= _read_splits("ax", folder.parent / "AX", "test", notes)
    if not any(splits.values()):
        raise DataError(f"{folder}: no train, dev or test file of {GLUE[name].folder} in it")
    train = splits["train"].get("train", [])
    task = build_glue_task(name)
    if options.is_balanced and isinstance(task, Classification):
        task = Classification(task.name, task.labels, task.metrics, balanced_weights(train, task.labels))
    return Dataset(task, train, splits["dev"], splits["test"], tuple(notes))


def _find_folder(name: str, path: Path) -> Path:
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; give GLUE's own, or {GLUE[name].folder}'s")
    inside = path / GLUE[name].folder
    return inside if inside.is_dir() else path


def _read_splits(name: str, folder: Path, split: str, notes: list[str]) -> dict[str, list[TextExample]]:
    examples: dict[str, list[TextExample]] = {}
    for key, file in _find_files(name, folder, split).items():
        table = read_table(file, has_header=_has_header(name, file), skips_ragged=True)
        _check_ragged(table)
        if table.ragged:
            notes.append(f"{len(table.ragged)} ragged lines were left out ({', '.join(table.ragged[:3])}, ...)")
        examples[key] = _read_examples(name, table, is_test=split == "test")
    return examples


def _find_files(name: str, folder: Path, split: str) -> dict[str, Path]:
    if name not in _FILES:
        file = find_split(folder, split, _SUFFIXES)
        return {split: file} if file else {}
    candidates = {
        key: [folder / f"{stem}{suffix}" for stem in stems for suffix in _SUFFIXES]
        for key, stems in _FILES[name][split].items()
    }
    found = {key: next((file for file in files if file.is_file()), None) for key, files in candidates.items()}
    return {key: file for key, file in found.items() if file is not None}


def _has_header(name: str, file: Path) -> bool:
    return not (name == "cola" and file.suffix == ".tsv" and file.stem != "test")


def _check_ragged(table: Table) -> None:
    if len(table.ragged) > max(1, MAX_RAGGED_SHARE * len(table.rows)):
        raise DataError(
            f"{table.ragged[0]} and {len(table.ragged) - 1} more lines have not {len(table.columns)} cells: "
            f"is the file what its name says?"
        )


def _read_examples(name: str, table: Table, *, is_test: bool) -> list[TextExample]:
    facts = GLUE[name]
    if name == "cola" and table.columns == ("1", "2", "3", "4"):
        text_columns, label_column = ["4"], "2"
    else:
        text_columns = [_find_column(table, names) for names in _text_names(facts, table)]
        label_column = "" if is_test else _find_column(table, facts.label_names)
    id_column = next((column for column in ("index", "id", "idx") if column in table.columns), "")
    examples = []
    for number, row in enumerate(table.rows):
        texts = [str(row.cells[column]) for column in text_columns]  # a few of QQP's are really empty
        label = None if is_test else _read_label(facts, row, label_column)
        row_id = str(row.cells[id_column]) if id_column else str(number)
        examples.append(TextExample(row_id, texts[0], texts[1] if len(texts) > 1 else None, label, row.where))
    return examples


def _text_names(facts: GlueTask, table: Table) -> Sequence[tuple[str, ...]]:
    is_official = any(name in table.columns for name in facts.texts[0])
    return facts.texts if is_official else _PLAIN_TEXTS[: len(facts.texts)]


def _find_column(table: Table, names: tuple[str, ...]) -> str:
    for name in names:
        if name in table.columns:
            return name
    raise DataError(f"{table.path}: no column '{names[0]}'; it has {', '.join(table.columns)}")


def _read_label(facts: GlueTask, row: Row, column: str) -> Any:
    value = row.cells.get(column)
    if value is None or value == -1:
        raise DataError(f"{row.where}: the label is not told; is this a test split?")
    if not facts.labels:
        try:
            return float(value)
        except ValueError:
            raise DataError(f"{row.where}: '{value}' is not a number") from None
    if isinstance(value, int) and value < len(facts.labels):
        return facts.labels[value]
    if str(value) not in facts.labels:
        raise DataError(f"{row.where}: label '{value}' is not one of {', '.join(facts.labels)}; is this a test split?")
    return str(value)
