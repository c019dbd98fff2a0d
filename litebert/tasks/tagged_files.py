"""Sentences whose words have tags, in files: CoNLL columns (word first, tag last, a blank line between sentences), or
a table, such as JSON lines, with a list of words and one of tags in each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import ConfigError, DataError
from litebert.tasks.columnar import is_columnar
from litebert.tasks.columns import Columns
from litebert.tasks.reading import TableOptions
from litebert.tasks.tables import Row, Table, read_text
from litebert.tasks.token_tags import TaggedWords

DOCUMENT = "-DOCSTART-"  # begins a line that stands between documents


class Line(NamedTuple):
    """A line that is not blank."""

    number: int
    cells: list[str]
    has_tabs: bool

    @property
    def shape(self) -> tuple[int, bool]:
        return len(self.cells), self.has_tabs


def is_table(file: Path) -> bool:
    """Whether its sentences are rows with columns that have names."""
    return file.suffix.lower() in (".jsonl", ".json") or is_columnar(file)


def read_tagged_rows(table: Table, columns: Columns, *, needs_tags: bool) -> list[TaggedWords]:
    """The sentence of each row; where no tags are needed, they are read if each word has one."""
    return [_tagged_row(row, number, columns, needs_tags) for number, row in enumerate(table.rows)]


def read_conll(file: Path, options: TableOptions, *, needs_tags: bool, notes: list[str]) -> list[TaggedWords]:
    """The sentences of columns without names; where no tags are needed, they are read if each word has one."""
    for flag, name in (("--text", options.text), ("--label", options.label)):
        if name is not None:
            raise ConfigError(
                f"{flag} names a column of a table, and {file} has the word first, the tag last: leave it out"
            )
    blocks = _cut_at_blanks(read_text(file, options.encoding))
    sentences = _drop_comments(blocks)
    if not sentences:
        raise DataError(f"{file}: there is no sentence in it")
    num_dropped = sum(map(len, blocks)) - sum(map(len, sentences))
    if num_dropped:
        notes.append(f"{file.name}: {num_dropped:,} lines with # above sentences are comments, and left out")
    _check_columns(file, sentences, needs_tags=needs_tags)
    return [_tagged_lines(lines, number, file) for number, lines in enumerate(sentences)]


def _cut_at_blanks(text: str) -> list[list[Line]]:
    blocks: list[list[Line]] = [[]]
    for number, line in enumerate(text.split("\n"), start=1):
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if any(cells) and cells[0] != DOCUMENT:
            blocks[-1].append(Line(number, cells, "\t" in line))
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _drop_comments(blocks: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The words of each block, without the comments above them.

    A # may be a word. Above a sentence it is none if its line has not the columns of the words. Nor, where it has them
    by chance ("# id 7 domain=en" above words of four columns), if every sentence has one, with no word's tag behind it.
    """
    parts = [_split_head(block) for block in blocks]
    shapes = {line.shape for _, words in parts for line in words}
    heads = [[line for line in head if line.shape in ({words[0].shape} if words else shapes)] for head, words in parts]
    tags = {line.cells[-1] for _, words in parts for line in words}
    alike = [line for head in heads for line in head]
    if len(heads) > 1 and all(heads) and all(len(line.cells) > 1 and line.cells[-1] not in tags for line in alike):
        heads = [[] for _ in heads]
    sentences = [[*head, *words] for head, (_, words) in zip(heads, parts, strict=True)]
    return [sentence for sentence in sentences if sentence]


def _split_head(block: Sequence[Line]) -> tuple[Sequence[Line], Sequence[Line]]:
    """The lines with # that begin a block, and the rest."""
    start = next((number for number, line in enumerate(block) if not line.cells[0].startswith("#")), len(block))
    return block[:start], block[start:]


def _check_columns(file: Path, sentences: Sequence[Sequence[Line]], *, needs_tags: bool) -> None:
    """Refuse a line with another number of columns than its sentence has; where tags are needed, than the file has."""
    for sentence in sentences:
        first = sentences[0][0] if needs_tags else sentence[0]
        for line in sentence:
            where, count = f"{file}:{line.number}", len(line.cells)
            if needs_tags and count < 2:
                raise DataError(f"{where}: a word without a tag; write the tag behind it")
            if count != len(first.cells):
                raise DataError(
                    f"{where}: {count} columns, but line {first.number} has {len(first.cells)}; mend this line "
                    f"(a comment begins with # and stands above its sentence)"
                )


def _tagged_lines(lines: Sequence[Line], number: int, file: Path) -> TaggedWords:
    is_tagged = all(len(line.cells) > 1 for line in lines)
    tags = tuple(line.cells[-1] for line in lines) if is_tagged else None
    return TaggedWords(str(number), tuple(line.cells[0] for line in lines), tags, f"{file}:{lines[0].number}")


def _tagged_row(row: Row, number: int, columns: Columns, needs_tags: bool) -> TaggedWords:
    words = row.cells.get(columns.text)
    tags: Any = None if columns.label is None else row.cells.get(columns.label)
    if not isinstance(words, list) or not words or None in words:
        raise DataError(
            f'{row.where}: no list of words in \'{columns.text}\'; write ["one", "two"], or name another: --text'
        )
    is_tagged = isinstance(tags, list) and len(tags) == len(words) and None not in tags
    if needs_tags and not is_tagged:
        raise DataError(
            f"{row.where}: {len(words)} words, and not as many tags in '{columns.label}'; "
            f"mend it, or name another: --label"
        )
    labels = tuple(map(str, tags)) if is_tagged else None
    return TaggedWords(row.identity(number), tuple(map(str, words)), labels, row.where)
