"""Writes tables in memory (columns, rows, pandas, `datasets`) to files, so that one reader is enough."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError, LitebertError

SPLITS = frozenset(("train", "dev", "valid", "validation", "test"))


@contextmanager
def tables_as_files(**tables: Any) -> Iterator[dict[str, Path]]:
    """The path of each table that is not None, valid inside the block; tables that are paths are returned unchanged.

    Errors inside the block name the table and its row, because the user does not know the file.
    """
    with tempfile.TemporaryDirectory(prefix="litebert-table-") as name:
        folder = Path(name).resolve()
        given = {key: value for key, value in tables.items() if value is not None}
        files = {key: _find_file(key, value, folder) for key, value in given.items()}
        try:
            yield files
        except LitebertError as error:
            if str(folder) not in error.message:
                raise
            message = error.message.replace(f"{folder}/", "").replace(".jsonl:", ", row ").replace(".jsonl", "")
            raise type(error)(error.code, message, option=error.option) from None


def _find_file(name: str, table: Any, folder: Path) -> Path:
    if isinstance(table, str | os.PathLike):
        return Path(table)
    if isinstance(table, Mapping) and table and SPLITS.issuperset(table):
        (folder / name).mkdir()
        for split, part in table.items():
            _write_rows(list_rows(part, f"{name}[{split!r}]"), folder / name / f"{split}.jsonl")
        return folder / name
    _write_rows(list_rows(table, name), folder / f"{name}.jsonl")
    return folder / f"{name}.jsonl"


def list_rows(table: Any, name: str) -> list[dict[str, Any]]:
    """The rows of a table of any kind; numbered labels of `datasets` become names."""
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas
        return [dict(row) for row in table.to_dict("records")]
    if hasattr(table, "features") and hasattr(table, "column_names"):  # datasets
        names = {key: kind.names for key, kind in table.features.items() if hasattr(kind, "names")}
        return [
            {key: names[key][value] if key in names and value >= 0 else value for key, value in row.items()}
            for row in table
        ]
    if isinstance(table, Mapping):
        columns = {str(key): list(values) for key, values in table.items() if not isinstance(values, str)}
        lengths = {key: len(values) for key, values in columns.items()}
        if len(lengths) < len(table) or not lengths:
            raise DataError("no-table", f"{name}: expected a mapping of column names to lists")
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key} {length:,}" for key, length in lengths.items())
            raise DataError("ragged-table", f"{name}: columns have different lengths: {shown}")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(table, Sequence) and not isinstance(table, bytes) and all(isinstance(row, Mapping) for row in table):
        return [dict(row) for row in table]
    raise DataError(
        "no-table",
        f"{name} is {table!r:.60}; expected a path, a mapping of column names to lists, a list of rows, or a DataFrame",
    )


def _write_rows(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    if not rows:
        raise DataError("no-rows", f"{file.stem} has no rows")
    with file.open("w", encoding="utf-8") as stream:
        for row in rows:
            cells = {key: None if _is_missing(value) else value for key, value in row.items()}
            stream.write(json.dumps(cells, default=_to_plain) + "\n")


def _is_missing(value: Any) -> bool:
    """Whether a cell is one of pandas' missing values: NaN, NaT or NA."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _to_plain(value: Any) -> Any:
    """Convert numbers and lists of numpy, pandas and torch to Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
