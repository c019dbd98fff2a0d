"""Rows of a user's file with the line of each: CSV, TSV, JSON lines and Parquet, read strictly.

CSV has its quotes (RFC 4180); in TSV a quotation mark is a letter like any other, as in GLUE's files. A slip is named
with file and line.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
_OTHER_ENCODINGS = ("gb18030", "cp1252")  # what files that are not UTF-8 usually are
_MAX_CELL = 10_000_000


@dataclass(frozen=True)
class Row:
    """The cells of one row by column, and where it stands."""

    cells: dict[str, Any]
    where: str  # file:line


@dataclass(frozen=True)
class Table:
    """A file's rows. `ragged` are the places of rows that had not as many cells as there are columns."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    ragged: tuple[str, ...] = ()


def read_table(path: Path, *, encoding: str = "utf-8", has_header: bool = True, skips_ragged: bool = False) -> Table:
    """All rows of a file; without a header the columns are called 1, 2, 3, ..."""
    if path.suffix == ".parquet":
        return _read_parquet(path)
    text = read_text(path, encoding)
    if path.suffix in (".jsonl", ".json"):
        return parse_json_lines(path, text)
    lines = _iter_csv(path, text) if path.suffix == ".csv" else _iter_tsv(text)
    return _build_table(path, lines, has_header=has_header, skips_ragged=skips_ragged)


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """A file's text; a byte that is none in this encoding is named with its line and the encoding that may be right."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        return data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        fitting = next((name for name in _OTHER_ENCODINGS if _decodes(data, name)), "latin-1")
        raise DataError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not {encoding}; "
            f"say which encoding it is, perhaps --encoding {fitting}"
        ) from None
    except LookupError:
        raise ConfigError(f"--encoding {encoding}: Python knows no such encoding") from None


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _iter_tsv(text: str) -> Iterator[tuple[int, list[str]]]:
    # not splitlines(): it would also break at characters that are part of sentences, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r").split("\t")


def _iter_csv(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_guess_delimiter(text), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}:{number}: not CSV ({error}); is a quotation mark not closed?") from None
        if any(cell.strip() for cell in cells):
            yield number, cells


def _guess_delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _build_table(path: Path, lines: Iterator[tuple[int, list[str]]], *, has_header: bool, skips_ragged: bool) -> Table:
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    ragged: list[str] = []
    for number, cells in lines:
        where = f"{path}:{number}"
        if not columns:
            columns = _name_columns(cells, has_header, where)
            if has_header:
                continue
        if len(cells) == len(columns):
            rows.append(Row(dict(zip(columns, cells, strict=True)), where))
        elif skips_ragged:
            ragged.append(where)
        else:
            raise DataError(f"{where}: {len(cells)} cells, but the table has {len(columns)} columns; mend this line")
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    return Table(path, columns, rows, tuple(ragged))


def _name_columns(cells: Sequence[str], has_header: bool, where: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells) if has_header else tuple(str(n + 1) for n in range(len(cells)))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{where}: two columns are called '{twice[0]}'; does the file begin with a row of names?")
    return names


def parse_json_lines(path: Path, text: str) -> Table:
    """The rows of JSON lines; `path` names them in messages."""
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(Row(_parse_object(line, f"{path}:{number}"), f"{path}:{number}"))
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    return Table(path, tuple(columns), rows)


def _parse_object(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error}); every line must be an object of its own") from None
    if not isinstance(value, dict):
        raise DataError(f"{where}: a {type(value).__name__}, not an object with columns")
    return value


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ConfigError(f"{path}: reading Parquet needs pyarrow: pip install 'litebert[parquet]'") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ArrowInvalid) as error:
        raise DataError(f"{path}: not Parquet ({error})") from None
    rows = [Row(cells, f"{path}: row {number}") for number, cells in enumerate(table.to_pylist(), start=1)]
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    return Table(path, tuple(table.column_names), rows)


def cell_text(row: Row, column: str) -> str:
    """A cell that must hold text."""
    value = row.cells.get(column)
    if value is None:
        raise DataError(f"{row.where}: there is no '{column}'; fill it, or remove the row")
    text = value if isinstance(value, str) else str(value)
    if not text.strip():
        raise DataError(f"{row.where}: '{column}' is empty; fill it, or remove the row")
    return text
