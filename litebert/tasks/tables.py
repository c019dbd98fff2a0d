"""Rows of a user's file with the line of each: CSV, TSV, JSON, Parquet and Arrow, read strictly.

CSV has its quotes (RFC 4180); in TSV a quotation mark is a letter like any other, as in GLUE's files. A slip is named
with file and line.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.columnar import is_columnar, read_columns

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
_MAX_CELL = 10_000_000
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_NO_TEXT = {
    b"PK\x03\x04": "an Office document or a zip",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"%PDF": "a PDF",
}


@dataclass(frozen=True)
class Row:
    """The cells of one row by column, and where it stands."""

    cells: dict[str, Any]
    where: str  # file:line

    def identity(self, number: int) -> str:
        """What its column `id` says, or else its number."""
        return str(number if self.cells.get("id") is None else self.cells["id"])


@dataclass(frozen=True)
class Table:
    """A file's rows. `ragged` are the places of rows that had not as many cells as there are columns."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    ragged: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # what the numbers of a column's labels mean


def read_table(path: Path, *, encoding: str = "utf-8", has_header: bool = True, skips_ragged: bool = False) -> Table:
    """All rows of a file; without a header the columns are called 1, 2, 3, ..."""
    if is_columnar(path):
        return _read_columnar(path)
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: a table is one of {', '.join(SUFFIXES)}; save it as one of them")
    text = read_text(path, encoding)
    if path.suffix.lower() in (".jsonl", ".json"):
        return parse_json(path, text)
    is_csv = path.suffix.lower() == ".csv"
    separator = _guess_delimiter(text) if is_csv else "\t"
    lines = _iter_csv(path, text, separator) if is_csv else _iter_tsv(text)
    return _build_table(path, lines, separator, has_header=has_header, skips_ragged=skips_ragged)


def name_labels(table: Table) -> Table:
    """The table with names for numbered labels, where it says what they mean; a number without a name is no label."""
    if not table.names:
        return table
    rows = [
        replace(row, cells={column: _name(value, table.names.get(column, ())) for column, value in row.cells.items()})
        for row in table.rows
    ]
    return replace(table, rows=rows, names={})


def _name(value: Any, names: Sequence[str]) -> Any:
    if not names:
        return value
    if isinstance(value, list):
        return [_name(one, names) for one in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else None


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """A file's text; a byte that is none in this encoding is named with its line and the encoding that may be right."""
    if not path.is_file():
        what = "a folder, not a file; name a file in it" if path.is_dir() else "no such file; is the name right?"
        raise DataError(f"{path}: {what}")
    return decode(path.read_bytes(), encoding, where=str(path))


def decode(data: bytes, encoding: str = "utf-8", *, where: str) -> str:
    """The text of bytes, without a byte-order mark."""
    for beginning, kind in _NO_TEXT.items():
        if data.startswith(beginning):
            raise DataError(f"{where}: {kind}, not text; save its table as CSV, or its words as plain text")
    # the wider first: its mark begins with the other's
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        encoding = "utf-32"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(
            f"{where}:{line}: byte 0x{data[error.start]:02x} is not {encoding}; "
            f"say which encoding it is, perhaps --encoding {_guess_encoding(data)}"
        ) from None
    except LookupError:
        raise ConfigError(f"--encoding {encoding}: Python knows no such encoding") from None
    if 4 * text.count("\0") > len(text):
        raise DataError(
            f"{where}: many of its bytes are zero, as in UTF-16; "
            f"say which encoding it is, perhaps --encoding {_guess_encoding(data)}"
        )
    return text


def _guess_encoding(data: bytes) -> str:
    """What text that is not UTF-8 usually is: Chinese has its high bytes in pairs, European letters stand alone.

    Bytes that are zero are the higher halves of plain letters: where they stand tells which half comes first.
    """
    runs = re.findall(rb"[\x80-\xff]+", data)
    names = ["cp1252", "gb18030"] if 2 * sum(len(run) == 1 for run in runs) > len(runs) else ["gb18030", "cp1252"]
    if b"\0" in data:
        is_low_first = data[1::2].count(0) > data[::2].count(0)
        names = ["utf-32-le", "utf-32-be", "utf-16-le" if is_low_first else "utf-16-be", *names]
    return next((name for name in names if _decodes(data, name)), "latin-1")


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _iter_tsv(text: str) -> Iterator[tuple[int, list[str]]]:
    # not splitlines(): it would also break at characters that are part of sentences, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip(" \r"):
            yield number, line.removesuffix("\r").split("\t")


def _iter_csv(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}:{number}: not CSV ({error}); is a quotation mark not closed?") from None
        if cells and (len(cells) > 1 or cells[0].strip()):  # an empty line is none, a row of empty cells is a slip
            yield number, cells


def _guess_delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max(_SEPARATORS, key=header.count)


def _build_table(
    path: Path, lines: Iterator[tuple[int, list[str]]], separator: str, *, has_header: bool, skips_ragged: bool
) -> Table:
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
            count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
            remedy = _advise_ragged(path, separator, is_short=len(cells) < len(columns))
            raise DataError(f"{where}: {count}, but the table has {len(columns)} columns; {remedy}")
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    return Table(path, columns, rows, tuple(ragged))


def _advise_ragged(path: Path, separator: str, *, is_short: bool) -> str:
    if is_short:
        return f"add what is missing, {_SEPARATORS[separator]} before it"
    if path.suffix.lower() == ".csv":
        return f"quote the cell that has {_SEPARATORS[separator]} in it"
    return "write a space for the tab that stands in a cell"


def _name_columns(cells: Sequence[str], has_header: bool, where: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells) if has_header else tuple(str(n + 1) for n in range(len(cells)))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{where}: two columns are called '{twice[0]}'; does the file begin with a row of names?")
    return names


def parse_json(path: Path, text: str) -> Table:
    """The rows of JSON lines, or of one JSON list; `path` names them in messages."""
    rows: list[Row] = []
    if text.lstrip().startswith("["):
        values = parse_value(text, str(path), "is the list complete?")
        rows = [_build_row(value, f"{path}: row {number}") for number, value in enumerate(values, start=1)]
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                where = f"{path}:{number}"
                rows.append(_build_row(parse_value(line, where, "every line must be an object of its own"), where))
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    return Table(path, tuple(columns), rows)


def parse_value(text: str, where: str, remedy: str) -> Any:
    """A value from JSON that can be written again."""
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # half a character would be refused by whoever writes it
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise DataError(f"{where}: not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error}); {remedy}") from None
    return value


def _build_row(value: Any, where: str) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{where}: a {type(value).__name__}, not an object with columns")
    return Row(value, where)


def _read_columnar(path: Path) -> Table:
    values, names = read_columns(path)
    rows = [Row(cells, f"{path}: row {number}") for number, cells in enumerate(values, start=1)]
    if not rows:
        raise DataError(f"{path}: there is no row in it")
    return Table(path, tuple(rows[0].cells), rows, names=names)


def tells_label(row: Row, column: str) -> bool:
    """Whether a test file's row has its label; an empty cell or -1 stands for one that is not told."""
    value = row.cells.get(column)
    return (value.strip() if isinstance(value, str) else value) not in (None, "", -1, "-1")


def is_blank(row: Row, column: str) -> bool:
    """Whether nothing, or nothing but space, stands in a cell."""
    value = row.cells.get(column)
    return value is None or (isinstance(value, str) and not value.strip())


def cell_text(row: Row, column: str) -> str:
    """A cell that must hold text."""
    value = row.cells.get(column)
    if value is None:
        raise DataError(f"{row.where}: there is no '{column}'; fill it, or remove the row")
    if isinstance(value, list | dict):
        raise DataError(f"{row.where}: '{column}' is {json.dumps(value, default=str)[:40]}, not a text; which is it?")
    text = value if isinstance(value, str) else str(value)
    if not text.strip():
        raise DataError(f"{row.where}: '{column}' is empty; fill it, or remove the row")
    return text
