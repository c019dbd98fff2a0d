"""A user's own files: columns and labels are found, shown, and checked row by row.

A folder with train, dev and test files, or a training file with --dev and --test; without a dev file a share of the
training rows is held out, always the same ones.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.classification import Classification, MultiLabel, Regression, balanced_weights
from litebert.tasks.finetuning import Dataset
from litebert.tasks.reading import ReadOptions, find_split
from litebert.tasks.tables import Row, Table, cell_text, read_table, read_text
from litebert.tasks.texts import TextExample
from litebert.tasks.token_tags import OUTSIDE, TaggedWords, TokenTags

# the names under which a column is looked for where none is given, the likeliest first
TEXT = ("text", "sentence", "text_a", "sentence1", "premise", "question1", "question", "review", "content", "query")
TEXT_B = ("text_b", "sentence2", "hypothesis", "question2", "answer")
LABEL = ("label", "labels", "class", "category", "score", "target", "gold_label", "is_duplicate", "tags")
WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "labels", "pos_tags")
MAX_LABELS = 500  # more distinct labels than this are no labels
SEPARATORS = ("|", ";", ",")  # between the labels of one cell

Example = TypeVar("Example", TextExample, TaggedWords)


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where text and label are."""

    text: str
    text_b: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"text": self.text, "second text": self.text_b, "label": self.label}
        return ", ".join(f"{name} = '{column}'" for name, column in parts.items() if column is not None)


def read_classes(path: Path, options: ReadOptions) -> Dataset:
    """One label for each row."""
    splits, notes = read_splits(path, options, _label_word)
    labels = options.labels or _discover_labels([example.label for example in splits["train"]], path)
    counts = Counter(example.label for example in splits["train"])
    notes.append("labels: " + ", ".join(f"{label} ({counts[label]:,})" for label in labels[:20]))
    _check_known(splits, labels, lambda example: [example.label])
    weights = balanced_weights(splits["train"], labels) if options.is_balanced else ()
    names = ("accuracy", "f1") if labels == ("0", "1") else ("accuracy", "macro_f1")
    return _build_dataset(Classification("classification", labels, names, weights), splits, notes)


def read_numbers(path: Path, options: ReadOptions) -> Dataset:
    """A number for each row."""
    splits, notes = read_splits(path, options, _label_number)
    values = [example.label for example in splits["train"]]
    if min(values) == max(values):
        raise DataError(f"{path}: every number is {values[0]:g}: there is nothing to learn")
    center, scale = float(np.mean(values)), float(np.std(values))
    notes.append(f"numbers between {min(values):g} and {max(values):g}, mean {center:.4g}, deviation {scale:.4g}")
    return _build_dataset(Regression("regression", center=center, scale=scale), splits, notes)


def read_multi_labels(path: Path, options: ReadOptions) -> Dataset:
    """Any number of labels for each row: a list in JSON, or one cell with | ; or , between them."""
    splits, notes = read_splits(path, options, _label_set)
    counts = Counter(label for example in splits["train"] for label in example.label)
    labels = options.labels or _discover_labels(list(counts), path)
    notes.append("labels: " + ", ".join(f"{label} ({counts[label]:,})" for label in labels[:20]))
    _check_known(splits, labels, lambda example: example.label)
    return _build_dataset(MultiLabel("multi-label", labels), splits, notes)


def read_tags(path: Path, options: ReadOptions) -> Dataset:
    """A tag for each word: CoNLL columns (word first, tag last, a blank line between sentences) or JSON lines."""
    files = _find_files(path, options)
    splits: dict[str, list[TaggedWords]] = {
        split: read_tagged(file, options, has_tags=split != "test") for split, file in files.items()
    }
    notes: list[str] = []
    _hold_out(splits, options, notes)
    counts = Counter(tag for example in splits["train"] for tag in example.label or ())
    labels = options.labels or _discover_labels(list(counts), path)
    labels = tuple(sorted(labels, key=lambda tag: tag != OUTSIDE))  # O first, the others as they were
    notes.append("tags: " + ", ".join(f"{tag} ({counts[tag]:,})" for tag in labels[:20]))
    _check_known(splits, labels, lambda example: example.label or ())
    return _build_dataset(TokenTags("tags", labels), splits, notes)


def read_splits(
    path: Path, options: ReadOptions, read_label: Callable[[Row, str], Any]
) -> tuple[dict[str, list[TextExample]], list[str]]:
    """The rows of each split, and what was guessed on the way."""
    files = _find_files(path, options)
    splits: dict[str, list[TextExample]] = {}
    notes: list[str] = []
    for split, file in files.items():
        table = read_table(file, encoding=options.encoding, has_header=_has_header(options))
        columns = find_columns(table, options, needs_label=split != "test")
        if not notes and not (options.text and options.label):
            notes.append(f"columns of {file.name}: {columns}")
        splits[split] = read_rows(table, columns, read_label)
    _hold_out(splits, options, notes)
    return splits, notes


def read_rows(
    table: Table, columns: Columns, read_label: Callable[[Row, str], Any] = lambda *_: None
) -> list[TextExample]:
    """An example for each row; without a label column its label is None."""
    return [
        TextExample(
            id=str(row.cells.get("id", number)),
            text=cell_text(row, columns.text),
            text_b=None if columns.text_b is None else cell_text(row, columns.text_b),
            label=None if columns.label is None else read_label(row, columns.label),
            where=row.where,
        )
        for number, row in enumerate(table.rows)
    ]


def find_columns(table: Table, options: ReadOptions, *, needs_label: bool) -> Columns:
    """The columns as they were named, or as they are usually called."""
    text = _find_column(table, options.text, TEXT, "--text")
    text_b = _find_column(table, options.text_b, TEXT_B, "--text-b")
    label = _find_column(table, options.label, LABEL, "--label") if needs_label else None
    others = [column for column in table.columns if column not in (text, text_b, label, "id")]
    if text is None and len(others) == 1:
        text = others.pop()
    if needs_label and label is None and len(others) == 1:
        label = others.pop()
    has = f"it has {', '.join(table.columns)}"
    if text is None:
        raise DataError(f"{table.path}: which column is the text? {has}; name it: --text {table.columns[0]}")
    if needs_label and label is None:
        raise DataError(f"{table.path}: which column is the label? {has}; name it: --label {table.columns[-1]}")
    return Columns(text, text_b, label)


def read_tagged(file: Path, options: ReadOptions, *, has_tags: bool = True) -> list[TaggedWords]:
    """The sentences of a file."""
    if file.suffix in (".jsonl", ".json", ".parquet"):
        return [_tagged_row(row, number, has_tags) for number, row in enumerate(read_table(file).rows)]
    sentences: list[TaggedWords] = []
    words: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*read_text(file, options.encoding).split("\n"), ""], start=1):
        cells = line.split()
        if cells and cells[0] != "-DOCSTART-":
            if has_tags and len(cells) < 2:
                raise DataError(f"{file}:{number}: a word without a tag; write the tag behind it")
            words.append((number, cells))
        elif words:
            tags = tuple(cells[-1] for _, cells in words) if has_tags else None
            where = f"{file}:{words[0][0]}"
            sentences.append(TaggedWords(str(len(sentences)), tuple(cells[0] for _, cells in words), tags, where))
            words = []
    if not sentences:
        raise DataError(f"{file}: there is no sentence in it")
    return sentences


def _tagged_row(row: Row, number: int, has_tags: bool) -> TaggedWords:
    words = next((row.cells[name] for name in WORDS if name in row.cells), None)
    tags = next((row.cells[name] for name in TAGS if name in row.cells), None) if has_tags else None
    if not isinstance(words, list) or not words:
        raise DataError(f"{row.where}: no list of words called {' or '.join(WORDS)}")
    if has_tags and not (isinstance(tags, list) and len(tags) == len(words)):
        raise DataError(f"{row.where}: {len(words)} words, and not as many tags in a list called {', '.join(TAGS)}")
    return TaggedWords(
        str(row.cells.get("id", number)),
        tuple(map(str, words)),
        tuple(map(str, tags)) if tags is not None else None,
        row.where,
    )


def _find_files(path: Path, options: ReadOptions) -> dict[str, Path]:
    if path.is_dir():
        suffixes = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet", ".conll", ".bio")
        found = {split: find_split(path, split, suffixes) for split in ("train", "dev", "test")}
        if found["train"] is None:
            raise DataError(f"{path}: no train.csv, train.tsv, train.jsonl or the like in it; name the training file")
    else:
        found = {"train": path, "dev": None, "test": None}
    found |= {split: file for split, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    return {split: file for split, file in found.items() if file is not None}


def _has_header(options: ReadOptions) -> bool:
    """A column named by its number means that the file has no names."""
    named = [column for column in (options.text, options.text_b, options.label) if column is not None]
    return not (named and all(column.isdecimal() for column in named))


def _find_column(table: Table, wanted: str | None, usual: Sequence[str], flag: str) -> str | None:
    if wanted is not None:
        if wanted not in table.columns:
            raise DataError(f"{table.path}: no column '{wanted}' ({flag}); it has {', '.join(table.columns)}")
        return wanted
    by_lower_case = {column.lower(): column for column in reversed(table.columns)}
    return next((by_lower_case[name] for name in usual if name in by_lower_case), None)


def _label_word(row: Row, column: str) -> str:
    return cell_text(row, column).strip()


def _label_number(row: Row, column: str) -> float:
    text = cell_text(row, column)
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{row.where}: '{text}' in '{column}' is not a number") from None
    if not np.isfinite(value):
        raise DataError(f"{row.where}: '{text}' in '{column}' is not a finite number")
    return value


def _label_set(row: Row, column: str) -> tuple[str, ...]:
    value = row.cells.get(column)
    if isinstance(value, list):
        return tuple(str(label).strip() for label in value)
    text = "" if value is None else str(value)  # no label at all is an answer too
    separator = next((mark for mark in SEPARATORS if mark in text), SEPARATORS[0])
    return tuple(label.strip() for label in text.split(separator) if label.strip())


def _discover_labels(found: Sequence[str], path: Path) -> tuple[str, ...]:
    """The distinct labels in order: of numbers, or of the alphabet."""
    labels = set(found)
    if len(labels) < 2:
        raise DataError(f"{path}: {'one label only' if labels else 'no label'} in the training rows")
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"{path}: {len(labels):,} different labels; is this the label's column? (numbers: --task regression)"
        )
    are_numbers = all(label.lstrip("-").isdecimal() for label in labels)
    return tuple(sorted(labels, key=int) if are_numbers else sorted(labels))


def _check_known(
    splits: Mapping[str, Sequence[Example]], labels: Sequence[str], labels_of: Callable[[Example], Sequence[str]]
) -> None:
    for split in ("train", "dev"):
        for example in splits.get(split, ()):
            unknown = [label for label in labels_of(example) if label not in labels]
            if unknown:
                shown = ", ".join(labels[:20])
                raise DataError(f"{example.where}: label '{unknown[0]}' is not one of those to learn: {shown}")


def _hold_out(splits: dict[str, list[Example]], options: ReadOptions, notes: list[str]) -> None:
    """Without a dev split, take a share of the training rows, spread evenly over a shuffle that is always the same."""
    if "dev" in splits or not options.dev_share:
        return
    if not 0 < options.dev_share < 1:
        raise ConfigError(f"--dev-share {options.dev_share}: a share lies between 0 and 1")
    rows = splits["train"]
    num_held = max(1, round(len(rows) * options.dev_share))
    if num_held >= len(rows):
        raise DataError(f"{rows[0].where}: {len(rows)} rows are too few to hold some out; give --dev")
    order = np.random.default_rng(0).permutation(len(rows))
    held = {int(number) for number in order[:num_held]}
    splits["dev"] = [row for number, row in enumerate(rows) if number in held]
    splits["train"] = [row for number, row in enumerate(rows) if number not in held]
    notes.append(f"no dev file: {num_held:,} of {len(rows):,} training rows are held out")


def _build_dataset(task: Any, splits: Mapping[str, Sequence[Any]], notes: Sequence[str]) -> Dataset:
    return Dataset(
        task,
        splits["train"],
        {"dev": splits["dev"]} if "dev" in splits else {},
        {"test": splits["test"]} if "test" in splits else {},
        tuple(notes),
    )
