"""Reads a user's own files: columns and labels are detected, shown, and checked row by row.

They are a folder with train, dev and test files, or separate files; without a dev file a fixed share of the training
rows is held out. A test file is scored if all of its labels are known.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from litebert.core.errors import ConfigError, DataError
from litebert.core.ranges import read_whole_number
from litebert.tasks.files.character_spans import find_span_columns, lay_out_places, read_character_spans
from litebert.tasks.files.columns import (
    TAGGED_WORDS,
    TEXTS,
    Columns,
    Usual,
    check_group,
    find_columns,
    match_columns,
    read_named_table,
)
from litebert.tasks.files.conll import SUFFIXES as CONLL_SUFFIXES
from litebert.tasks.files.conll import read_conll
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.label_lists import ONE_HOT, find_one_hot, fold_one_hot, read_label_cell, split_label_cells
from litebert.tasks.files.list_cells import parse_list
from litebert.tasks.files.misplaced import Misplaced
from litebert.tasks.files.reading import SPLITS, TableOptions, find_files, find_split
from litebert.tasks.files.slash_tags import is_slash_tagged, read_slash_tags
from litebert.tasks.files.splitting import hold_out, text_of
from litebert.tasks.files.tables import SUFFIXES, Row, Table, cell_text, is_blank, read_text, tells_label
from litebert.tasks.files.tagged_tables import is_table, join_word_rows, read_tagged_rows
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.classification import (
    SCORES,
    Classification,
    MultiLabel,
    Regression,
    balanced_weights,
    choose_metric,
)
from litebert.tasks.kinds.token_tags import OUTSIDE, TaggedWords, TokenTags
from litebert.tasks.texts import TextExample

MAX_TOLD = 20
_ONE_LABEL = {  # why a single label is nothing to learn
    "classification": "every training row has the label '{}', so there is nothing to learn",
    "multi-label": "'{}' is the only label; to predict whether a text has it, use the task classification",
    "tags": "every word has the tag '{}', so there is nothing to learn; is this the right column?",
}
MAX_UNSEEN_SHARE = 0.05  # of a split's tags; a larger share means that the file belongs to another task

Example = TypeVar("Example", TextExample, TaggedWords)
_Trained = tuple[Table, Columns]  # the first split that was read; the others must have its columns
AnyExample = TypeVar("AnyExample", bound=TextExample | TaggedWords | ChoiceExample)


def read_classes(path: Path, options: TableOptions) -> Dataset:
    """Read one label per row."""
    tables = _read_tables(path, options)
    splits, notes = read_splits(tables, options, _label_word)
    labels = options.labels or _discover_labels(
        [example.label for example in splits["train"]], path, options.max_labels
    )
    _check_columns(tables, splits, labels)
    _settle_labels(splits, labels, options, notes)
    _hold_out(splits, options, notes)
    notes += _tell("labels", labels, [example.label for example in splits["train"]], options)
    notes += _doubt_labels(splits["train"], labels) if options.is_learned else []
    names, positive = _choose_scores(splits["train"], labels, options, notes)
    is_balanced = names[0] == "macro_f1" if options.is_balanced is None else options.is_balanced
    weights = balanced_weights(splits["train"], labels) if is_balanced and options.is_learned else ()
    if is_balanced and not options.is_balanced and options.is_learned:
        notes.append("the loss weighs all labels equally, as macro-F1 does")
    task = Classification("classification", labels, names, weights, num_texts=_count_texts(splits), positive=positive)
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def _choose_scores(
    train: Sequence[TextExample], labels: tuple[str, ...], options: TableOptions, notes: list[str]
) -> tuple[tuple[str, ...], str]:
    """The scores, the first of which selects the model, and the positive label of F1."""
    if options.positive is not None and options.positive not in labels:
        told = ", ".join(labels[:MAX_TOLD])
        raise ConfigError(
            "unknown-label", f"unknown positive label '{options.positive}'; the labels are {told}", option="positive"
        )
    usual = ("accuracy", "f1") if labels == ("0", "1") or options.positive else ("accuracy", "macro_f1")
    if not options.is_learned:
        return usual, options.positive or ""
    chosen = _find_metric(options, SCORES) or ("f1" if options.positive else choose_metric(train, labels))
    if chosen == "f1" and "f1" not in usual:
        raise ConfigError(
            "missing-option", "metric f1 needs a positive label; name it, or use macro-f1", option="positive"
        )
    if chosen == "macro_f1" and not options.metric:
        notes.append("some labels are rare, so the best model is chosen by macro-F1, which weighs all labels equally")
    return tuple(dict.fromkeys((chosen, *usual))), options.positive or ""


def _find_metric(options: TableOptions, known: Collection[str]) -> str | None:
    """The requested metric under the name that reports use."""
    if options.metric is None:
        return None
    name = options.metric.lower().replace("-", "_")
    name = {"mcc": "matthews", "macrof1": "macro_f1"}.get(name, name)
    if name not in known:
        names = ", ".join(one.replace("_", "-").replace("matthews", "mcc") for one in known)
        raise ConfigError(
            "unknown-metric", f"unknown metric '{options.metric}' for this task; valid: {names}", option="metric"
        )
    return name


def read_numbers(path: Path, options: TableOptions) -> Dataset:
    """Read a number per row."""
    splits, notes = read_labelled_texts(path, options, read_number)
    for examples in splits.values():
        _check_spread([example for example in examples if example.label is not None])
    metric = _find_metric(options, ("pearson", "spearman")) or "pearson"
    task = Regression("regression", num_texts=_count_texts(splits), metric=metric)
    learned = [example.label for example in splits["train"]] if options.is_learned else []
    if learned:
        task = dataclasses.replace(task, center=float(np.mean(learned)), scale=float(np.std(learned)))
        between = f"between {min(learned):g} and {max(learned):g}"
        notes.append(f"targets {between}, mean {task.center:.4g}, standard deviation {task.scale:.4g}")
    for examples in splits.values():
        values = {example.label for example in examples}
        if len(values) == 1 and None not in values:
            same = f"{examples[0].where}: every target in this split is {values.pop():g}"
            if learned and examples is splits["train"]:
                raise DataError("one-label", f"{same}, so there is nothing to learn; is this the right column?")
            notes.append(f"{same}, so the correlation is undefined and counts as 0")
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def read_multi_labels(path: Path, options: TableOptions) -> Dataset:
    """Read any number of labels per row, from one column or from one 0/1 column per label."""
    tables = _read_tables(path, options)
    one_hot, told_one_hot = find_one_hot(next(iter(tables.values())), options, TEXTS.label), list[str]()
    if one_hot:
        options = dataclasses.replace(options, label=ONE_HOT)
        tables = {split: fold_one_hot(one, one_hot, needs_label=split != "test") for split, one in tables.items()}
        told = ", ".join(one_hot[:MAX_TOLD]) + (", ..." if len(one_hot) > MAX_TOLD else "")
        told_one_hot = [f"{len(one_hot)} columns of 0 and 1 are used as labels: {told}"]
    splits, notes = read_splits(tables, options, read_label_cell, is_blank_told=True)
    notes += told_one_hot
    splits = split_label_cells(splits, options.labels, notes)
    found = {label for example in splits["train"] for label in example.label}
    labels = options.labels or one_hot or _discover_labels(list(found), path, options.max_labels, of="multi-label")
    _check_columns(tables, splits, labels)
    _settle_labels(splits, labels, options, notes)
    _hold_out(splits, options, notes)
    notes += _tell("labels", labels, [label for example in splits["train"] for label in example.label], options)
    metric = _find_metric(options, ("micro_f1", "exact_match")) or "micro_f1"
    task = MultiLabel("multi-label", labels, _count_texts(splits), metric)
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


@dataclass(frozen=True)
class TagFiles:
    """How the files of a published task differ from a user's own."""

    task: TokenTags  # without labels: those of the training rows
    stems: Mapping[str, tuple[str, ...]] | None = None  # of the files of each split
    places: tuple[str, str] | None = None  # the columns of texts and of their spans
    respell: Callable[[TaggedWords], TaggedWords] = lambda sentence: sentence


def read_tags(path: Path, options: TableOptions, form: TagFiles | None = None) -> Dataset:
    """Read a tag per word."""
    form = form or TagFiles(TokenTags("tags", ()))
    splits: dict[str, list[TaggedWords]] = {"train": []}
    notes: list[str] = []
    first: _Trained | None = None
    splits_words = form.task.splits_words
    names: tuple[str, ...] = ()  # the first table's columns
    places = form.places  # the columns of texts and of their spans
    for split, file in _find_files(path, options, form.stems).items():
        needs_tags = split != "test"
        if not is_table(file):
            if options.group is not None:
                raise ConfigError(
                    "unknown-column",
                    f"{file}: its columns have no names, so there is no group column '{options.group}'",
                    option="group",
                )
            splits[split] = _read_tagged_text(file, options, needs_tags=needs_tags, notes=notes)
            continue
        table = lay_out_places(read_named_table(file, options, names), notes)
        names = names or (table.columns if table.has_header else ())
        check_group(table, options, is_needed=split == "train")
        places = find_span_columns(table, options, places, needs_tags=needs_tags)
        if places:
            splits_words, misplaced = splits_words or True, Misplaced(options.on_error)
            notes.append(f"columns of {file.name}: text = '{places[0]}', spans = '{places[1]}'")
            splits[split] = read_character_spans(
                table,
                places,
                misplaced,
                splits_words=splits_words,
                needs_tags=needs_tags,
                notes=notes,
                group=options.group,
            )
            notes += misplaced.tell(file.name)
            continue
        joined = join_word_rows(table, options, needs_tags=needs_tags)
        said = dataclasses.replace(options, text=None, label=None) if joined is not table else options
        columns = _settle_columns(joined, said, first, notes, needs_label=needs_tags, usual=TAGGED_WORDS)
        first = first or (joined, columns)
        splits[split] = read_tagged_rows(joined, columns, needs_tags=needs_tags, group=options.group)
    splits = {split: [form.respell(one) for one in sentences] for split, sentences in splits.items()}
    found = {tag for example in splits["train"] for tag in example.label or ()}
    labels = form.task.labels or options.labels or _discover_labels(list(found), path, options.max_labels, of="tags")
    labels = tuple(sorted(labels, key=lambda tag: tag != OUTSIDE))  # O first
    task = replace(form.task, labels=labels, splits_words=splits_words)
    _settle_tags(splits, task.labels, notes)
    _hold_out(splits, options, notes)
    notes += _tell("tags", task.labels, [tag for example in splits["train"] for tag in example.label or ()], options)
    if options.is_learned:
        notes.append(task.describe_scoring())
    return Dataset.of(task, splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def _read_tagged_text(file: Path, options: TableOptions, *, needs_tags: bool, notes: list[str]) -> list[TaggedWords]:
    """Read lines of word/TAG, or CoNLL columns."""
    text = read_text(file, options.encoding)
    if is_slash_tagged(text):
        notes.append(f"{file.name}: one sentence per line, as word/TAG")
        return read_slash_tags(text, file)
    return read_conll(file, options, needs_tags=needs_tags, notes=notes)


def _settle_tags(splits: dict[str, list[TaggedWords]], labels: Sequence[str], notes: list[str]) -> None:
    """Return a note on tags that do not occur in training: the model cannot predict them, so they count as wrong.

    Raises if there are many: then it is probably the wrong file.
    """
    for split, sentences in splits.items():
        if split == "test":
            splits[split] = sentences = forget_partial(sentences, notes)
        tags = Counter(tag for sentence in sentences for tag in sentence.label or ())
        unseen = {tag: count for tag, count in tags.items() if tag not in labels}
        if not unseen:
            continue
        tag = max(unseen, key=lambda one: unseen[one])
        place = next(sentence.where for sentence in sentences if tag in (sentence.label or ()))
        if sum(unseen.values()) > MAX_UNSEEN_SHARE * tags.total():
            raise DataError(
                "unknown-label",
                f"{place}: tag '{tag}' and {len(unseen) - 1} more do not occur in the training data, which has "
                f"{', '.join(labels[:MAX_TOLD])}; is this the right file and the right column?",
            )
        notes.append(
            f"{split}: {sum(unseen.values()):,} of {tags.total():,} tags do not occur in the training data "
            f"('{tag}', {place}) and count as wrong"
        )


def read_labelled_texts(
    path: Path, options: TableOptions, read_label: Callable[[Row, str], Any]
) -> tuple[dict[str, list[TextExample]], list[str]]:
    """The labelled texts or pairs of each split, with dev held out if it is missing, and notes to show.

    `read_label` is given a row and the name of its label column.
    """
    splits, notes = read_splits(_read_tables(path, options), options, read_label)
    _hold_out(splits, options, notes)
    return splits, notes


def read_splits(
    tables: Mapping[str, Table],
    options: TableOptions,
    read_label: Callable[[Row, str], Any],
    *,
    is_blank_told: bool = False,
) -> tuple[dict[str, list[TextExample]], list[str]]:
    """The rows of each split, and notes on what was guessed.

    A test file with a blank label is predicted but not scored, unless a blank means no labels.
    """
    splits: dict[str, list[TextExample]] = {"train": []}  # stays empty if data is only scored
    notes: list[str] = []
    first: _Trained | None = None
    for split, table in tables.items():
        needs_label = split != "test"
        columns = _settle_columns(table, options, first, notes, needs_label=needs_label)
        first = first or (table, columns)
        may_be_blank = not needs_label and not is_blank_told
        check_group(table, options, is_needed=split == "train")
        rows = read_rows(table, columns, read_label, group=options.group, may_be_blank=may_be_blank)
        splits[split] = forget_partial(rows, notes) if may_be_blank else rows
    return splits, notes


def _settle_columns(
    table: Table,
    options: TableOptions,
    first: _Trained | None,
    notes: list[str],
    *,
    needs_label: bool,
    usual: Usual = TEXTS,
) -> Columns:
    """The columns of a split's table, the same as in the first table if there is one; guesses are noted."""
    if first:
        columns = match_columns(first[1], first[0], table, needs_label=needs_label)
    else:
        columns = find_columns(table, options, needs_label=needs_label, usual=usual)
    notes += table.notes
    is_labelled = columns.label is not None and any(tells_label(row, columns.label) for row in table.rows)
    if not needs_label and not is_labelled:
        columns = dataclasses.replace(columns, label=None)
    if first is None or columns != first[1]:
        notes.append(f"columns of {table.path.name}: {columns}{'' if columns.label else '; no label'}")
    return columns


def read_rows(
    table: Table,
    columns: Columns,
    read_label: Callable[[Row, str], Any] = lambda *_: None,
    *,
    group: str | None = None,
    may_be_blank: bool = False,
) -> list[TextExample]:
    """One example per row; its label is None without a label column, or where it is blank and `may_be_blank`."""
    for column in (columns.text, columns.text_b):
        if column is not None and all(parse_list(row.cells.get(column)) for row in table.rows):
            raise DataError(
                "wrong-input",
                f"{table.rows[0].where}: '{column}' is a list in every row, {str(table.rows[0].cells[column])[:40]}, "
                f"not text; name a column of texts, or join the lists",
            )
    label = columns.label
    return [
        TextExample(
            id=row.identity(number),
            text=cell_text(row, columns.text),
            text_b=None if columns.text_b is None else cell_text(row, columns.text_b),
            label=read_label(row, label) if label and not (may_be_blank and is_blank(row, label)) else None,
            where=row.where,
            group=row.group(group),
        )
        for number, row in enumerate(table.rows)
    ]


def _read_tables(path: Path, options: TableOptions) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for split, file in _find_files(path, options).items():
        first = next(iter(tables.values()), None)
        tables[split] = read_named_table(file, options, first.columns if first and first.has_header else ())
    return tables


def _find_files(
    path: Path, options: TableOptions, stems: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, Path]:
    find = partial(find_split, suffixes=(*SUFFIXES, *CONLL_SUFFIXES), stems=stems or SPLITS)
    return find_files(path, options, find, usual="train.csv, train.tsv, train.jsonl")


def _count_texts(splits: Mapping[str, Sequence[TextExample]]) -> int:
    first = next(rows for rows in splits.values() if rows)  # training, or else the next split that has rows
    return 1 if first[0].text_b is None else 2


def _tell(word: str, labels: Sequence[str], found: Sequence[str], options: TableOptions) -> list[str]:
    """The labels to learn, noted with their counts for the user to check; a finished model has its own labels."""
    if not options.is_learned:
        return []
    counts = Counter(found)
    more = f", and {len(labels) - MAX_TOLD} more" if len(labels) > MAX_TOLD else ""
    return [f"{word}: " + ", ".join(f"{label} ({counts[label]:,})" for label in labels[:MAX_TOLD]) + more]


def _doubt_labels(examples: Sequence[TextExample], labels: Sequence[str]) -> list[str]:
    """Notes on labels that are probably not meant as they are."""
    notes: list[str] = []
    if all(map(_is_decimal, labels)) and not all(float(label).is_integer() for label in labels):
        notes.append(f"the labels are decimals such as {labels[0]}: to predict numbers, use the task regression")
    spellings: dict[str, list[str]] = {}
    for label in labels:
        spellings.setdefault(" ".join(label.casefold().split()), []).append(label)
    alike = next((some for some in spellings.values() if len(some) > 1), None)
    if alike:
        notes.append(f"the labels '{alike[0]}' and '{alike[1]}' differ only in case or spaces, but are two labels")
    labels_of: dict[str, set[str]] = {}
    for example in examples:
        labels_of.setdefault(text_of(example), set()).add(example.label)
    num_conflicts = sum(len(some) > 1 for some in labels_of.values())
    if num_conflicts:
        notes.append(f"{num_conflicts:,} of {len(labels_of):,} different training texts have more than one label")
    return notes


def _is_decimal(label: str) -> bool:
    return label.removeprefix("-").replace(".", "", 1).isdecimal()


def _label_word(row: Row, column: str) -> str:
    if parse_list(row.cells.get(column)) is not None:
        shown = str(row.cells[column])[:40]
        raise DataError(
            "bad-label",
            f"{row.where}: '{column}' is a list, {shown}, but classification takes one label; write it without "
            f"brackets, or use the task multi-label",
        )
    return cell_text(row, column).strip()


def read_number(row: Row, column: str) -> float:
    """The finite number in a cell."""
    text = cell_text(row, column)
    try:
        value = float(text)
    except ValueError:
        has_comma = text.count(",") == 1 and text.replace(",", "").strip().lstrip("+-").isdecimal()
        remedy = f"write {text.replace(',', '.').strip()}" if has_comma else "write it like 2.5 or remove the row"
        raise DataError("bad-number", f"{row.where}: '{text}' in '{column}' is not a number; {remedy}") from None
    if not np.isfinite(value):
        raise DataError(
            "bad-number", f"{row.where}: '{text}' in '{column}' is not a finite number; fix it or remove the row"
        )
    return value


def _check_spread(examples: Sequence[TextExample]) -> None:
    """Raise if the standard deviation overflows or underflows, because then no scale or score can be computed."""
    if not examples:
        return
    numbers = np.array([example.label for example in examples], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.std(numbers)
    if 0 < deviation < np.inf or (deviation == 0 and not np.ptp(numbers)):
        return
    worst = examples[int(np.abs(numbers).argmax())]
    what, remedy = ("is too close to the other targets", "multiply") if deviation == 0 else ("is too large", "divide")
    raise DataError(
        "value-overflow",
        f"{worst.where}: {worst.label:g} {what} to compute with; {remedy} all targets by the same power of ten, "
        f"or fix it",
    )


def _discover_labels(
    found: Sequence[str], path: Path, max_labels: int, *, of: str = "classification"
) -> tuple[str, ...]:
    """The distinct labels, in numerical order if all are numbers, else alphabetically."""
    labels = set(found)
    if not labels:
        raise DataError("one-label", f"{path}: no training row has a label, so there is nothing to learn")
    if len(labels) == 1:
        raise DataError("one-label", f"{path}: {_ONE_LABEL[of].format(*labels)}")
    if len(labels) > max_labels:
        raise DataError(
            "too-many-labels",
            f"{path}: {len(labels):,} different labels, more than max_labels = {max_labels:,}; is this the label "
            f"column? For numeric targets use the task regression, otherwise raise max_labels",
            option="max_labels",
        )
    are_numbers = all(read_whole_number(label.removeprefix("-")) is not None for label in labels)
    return tuple(sorted(labels, key=lambda label: (int(label) if are_numbers else 0, label)))


def _check_columns(
    tables: Mapping[str, Table], splits: Mapping[str, Sequence[TextExample]], labels: Sequence[str]
) -> None:
    """Raise if a test file's columns were found by number and none of its labels is known: they are another column."""
    if "test" not in tables or all(table.has_header for table in tables.values()):
        return
    found = [label for example in splits["test"] for label in _list_labels(example)]
    if found and not set(found) & set(labels):
        raise DataError(
            "columns-mismatch",
            f"{tables['test'].path}: none of its labels, such as '{found[0][:40]}', is in the training data; use the "
            f"same columns in both files, or leave the column of labels out",
        )


def _settle_labels(
    splits: dict[str, list[Example]], labels: Sequence[str], options: TableOptions, notes: list[str]
) -> None:
    """Raise on labels that training lacks, except in a test split, which is then predicted but not scored."""
    whose, remedy = (
        ("in the training rows", "fix it, or add training rows with this label")
        if options.is_learned
        else ("of the model", "fix it or remove the row")
    )
    for split, examples in splits.items():
        known = [example for example in examples if example.label is not None]
        unknown = [(one, label) for one in known for label in _list_labels(one) if label not in labels]
        if unknown and split != "test":
            what = f"label '{unknown[0][1]}' is not one of the labels {whose}: {', '.join(labels[:MAX_TOLD])}"
            raise DataError("unknown-label", f"{unknown[0][0].where}: {what}; {remedy}")
        if unknown:
            splits[split] = _forget_labels(examples, f"'{unknown[0][1]}' is not one of the labels {whose}", notes)
        else:
            splits[split] = forget_partial(examples, notes)


def forget_partial(examples: list[AnyExample], notes: list[str]) -> list[AnyExample]:
    """The examples of a test split, all unlabelled if any label is missing: scoring only some would mislead."""
    missing = [example for example in examples if example.label is None]
    if not missing or len(missing) == len(examples):
        return examples
    return _forget_labels(examples, f"{missing[0].where} has no label", notes)


def _forget_labels(examples: list[AnyExample], reason: str, notes: list[str]) -> list[AnyExample]:
    notes.append(f"the test file is predicted but not scored: its labels are unusable ({reason})")
    return [dataclasses.replace(example, label=None) for example in examples]


def _list_labels(example: TextExample | TaggedWords) -> Sequence[str]:
    if isinstance(example.label, str):
        return [example.label]
    return example.label if isinstance(example.label, tuple) else ()  # regression has no label list


def _hold_out(splits: dict[str, list[Example]], options: TableOptions, notes: list[str]) -> None:
    """If there is no dev split, hold out a share of the training rows; those of one text or group stay together."""
    if "dev" in splits or not options.dev_share:
        return
    rows = splits["train"]
    splits["train"], splits["dev"] = hold_out(rows, options.dev_share, labels_of=_list_labels)
    how = f", grouped by '{options.group}'" if options.group else ""
    notes.append(f"no dev file: {len(splits['dev']):,} of {len(rows):,} training rows are held out for dev{how}")
    missing = {label for row in rows for label in _list_labels(row)}
    missing -= {label for row in splits["dev"] for label in _list_labels(row)}
    if missing:
        told = ", ".join(sorted(missing)[:MAX_TOLD])
        notes.append(f"no held-out row has the label {told}, so its accuracy cannot be measured")
