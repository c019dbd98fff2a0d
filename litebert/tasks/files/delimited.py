"""Reads CSV, TSV and other delimited text; detects the separator and whether cells are quoted.

CSV always has quotes (RFC 4180). TSV exists in both forms: pandas and spreadsheets quote a cell that contains a tab, a
newline or a quotation mark; GLUE's official files quote nothing, and a quotation mark is an ordinary character.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from litebert.core.errors import DataError

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
TOUTIAO = "_!_"  # between the cells of Toutiao's news, from which TNEWS was made
_MAX_CELL = 10_000_000
_EXCEL_LINE = re.compile(r"sep=[,;\t|]\r?", re.IGNORECASE)  # a first line that tells spreadsheets the separator
_NUM_SAMPLED = 200  # rows used to choose a separator


class Line(NamedTuple):
    """The cells of one row, and its first line number."""

    number: int
    cells: list[str]


class Delimited(NamedTuple):
    """The rows, and how they were read."""

    lines: list[Line]
    separator: str
    is_quoted: bool


def read_delimited(path: Path, text: str, *, may_be_quoted: bool = True) -> Delimited:
    """The rows of a file's text, without empty lines; `path` determines the format and appears in messages.

    Unless `may_be_quoted`, quotation marks in a TSV are ordinary characters.
    """
    suffix = path.suffix.lower()
    first = text.partition("\n")[0]
    if TOUTIAO in first:
        return Delimited(list(_iter_plain(text, TOUTIAO)), TOUTIAO, is_quoted=False)
    if _EXCEL_LINE.fullmatch(first) and suffix in (".csv", ".txt"):
        separator = first[len("sep=")]
        return Delimited(list(_iter_quoted(path, text, separator))[1:], separator, is_quoted=True)
    if suffix == ".csv" or (suffix == ".txt" and "\t" not in first):
        separator = _choose_separator(first, text)
        if separator != "\t":
            return Delimited(list(_iter_quoted(path, text, separator)), separator, is_quoted=True)
    elif not may_be_quoted or not _follows_quoting(text):
        return Delimited(list(_iter_plain(text)), "\t", is_quoted=False)
    quoted = list(_iter_quoted(path, text, "\t"))
    if suffix != ".csv":
        plain = list(_iter_plain(text))
        if _is_even(plain) and (not _is_even(quoted) or _swallows_rows(quoted, plain)):
            return Delimited(plain, "\t", is_quoted=False)
    return Delimited(quoted, "\t", is_quoted=True)


def advise_ragged(table: Delimited, *, is_short: bool) -> str:
    """How to fix a row with too few or too many cells."""
    mark = SEPARATORS.get(table.separator, table.separator)
    if is_short:
        return f"add the missing cells, each after {mark}"
    if table.is_quoted:
        return f"quote the cell that contains {mark}"
    if table.separator == TOUTIAO:
        return f"remove {mark} from inside a cell"
    return "replace the tab inside a cell with a space"


def _iter_plain(text: str, separator: str = "\t") -> Iterator[Line]:
    # not splitlines(): it would also break at characters that are part of sentences, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip(" \r"):
            yield Line(number, line.removesuffix("\r").split(separator))


def _iter_quoted(path: Path, text: str, separator: str) -> Iterator[Line]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                "bad-csv", f"{path}:{number}: invalid CSV ({error}); is a quotation mark left open?"
            ) from None
        if cells and (len(cells) > 1 or cells[0].strip()):  # an empty line is skipped, a row of empty cells is not
            yield Line(number, cells)


def _choose_separator(first: str, text: str) -> str:
    """The most frequent separator in the first line that gives all rows the same width, or else the most frequent.

    In a file without column names, commas in texts may outnumber the semicolons that separate cells.
    """
    marks = sorted((mark for mark in SEPARATORS if mark in first), key=first.count, reverse=True)
    return next((mark for mark in marks if _cuts_evenly(text, mark)), marks[0] if marks else ",")


def _cuts_evenly(text: str, mark: str) -> bool:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        widths = {len(cells) for cells, _ in zip(reader, range(_NUM_SAMPLED), strict=False) if cells}
    except csv.Error:
        return False
    return len(widths) == 1 and widths.pop() > 1


# a cell as a CSV writer leaves it: quoted as a whole with inner quotes doubled, or without any quotation mark
_WRITTEN_CELL = re.compile(r'(?:"[^"]*(?:""[^"]*)*"|[^"\t\r\n]*)(?:\t|\r\n|\n|\r|\Z)')
_OPENING_QUOTE = re.compile(r'(?:^|\t)"', re.MULTILINE)


def _follows_quoting(text: str) -> bool:
    """Whether any cell of a TSV is quoted and all cells could come from a CSV writer.

    A single cell such as `he said "no"` or `"Well," she said` shows that quotation marks are ordinary characters.
    """
    if not _OPENING_QUOTE.search(text):
        return False
    position = 0
    while position < len(text):
        cell = _WRITTEN_CELL.match(text, position)
        if cell is None:
            return False
        position = cell.end()
    return True


def _swallows_rows(quoted: Sequence[Line], plain: Sequence[Line]) -> bool:
    """Whether the lines inside quoted cells are rows, between one text that begins and one that ends with a quote.

    As rows they have no other labels than the rest: cells that really continue in the next line would invent some.
    """
    if len(quoted) == len(plain):
        return False
    columns = [list(zip(*(line.cells for line in lines), strict=True)) for lines in (quoted, plain)]
    pairs = zip(*columns, strict=False)  # the widths may differ
    known = [(set(values), set(others)) for values, others in pairs if 2 * len(set(values)) <= len(quoted)]
    return bool(known) and all(others <= values for values, others in known)


def _is_even(lines: Sequence[Line]) -> bool:
    return len({len(line.cells) for line in lines}) == 1
