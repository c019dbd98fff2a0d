"""A user's own files: columns and labels are found, shown, and checked row by row.

A folder with train, dev and test files, or a training file with --dev and --test; without a dev file a share of the
training rows is held out, always the same ones. Labels of a test file are scored if all of them are known.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from litebert.core.errors import DataError
from litebert.tasks.choices import ChoiceExample
from litebert.tasks.classification import Classification, MultiLabel, Regression, balanced_weights
from litebert.tasks.columns import TAGGED_WORDS, TEXTS, Columns, Usual, find_columns, has_header, reuse_columns
from litebert.tasks.finetuning import Dataset
from litebert.tasks.reading import TableOptions, find_files, find_split
from litebert.tasks.tables import SUFFIXES, Row, Table, cell_text, is_blank, name_labels, read_table, tells_label
from litebert.tasks.tagged_files import is_table, read_conll, read_tagged_rows
from litebert.tasks.texts import TextExample
from litebert.tasks.token_tags import OUTSIDE, TaggedWords, TokenTags

MAX_LABELS = 500  # more distinct labels than this are no labels
MAX_TOLD = 20
SEPARATORS = ("|", ";", ",")  # between the labels of one cell

Example = TypeVar("Example", TextExample, TaggedWords)
AnyExample = TypeVar("AnyExample", TextExample, TaggedWords, ChoiceExample)


def read_classes(path: Path, options: TableOptions) -> Dataset:
    """One label for each row."""
    splits, notes = read_splits(path, options, _label_word)
    labels = options.labels or _discover_labels([example.label for example in splits["train"]], path)
    _settle_labels(splits, labels, options, notes)
    _hold_out(splits, options, notes)
    notes += _tell("labels", labels, [example.label for example in splits["train"]], options)
    weights = balanced_weights(splits["train"], labels) if options.is_balanced else ()
    names = ("accuracy", "f1") if labels == ("0", "1") else ("accuracy", "macro_f1")
    task = Classification("classification", labels, names, weights, num_texts=_count_texts(splits))
    return Dataset.of(task, splits, notes)


def read_numbers(path: Path, options: TableOptions) -> Dataset:
    """A number for each row."""
    splits, notes = read_splits(path, options, _label_number)
    _hold_out(splits, options, notes)
    for examples in splits.values():
        _check_spread([example for example in examples if example.label is not None])
    task = Regression("regression", num_texts=_count_texts(splits))
    learned = [example.label for example in splits["train"]] if options.is_learned else []
    if learned:
        task = dataclasses.replace(task, center=float(np.mean(learned)), scale=float(np.std(learned)))
        between = f"between {min(learned):g} and {max(learned):g}"
        notes.append(f"numbers {between}, mean {task.center:.4g}, deviation {task.scale:.4g}")
    for examples in splits.values():
        values = {example.label for example in examples}
        if len(values) == 1 and None not in values:
            same = f"{examples[0].where}: every number from here on is {values.pop():g}"
            if learned and examples is splits["train"]:
                raise DataError(f"{same}: there is nothing to learn; is this the number's column?")
            notes.append(f"{same}: no correlation with it can be told, which counts as 0")
    return Dataset.of(task, splits, notes)


def read_multi_labels(path: Path, options: TableOptions) -> Dataset:
    """Any number of labels for each row: a list in JSON, or one cell with | ; or , between them."""
    splits, notes = read_splits(path, options, _label_cell, is_blank_told=True)
    cells = [example.label for examples in splits.values() for example in examples]
    # one mark for all files: a label may have a comma in it where another mark separates
    joined = [cell for cell in cells if isinstance(cell, str) and cell.strip() not in options.labels]
    mark = next((mark for mark in SEPARATORS if any(mark in cell for cell in joined)), "")
    splits = {
        split: [dataclasses.replace(example, label=_split_labels(example.label, mark)) for example in examples]
        for split, examples in splits.items()
    }
    if mark:
        notes.append(f"labels of one cell are separated by '{mark}'")
    found = {label for example in splits["train"] for label in example.label}
    labels = options.labels or _discover_labels(list(found), path)
    _settle_labels(splits, labels, options, notes)
    _hold_out(splits, options, notes)
    notes += _tell("labels", labels, [label for example in splits["train"] for label in example.label], options)
    return Dataset.of(MultiLabel("multi-label", labels, num_texts=_count_texts(splits)), splits, notes)


def read_tags(path: Path, options: TableOptions) -> Dataset:
    """A tag for each word."""
    splits: dict[str, list[TaggedWords]] = {"train": []}
    notes: list[str] = []
    first: Columns | None = None
    for split, file in _find_files(path, options).items():
        needs_tags = split != "test"
        if not is_table(file):
            splits[split] = read_conll(file, options, needs_tags=needs_tags, notes=notes)
            continue
        table = name_labels(read_table(file, encoding=options.encoding))
        columns = _settle_columns(table, options, first, notes, needs_label=needs_tags, usual=TAGGED_WORDS)
        first = first or columns
        splits[split] = read_tagged_rows(table, columns, needs_tags=needs_tags)
    found = {tag for example in splits["train"] for tag in example.label or ()}
    labels = options.labels or _discover_labels(list(found), path)
    labels = tuple(sorted(labels, key=lambda tag: tag != OUTSIDE))  # O first, the others as they were
    _settle_labels(splits, labels, options, notes)
    _hold_out(splits, options, notes)
    notes += _tell("tags", labels, [tag for example in splits["train"] for tag in example.label or ()], options)
    return Dataset.of(TokenTags("tags", labels), splits, notes)


def read_splits(
    path: Path, options: TableOptions, read_label: Callable[[Row, str], Any], *, is_blank_told: bool = False
) -> tuple[dict[str, list[TextExample]], list[str]]:
    """The rows of each split, and what was guessed on the way.

    Where a blank does not tell that there are no labels, a test file with one is answered, and not scored.
    """
    splits: dict[str, list[TextExample]] = {"train": []}  # it may be missing where data is read to be scored
    notes: list[str] = []
    first: Columns | None = None
    for split, file in _find_files(path, options).items():
        table = name_labels(read_table(file, encoding=options.encoding, has_header=has_header(options)))
        needs_label = split != "test"
        columns = _settle_columns(table, options, first, notes, needs_label=needs_label)
        first = first or columns
        may_be_blank = not needs_label and not is_blank_told
        rows = read_rows(table, columns, _unless_blank(read_label) if may_be_blank else read_label)
        splits[split] = forget_partial(rows, notes) if may_be_blank else rows
    return splits, notes


def _settle_columns(
    table: Table,
    options: TableOptions,
    first: Columns | None,
    notes: list[str],
    *,
    needs_label: bool,
    usual: Usual = TEXTS,
) -> Columns:
    """The columns of a split's table, those of the first one wherever they can be; what was chosen anew is told."""
    said = reuse_columns(first, table, options, needs_label=needs_label) if first else options
    columns = find_columns(table, said, needs_label=needs_label, usual=usual)
    if not needs_label and not _is_labelled(table, columns.label):
        columns = dataclasses.replace(columns, label=None)
    if columns != first:
        notes.append(f"columns of {table.path.name}: {columns}{'' if columns.label else '; no label'}")
    return columns


def read_rows(
    table: Table, columns: Columns, read_label: Callable[[Row, str], Any] = lambda *_: None
) -> list[TextExample]:
    """An example for each row; without a label column its label is None."""
    return [
        TextExample(
            id=row.identity(number),
            text=cell_text(row, columns.text),
            text_b=None if columns.text_b is None else cell_text(row, columns.text_b),
            label=None if columns.label is None else read_label(row, columns.label),
            where=row.where,
        )
        for number, row in enumerate(table.rows)
    ]


def _find_files(path: Path, options: TableOptions) -> dict[str, Path]:
    find = partial(find_split, suffixes=(*SUFFIXES, ".conll", ".bio"))
    return find_files(path, options, find, usual="train.csv, train.tsv, train.jsonl")


def _is_labelled(table: Table, column: str | None) -> bool:
    """Whether a test file tells the label of any row."""
    return column is not None and any(tells_label(row, column) for row in table.rows)


def _count_texts(splits: Mapping[str, Sequence[TextExample]]) -> int:
    first = next(rows for rows in splits.values() if rows)  # of training, or where there are none of the next split
    return 1 if first[0].text_b is None else 2


def _tell(word: str, labels: Sequence[str], found: Sequence[str], options: TableOptions) -> list[str]:
    """The labels to learn and how often each was found, for a person to check; a finished model has its own."""
    if not options.is_learned:
        return []
    counts = Counter(found)
    more = f", and {len(labels) - MAX_TOLD} more" if len(labels) > MAX_TOLD else ""
    return [f"{word}: " + ", ".join(f"{label} ({counts[label]:,})" for label in labels[:MAX_TOLD]) + more]


def _unless_blank(read_label: Callable[[Row, str], Any]) -> Callable[[Row, str], Any]:
    return lambda row, column: None if is_blank(row, column) else read_label(row, column)


def _label_word(row: Row, column: str) -> str:
    return cell_text(row, column).strip()


def _label_number(row: Row, column: str) -> float:
    text = cell_text(row, column)
    try:
        value = float(text)
    except ValueError:
        has_comma = text.count(",") == 1 and text.replace(",", "").strip().lstrip("+-").isdecimal()
        remedy = f"write {text.replace(',', '.').strip()}" if has_comma else "write it like 2.5, or remove the row"
        raise DataError(f"{row.where}: '{text}' in '{column}' is not a number; {remedy}") from None
    if not np.isfinite(value):
        raise DataError(f"{row.where}: '{text}' in '{column}' is not a finite number; mend it, or remove the row")
    return value


def _check_spread(examples: Sequence[TextExample]) -> None:
    """Refuse numbers whose deviation is beyond what floats can say: neither a scale nor a score comes of them."""
    if not examples:
        return
    numbers = np.array([example.label for example in examples], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.std(numbers)
    if 0 < deviation < np.inf or (deviation == 0 and not np.ptp(numbers)):
        return
    worst = examples[int(np.abs(numbers).argmax())]
    what, remedy = ("differs too little from the others", "multiply") if deviation == 0 else ("is too large", "divide")
    raise DataError(
        f"{worst.where}: {worst.label:g} {what} to be computed with; {remedy} all numbers by the same power of ten, "
        f"or mend it"
    )


def _label_cell(row: Row, column: str) -> list[str] | str:
    value = row.cells.get(column)
    if isinstance(value, list):
        if None in value:
            raise DataError(f"{row.where}: a label of '{column}' is null; write [] for none, or leave the null out")
        return [str(label).strip() for label in value]
    return "" if value is None else str(value)  # no label at all is an answer too


def _split_labels(cell: list[str] | str | None, mark: str) -> tuple[str, ...] | None:
    if cell is None:
        return None
    parts = cell if isinstance(cell, list) else cell.split(mark) if mark else [cell]
    return tuple(label.strip() for label in parts if label.strip())


def _discover_labels(found: Sequence[str], path: Path) -> tuple[str, ...]:
    """The distinct labels in order: of numbers, or of the alphabet."""
    labels = set(found)
    if len(labels) < 2:
        shown = f"every training row has the label '{labels.pop()}'" if labels else "no training row has a label"
        raise DataError(f"{path}: {shown}: there is nothing to learn")
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"{path}: {len(labels):,} different labels; is this the label's column? (numbers: --task regression)"
        )
    are_numbers = all(label.removeprefix("-").isdecimal() for label in labels)
    return tuple(sorted(labels, key=lambda label: (int(label) if are_numbers else 0, label)))


def _settle_labels(
    splits: dict[str, list[Example]], labels: Sequence[str], options: TableOptions, notes: list[str]
) -> None:
    """Refuse labels that are not those of training; a test split that has such is answered, and not scored."""
    whose, remedy = (
        ("of the training rows", "mend it, or give training rows with this label")
        if options.is_learned
        else ("that the model knows", "mend it, or leave the row out")
    )
    for split, examples in splits.items():
        known = [example for example in examples if example.label is not None]
        unknown = [(one, label) for one in known for label in _list_labels(one) if label not in labels]
        if unknown and split != "test":
            what = f"label '{unknown[0][1]}' is not one of those {whose}: {', '.join(labels[:MAX_TOLD])}"
            raise DataError(f"{unknown[0][0].where}: {what}; {remedy}")
        if unknown:
            splits[split] = _forget_labels(examples, f"'{unknown[0][1]}' is not one of those {whose}", notes)
        else:
            splits[split] = forget_partial(examples, notes)


def forget_partial(examples: list[AnyExample], notes: list[str]) -> list[AnyExample]:
    """The examples of a test split; without any labels where some are missing, for a part of them is no score."""
    missing = [example for example in examples if example.label is None]
    if not missing or len(missing) == len(examples):
        return examples
    return _forget_labels(examples, f"{missing[0].where} has none", notes)


def _forget_labels(examples: list[AnyExample], reason: str, notes: list[str]) -> list[AnyExample]:
    notes.append(f"the test file's labels are not used ({reason}): it is answered, and not scored")
    return [dataclasses.replace(example, label=None) for example in examples]


def _list_labels(example: TextExample | TaggedWords) -> Sequence[str]:
    return [example.label] if isinstance(example.label, str) else example.label or ()


def _hold_out(splits: dict[str, list[Example]], options: TableOptions, notes: list[str]) -> None:
    """Without a dev split, take a share of the training rows, spread evenly over a shuffle that is always the same."""
    if "dev" in splits or not options.dev_share:
        return
    rows = splits["train"]
    num_held = max(1, round(len(rows) * options.dev_share))
    if num_held >= len(rows):
        raise DataError(f"{rows[0].where}: {len(rows)} rows are too few to hold some out; give --dev")
    order = np.random.default_rng(0).permutation(len(rows))
    held = {int(number) for number in order[:num_held]}
    splits["dev"] = [row for number, row in enumerate(rows) if number in held]
    splits["train"] = [row for number, row in enumerate(rows) if number not in held]
    notes.append(f"no dev file: {num_held:,} of {len(rows):,} training rows are held out")
