"""Finds the text, second text and label columns of a user's table, as named by the user or else by their usual
names, which are then reported. The other splits must have the same columns as the training file."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from litebert.core.errors import DataError
from litebert.core.ranges import read_whole_number
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import Table, name_labels, read_table


class Usual(NamedTuple):
    """The usual names of columns, the likeliest first, tried if none are given."""

    text: tuple[str, ...]
    text_b: tuple[str, ...]
    label: tuple[str, ...]


TEXTS = Usual(
    ("text", "sentence", "text_a", "sentence1", "premise", "question1", "question", "review", "content", "query"),
    ("text_b", "sentence2", "hypothesis", "question2", "answer"),
    ("label", "labels", "class", "category", "score", "target", "gold_label", "is_duplicate", "tags"),
)
TAGGED_WORDS = Usual(
    ("tokens", "words", "sentence", "text"), (), ("tags", "ner_tags", "labels", "tag", "word_labels", "pos_tags", "pos")
)
ROW_NUMBERS = ("id", "idx", "index", "", "unnamed: 0")  # usual names of ids, and of pandas' index: never guessed
OFTEN_LABEL = "answer"  # if no other column is the label, this one is, and not a second text
_BY_NUMBER = "by name, or by number (from 1) if the file has no header"


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of texts and label."""

    ROLES: ClassVar = ("text", "second text", "label")

    text: str
    text_b: str | None
    label: str | None

    @property
    def parts(self) -> tuple[str | None, ...]:
        return self.text, self.text_b, self.label

    def __str__(self) -> str:
        parts = zip(self.ROLES, self.parts, strict=True)
        return ", ".join(f"{role} = '{column}'" for role, column in parts if column is not None)


def find_columns(table: Table, options: TableOptions, *, needs_label: bool, usual: Usual = TEXTS) -> Columns:
    """The columns as named by the user, or by their usual names; a label that is not required may be missing.

    No column has two roles. A second text is guessed only if the text is guessed too: naming only the text means
    single texts.
    """
    _check_is_rows(table)
    named = _check_named(table, options, needs_label=needs_label)
    free = [column for column in table.columns if column not in named.values()]
    text = named.get("text") or guess_column(free, usual.text)
    label = named.get("label") or (guess_column(free, usual.label) if options.label is None else None)
    text_b = named.get("text_b") or (guess_column(free, usual.text_b) if options.text is None else None)
    if "text_b" not in named and text_b and text_b.lower() == OFTEN_LABEL and needs_label and label is None:
        text_b = None
    others = [name for name in table.columns if name not in (text, text_b, label) and name.lower() not in ROW_NUMBERS]
    if text is None and len(others) == 1:
        text = others.pop()
    if needs_label and label is None and len(others) == 1:
        label = others.pop()
    has = ", ".join(table.columns)
    if text is None:
        raise DataError(
            "ambiguous-column",
            f"{table.path}: cannot tell which column is the text (it has {has}); name it {_BY_NUMBER}",
            option="text",
        )
    if needs_label and label is None:
        raise DataError(
            "ambiguous-column",
            f"{table.path}: cannot tell which column is the label (it has {has}); name it {_BY_NUMBER}",
            option="label",
        )
    return Columns(text, text_b, label)


def match_columns(found: Columns, trained: Table, table: Table, *, needs_label: bool) -> Columns:
    """The training columns in another split's table: by name, or by number if one of the two has no names.

    A label that is not required may be missing; a text may not, and no other column replaces it.
    """
    if trained.has_header and table.has_header:
        places = {column.lower(): column for column in reversed(table.columns)}
        same = [
            None if column is None else column if column in table.columns else places.get(column.lower())
            for column in found.parts
        ]
    else:
        _check_width(trained, table, found)
        numbers = [None if column is None else trained.columns.index(column) for column in found.parts]
        same = [table.columns[n] if n is not None and n < len(table.columns) else None for n in numbers]
    for role, column, other in zip(Columns.ROLES, found.parts, same, strict=True):
        if column is not None and other is None and (role != "label" or needs_label):
            raise DataError(
                "columns-mismatch",
                f"{table.path}: no column '{column}', the {role} of {trained.path.name}; "
                f"it has {', '.join(table.columns)}; use the same column names in both files",
            )
    text, text_b, label = same
    assert text is not None
    return Columns(text, text_b, label)


def _check_width(trained: Table, table: Table, found: Columns) -> None:
    """Raise if a table without names has a different number of columns, unless only the last, the label, is missing."""
    expected, has = len(trained.columns), len(table.columns)
    lacks_label = has == expected - 1 and found.label == trained.columns[-1]
    if has != expected and not lacks_label:
        raise DataError(
            "columns-mismatch",
            f"{table.path}: {has} columns, but {trained.path.name} has {expected}, and at least one has no header; "
            f"add a header to both files, or use the same columns",
        )


def read_named_table(file: Path, options: TableOptions, known: Sequence[str] = ()) -> Table:
    """Read a user's table. If all columns are given by number, the first row may still be a header, and is then not
    read as data; a row of `known` names, those of the training file, is always a header."""
    said = [column for column in (options.text, options.text_b, options.label) if column is not None]
    by_number = bool(said) and all(column.isdecimal() for column in said)
    is_told = options.has_header is not None
    has_header = options.has_header is True or not (by_number or is_told)
    table = name_labels(read_table(file, encoding=options.encoding, has_header=has_header))
    if not table.has_header and not is_told and _begins_with_names(table, said, options.label, known):
        table = read_table(file, encoding=options.encoding)
        note = f"{file.name}: the first row is used as the header: {', '.join(table.columns)}"
        table = dataclasses.replace(table, notes=(*table.notes, note))
    return table


def _begins_with_names(table: Table, said: Sequence[str], label: str | None, known: Sequence[str]) -> bool:
    """Whether the first row of a table without names is a header.

    Either a usual column name occurs in the first row of a named column and nowhere else in it; or every other cell of
    a column is a number; or the label of this row is the only one that is not repeated; or every cell is a known name.
    """
    first, *others = (row.cells for row in table.rows)
    if {cell.strip().lower() for cell in first.values()} <= {name.lower() for name in known}:
        return True
    usual = {name for names in TEXTS for name in names}
    for column, cell in first.items():
        values = [row[column].strip() for row in others]
        if column in said and cell.strip().lower() in usual and cell.strip() not in values:
            return True
        if len(values) > 1 and not _is_number(cell) and all(map(_is_number, values)):
            return True
    if label not in first:
        return False
    counts = Counter(row[label].strip() for row in others)
    return len(counts) > 1 and min(counts.values()) > 1 and first[label].strip() not in counts


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_group(table: Table, options: TableOptions, *, is_needed: bool) -> None:
    """Raise if a training file lacks the `group` column."""
    if options.group is not None and is_needed and options.group not in table.columns:
        raise DataError(
            "unknown-column",
            f"{table.path}: no column '{options.group}' to group by; it has {', '.join(table.columns)}",
            option="group",
        )


def _check_is_rows(table: Table) -> None:
    """Raise if the only row is an object that contains all rows, such as {"data": [...]}, or whole columns."""
    cells = table.rows[0].cells.values() if len(table.rows) == 1 else ()
    if cells and all(_holds_objects(value) for value in cells):
        raise DataError(
            "bad-layout",
            f"{table.path}: one JSON object ({', '.join(table.columns)}) instead of rows; write one object per line, "
            f"or a list of objects",
        )


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict | list))


def _check_named(table: Table, options: TableOptions, *, needs_label: bool) -> dict[str, str]:
    """The columns named by the user, by option; a label that is not required may be missing."""
    said = {"text": options.text, "text_b": options.text_b, "label": options.label}
    named: dict[str, str] = {}
    for option, said_column in said.items():
        column = _resolve_number(said_column, table)
        if column is None or (option == "label" and not needs_label and column not in table.columns):
            continue
        if column not in table.columns:
            raise DataError(
                "unknown-column",
                f"{table.path}: no column '{column}'; it has {', '.join(table.columns)}",
                option=option,
            )
        twice = next((other for other, taken in named.items() if taken == column), None)
        if twice:
            raise DataError(
                "repeated-value",
                f"{table.path}: '{column}' is named as both {twice} and {option}; name another column for one of them",
                option=option,
            )
        named[option] = column
    return named


def _resolve_number(said: str | None, table: Table) -> str | None:
    """The name of a column given by number, counted from 1."""
    if said is None or said in table.columns:
        return said
    number = read_whole_number(said) or 0
    return table.columns[number - 1] if 0 < number <= len(table.columns) else said


def guess_column(free: Sequence[str], usual: Sequence[str]) -> str | None:
    """The column with the likeliest of the usual names, ignoring case."""
    by_lower_case = {column.lower(): column for column in reversed(free)}
    return next((by_lower_case[name] for name in usual if name in by_lower_case), None)
