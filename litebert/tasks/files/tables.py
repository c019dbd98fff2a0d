"""Reads rows of a user's file strictly; errors name the file and line.

This module reads JSON; `delimited` reads CSV and TSV, `columnar` Parquet and Arrow, `fasttext` lines with __label__.
"""

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.files.columnar import is_columnar, read_columns
from litebert.tasks.files.delimited import Delimited, advise_ragged, read_delimited
from litebert.tasks.files.fasttext import COLUMNS, PREFIX, is_fasttext, read_fasttext

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
_NO_TEXT = {
    b"PK\x03\x04": "an Office document or a zip",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"%PDF": "a PDF",
}


@dataclass(frozen=True)
class Row:
    """The cells of one row by column, and its location in the file."""

    cells: dict[str, Any]
    where: str  # file:line

    def group(self, column: str | None) -> str:
        """The value of the `group` column, whose rows are held out together; empty if there is none."""
        value = self.cells.get(column) if column else None
        return "" if value is None else str(value).strip()

    def identity(self, number: int) -> str:
        """The value of the column `id`, or else the row number."""
        return str(number if self.cells.get("id") is None else self.cells["id"])


@dataclass(frozen=True)
class Table:
    """A file's rows. `ragged` lists the locations of rows with too few or too many cells."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    ragged: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # label names of columns with numbered labels
    has_header: bool = True  # False: the columns have no names and are called 1, 2, 3, ...
    notes: tuple[str, ...] = ()  # what was guessed while reading


def read_table(
    path: Path,
    *,
    encoding: str = "utf-8",
    has_header: bool = True,
    skips_ragged: bool = False,
    may_be_quoted: bool = True,
) -> Table:
    """Read all rows of a file; without a header the columns are called 1, 2, 3, ...

    Unless `may_be_quoted`, quotation marks in TSV are ordinary characters, as in GLUE's official files.
    """
    if is_columnar(path):
        return _read_columnar(path)
    _check_file(path)  # before the format, so that a misspelled name is reported as a missing file
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(
            "unknown-file-type", f"{path}: unknown file type; save the table as one of {', '.join(SUFFIXES)}"
        )
    text = read_text(path, encoding)
    if path.suffix.lower() in (".jsonl", ".json"):
        return parse_json(path, text)
    if is_fasttext(text):
        rows = [Row(dict(cells), f"{path}:{number}") for number, cells in read_fasttext(text, str(path))]
        return Table(path, COLUMNS, rows, notes=(f"{path.name}: fastText format ({PREFIX} before each label)",))
    found = read_delimited(path, text, may_be_quoted=may_be_quoted)
    return _build_table(path, found, has_header=has_header, skips_ragged=skips_ragged)


def name_labels(table: Table) -> Table:
    """The table with label names instead of numbers, if it defines names; a number without a name becomes None."""
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
    """Read a file's text; a byte that is invalid in this encoding raises an error that suggests another encoding."""
    _check_file(path)
    return decode(path.read_bytes(), encoding, where=str(path))


def _check_file(path: Path) -> None:
    if not path.is_file():
        what = "a folder, not a file; name a file in it" if path.is_dir() else "no such file; is the name right?"
        raise DataError("missing-file", f"{path}: {what}")


def decode(data: bytes, encoding: str = "utf-8", *, where: str) -> str:
    """The text of bytes, without a byte-order mark."""
    for beginning, kind in _NO_TEXT.items():
        if data.startswith(beginning):
            raise DataError("not-text", f"{where}: {kind}, not text; save it as CSV or plain text")
    # UTF-32 first: its byte-order mark begins with that of UTF-16
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        encoding = "utf-32"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(
            "bad-encoding",
            f"{where}:{line}: byte 0x{data[error.start]:02x} is not valid {encoding}; "
            f"set the file's encoding, which may be {_guess_encoding(data)}",
            option="encoding",
        ) from None
    except LookupError:
        raise ConfigError("bad-encoding", f"unknown encoding '{encoding}'", option="encoding") from None
    if 4 * text.count("\0") > len(text):
        raise DataError(
            "bad-encoding",
            f"{where}: many of its bytes are zero, as in UTF-16; "
            f"set the file's encoding, which may be {_guess_encoding(data)}",
            option="encoding",
        )
    return text


def _guess_encoding(data: bytes) -> str:
    """Guess the encoding of text that is not UTF-8: Chinese has pairs of high bytes, European letters single ones.

    In UTF-16, zero bytes are the high halves of ASCII letters; their position shows the byte order.
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


def _build_table(path: Path, found: Delimited, *, has_header: bool, skips_ragged: bool) -> Table:
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    ragged: list[str] = []
    for number, cells in found.lines:
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
            remedy = advise_ragged(found, is_short=len(cells) < len(columns))
            raise DataError("ragged-row", f"{where}: {count}, but the table has {len(columns)} columns; {remedy}")
    if not rows:
        raise DataError("empty-file", f"{path}: no rows found")
    is_quoted_tsv = found.is_quoted and found.separator == "\t" and path.suffix.lower() != ".csv"
    notes = (f"{path.name}: read with quoted cells, as pandas writes TSV",) if is_quoted_tsv else ()
    return Table(path, columns, rows, tuple(ragged), has_header=has_header, notes=notes)


def _name_columns(cells: Sequence[str], has_header: bool, where: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells) if has_header else tuple(str(n + 1) for n in range(len(cells)))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(
            "duplicate-column",
            f"{where}: two columns are named '{twice[0]}'; does the file start with a header?",
        )
    return names


def parse_json(path: Path, text: str) -> Table:
    """The rows of JSON lines, or of one JSON list; `path` names them in messages."""
    rows: list[Row] = []
    if text.lstrip().startswith("[") and not _is_lists_in_lines(text):
        values = parse_value(text, str(path), "is the list complete?")
        rows = [build_row(value, f"{path}: row {number}") for number, value in enumerate(values, start=1)]
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                where = f"{path}:{number}"
                rows.append(build_row(parse_value(line, where, "every line must be a JSON object"), where))
    if not rows:
        raise DataError("empty-file", f"{path}: no rows found")
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    return Table(path, tuple(columns), rows)


def _is_lists_in_lines(text: str) -> bool:
    """Whether every line is a complete list, as in JSON lines of spaCy's pairs, and not a part of one list."""
    first, _, rest = text.strip().partition("\n")
    try:
        return bool(rest) and isinstance(json.loads(first), list)
    except (ValueError, RecursionError):
        return False


def parse_value(text: str, where: str, remedy: str) -> Any:
    """Parse a JSON value; raises if it could not be written again."""
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # lone surrogates cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise DataError("bad-json", f"{where}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise DataError("bad-json", f"{where}: not JSON ({error}); {remedy}") from None
    return value


def build_row(value: Any, where: str) -> Row:
    """The row of a JSON object, or of spaCy's pair of a text and an object with entities."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict):
        value = {"text": value[0], **value[1]}
    if not isinstance(value, dict):
        raise DataError("bad-layout", f"{where}: expected a JSON object with columns, got {type(value).__name__}")
    return Row(value, where)


def _read_columnar(path: Path) -> Table:
    values, names = read_columns(path)
    rows = [Row(cells, f"{path}: row {number}") for number, cells in enumerate(values, start=1)]
    if not rows:
        raise DataError("empty-file", f"{path}: no rows found")
    return Table(path, tuple(rows[0].cells), rows, names=names)


def tells_label(row: Row, column: str) -> bool:
    """Whether a test file's row has a label; an empty cell or -1 is a missing label."""
    value = row.cells.get(column)
    return (value.strip() if isinstance(value, str) else value) not in (None, "", -1, "-1")


def is_blank(row: Row, column: str) -> bool:
    """Whether a cell is empty or only white space."""
    value = row.cells.get(column)
    return value is None or (isinstance(value, str) and not value.strip())


def cell_text(row: Row, column: str) -> str:
    """The text of a cell; raises if it is not text."""
    value = row.cells.get(column)
    if value is None:
        raise DataError("empty-cell", f"{row.where}: '{column}' is missing; fill it or remove the row")
    if isinstance(value, list | dict):
        raise DataError(
            "wrong-input",
            f"{row.where}: '{column}' is {json.dumps(value, default=str)[:40]}, not text; name a column of texts",
        )
    text = value if isinstance(value, str) else str(value)
    if not text.strip():
        raise DataError("empty-cell", f"{row.where}: '{column}' is empty; fill it or remove the row")
    return text
