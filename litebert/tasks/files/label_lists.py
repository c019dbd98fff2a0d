"""Several labels per row: a list, one cell with separators or with a printed list, or one 0/1 column per label."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.columns import ROW_NUMBERS
from litebert.tasks.files.list_cells import is_list_text, parse_list
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import Row, Table
from litebert.tasks.texts import TextExample

MARKS = ("|", ";", ",")  # between the labels of one cell
ONE_HOT = "labels"  # the column that replaces the 0/1 columns


def read_label_cell(row: Row, column: str) -> list[str] | str:
    """The labels of a list, or a cell still to be split; no labels at all is valid."""
    value = row.cells.get(column)
    labels = parse_list(value)
    if labels is None:
        return "" if value is None else str(value)
    for label in labels:
        if label is None or isinstance(label, list | dict):
            shown = "null" if label is None else "a nested list or object"
            raise DataError(
                "bad-label",
                f"{row.where}: a label of '{column}' is {shown}; write [] for no labels, or remove the entry",
            )
    return [str(label).strip() for label in labels]


def split_label_cells(
    splits: Mapping[str, Sequence[TextExample]], known: Sequence[str], notes: list[str]
) -> dict[str, list[TextExample]]:
    """The examples with a tuple of labels each. All files use the same separator: if another one separates labels, a
    label may contain a comma."""
    cells = [example.label for examples in splits.values() for example in examples]
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    in_brackets = bool(texts) and all(map(is_list_text, texts))  # [red, blue], without quotation marks
    joined = [text for text in texts if text.strip() not in known]
    mark = next((mark for mark in MARKS if any(mark in text for text in joined)), "")
    if mark:
        notes.append(f"labels within a cell are separated by '{mark}'")

    def split(cell: list[str] | str | None) -> tuple[str, ...] | None:
        if cell is None:
            return None
        if isinstance(cell, str):
            inner = cell.strip()[1:-1] if in_brackets and cell.strip() else cell
            cell = inner.split(mark) if mark else [inner]
        return tuple(label.strip() for label in cell if label.strip())

    return {
        name: [dataclasses.replace(example, label=split(example.label)) for example in examples]
        for name, examples in splits.items()
    }


def find_one_hot(table: Table, options: TableOptions, usual: Sequence[str]) -> tuple[str, ...]:
    """The columns that are one label each: those named in a comma-separated list, else all 0/1 columns.

    Empty if a single column holds the labels.
    """
    if options.label is not None:
        named = tuple(name.strip() for name in options.label.split(","))
        if options.label in table.columns:
            _check_not_one(table, [options.label], usual, options)
        return named if len(named) > 1 and options.label not in table.columns else ()
    if options.labels and set(options.labels) <= set(table.columns):
        return options.labels
    named_texts = (options.text, options.text_b)
    others = [name for name in table.columns if name not in named_texts and name.lower() not in ROW_NUMBERS]
    binary = tuple(name for name in others if _is_binary(table, name))
    has_label_column = any(name.lower() in usual for name in others if name not in binary)
    if len(others) <= 2:  # a text, and what can only be the label
        _check_not_one(table, binary, usual, options)
    return binary if len(binary) > 1 and not has_label_column else ()


def _check_not_one(table: Table, columns: Sequence[str], usual: Sequence[str], options: TableOptions) -> None:
    """Raise if the only label column has 0 and 1 under the name of one label, which would become two labels."""
    if options.labels or len(columns) != 1 or columns[0].lower() in usual or not _is_binary(table, columns[0]):
        return
    raise DataError(
        "bad-label",
        f"{table.path}: '{columns[0]}' has only 0 and 1; for one label use the task classification, for several name "
        f"all of their columns",
        option="label",
    )


def fold_one_hot(table: Table, columns: Sequence[str], *, needs_label: bool) -> Table:
    """The table with a list of labels instead of one column per label; a test file may lack all of these columns."""
    missing = [name for name in columns if name not in table.columns]
    if len(missing) == len(columns) and not needs_label:
        return table
    if missing:
        raise DataError(
            "unknown-column",
            f"{table.path}: no column for the label '{missing[0]}'; it has {', '.join(table.columns)}",
        )
    rows = [_fold_row(row, columns, needs_label) for row in table.rows]
    kept = tuple(name for name in table.columns if name not in (*columns, ONE_HOT))
    return dataclasses.replace(table, columns=(*kept, ONE_HOT), rows=rows)


def _fold_row(row: Row, columns: Sequence[str], needs_label: bool) -> Row:
    marks = {name: _read_mark(row.cells.get(name)) for name in columns}
    wrong = next((name for name, mark in marks.items() if mark is None), None)
    if wrong is not None and needs_label:
        raise DataError("bad-label", f"{row.where}: '{row.cells.get(wrong)}' in '{wrong}' is neither 0 nor 1")
    labels = None if wrong is not None else [name for name, mark in marks.items() if mark]
    kept = {name: value for name, value in row.cells.items() if name not in columns}
    return dataclasses.replace(row, cells={**kept, ONE_HOT: labels})


def _is_binary(table: Table, column: str) -> bool:
    return all(_read_mark(row.cells.get(column)) is not None for row in table.rows)


def _read_mark(value: Any) -> bool | None:
    """A 0/1 cell as bool; None for anything else."""
    text = str(value).strip().lower()
    return {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}.get(text)
