"""Reads CoNLL files: one word and its tag per line, a blank line between sentences.

The word is the first column and the tag the last, unless others are given: by number, or by name in CoNLL-U and in
files with a header line.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from litebert.core.errors import ConfigError, DataError
from litebert.core.ranges import read_whole_number
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import read_text
from litebert.tasks.files.tagged_tables import TAG, WORD
from litebert.tasks.kinds.token_tags import TaggedWords

DOCUMENT = "-DOCSTART-"  # separates documents
SUFFIXES = (".conll", ".bio", ".iob", ".iob2", ".conllu", ".conllup")
CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_GLOBAL_COLUMNS = "# global.columns ="  # CoNLL-U Plus names its columns in the first line


class Line(NamedTuple):
    """A non-blank line."""

    number: int
    cells: list[str]
    has_tabs: bool

    @property
    def shape(self) -> tuple[int, bool]:
        return len(self.cells), self.has_tabs


def read_conll(file: Path, options: TableOptions, *, needs_tags: bool, notes: list[str]) -> list[TaggedWords]:
    """The sentences of a file; tags that are not required are read if every word has one."""
    if options.group is not None:
        raise ConfigError(
            "conflicting-options", f"{file}: CoNLL files have no group column; use a table instead", option="group"
        )
    text = read_text(file, options.encoding)
    names = _name_columns(file, text)
    blocks, is_conllu = _cut_at_blanks(text), bool(names)
    if not is_conllu and blocks and _is_header(blocks[0][0]):
        names = tuple(cell.lower() for cell in blocks[0][0].cells)
        notes.append(f"{file.name}: the first row is used as the header: {', '.join(names)}")
        blocks = [block for block in (blocks[0][1:], *blocks[1:]) if block]
    sentences = _drop_inner_ids(_drop_comments(blocks)) if is_conllu else _drop_comments(blocks)
    if not sentences:
        raise DataError("empty-file", f"{file}: no sentences found")
    num_dropped = sum(map(len, blocks)) - sum(map(len, sentences))
    if num_dropped:
        kind = "comment lines and parts of words" if is_conllu else "comment lines (# above a sentence)"
        notes.append(f"{file.name}: skipped {num_dropped:,} {kind}")
    _check_columns(file, sentences, needs_tags=needs_tags)
    width = len(sentences[0][0].cells)
    word = _find_column(options.text, "form" if is_conllu else "1", names, width, file)
    tag = _find_column(options.label, "upos" if is_conllu else str(width), names, width, file)
    if names:
        notes.append(f"columns of {file.name}: words = '{names[word]}', tags = '{names[tag]}'")
    return [_tagged_lines(lines, number, file, word, tag) for number, lines in enumerate(sentences)]


def _name_columns(file: Path, text: str) -> tuple[str, ...]:
    """The lowercased column names, if the format has them."""
    first = text.partition("\n")[0]
    if first.startswith(_GLOBAL_COLUMNS):
        return tuple(first.removeprefix(_GLOBAL_COLUMNS).lower().split())
    return CONLLU if file.suffix.lower() == ".conllu" else ()


def _is_header(line: Line) -> bool:
    """Whether a line is a header such as `word pos tag`, and not a word with its tag."""
    return len(line.cells) > 1 and line.cells[0].lower() in WORD and line.cells[-1].lower() in TAG


def _find_column(said: str | None, usual: str, names: Sequence[str], width: int, file: Path) -> int:
    """The index of a column given by name, or by number from 1."""
    column = (said or usual).lower()
    if column in names:
        return names.index(column)
    if 0 < (number := read_whole_number(column) or 0) <= width:
        return number - 1
    has = ", ".join(names) if names else f"{width} unnamed columns; name one by its number from 1"
    raise DataError("unknown-column", f"{file}: no column '{said or usual}'; it has {has}")


def _drop_inner_ids(sentences: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Drop CoNLL-U's multiword tokens (1-2) and empty nodes (8.1)."""
    kept = [[line for line in sentence if line.cells[0].isdecimal()] for sentence in sentences]
    return [sentence for sentence in kept if sentence]


def _cut_at_blanks(text: str) -> list[list[Line]]:
    blocks: list[list[Line]] = [[]]
    for number, line in enumerate(text.split("\n"), start=1):
        # not split(): a word may contain a no-break space, or be an ideographic space
        cells = (
            [cell.strip(" \r") for cell in line.split("\t")] if "\t" in line else re.split("[ \r]+", line.strip(" \r"))
        )
        if any(cells) and cells[0] != DOCUMENT:
            blocks[-1].append(Line(number, cells, "\t" in line))
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _drop_comments(blocks: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The words of each block, without the comments above them.

    A # may also be a word. Above a sentence it starts a comment if its line has a different number of columns, or if
    every sentence has such a line and none ends in a tag ("# id 7 domain=en" above words of four columns).
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
    """The lines with # at the beginning of a block, and the rest."""
    start = next((number for number, line in enumerate(block) if not line.cells[0].startswith("#")), len(block))
    return block[:start], block[start:]


def _check_columns(file: Path, sentences: Sequence[Sequence[Line]], *, needs_tags: bool) -> None:
    """Raise if the number of columns changes within a sentence or, if tags are required, within the file."""
    for sentence in sentences:
        first = sentences[0][0] if needs_tags else sentence[0]
        for line in sentence:
            where, count = f"{file}:{line.number}", len(line.cells)
            if needs_tags and count < 2:
                raise DataError("missing-tag", f"{where}: word without a tag; add its tag after it")
            if count != len(first.cells):
                raise DataError(
                    "ragged-row",
                    f"{where}: {count} columns, but line {first.number} has {len(first.cells)}; fix this line "
                    f"(comments start with # and come before their sentence)",
                )


def _tagged_lines(lines: Sequence[Line], number: int, file: Path, word: int, tag: int) -> TaggedWords:
    is_tagged = all(len(line.cells) > max(tag, 1) for line in lines)
    tags = tuple(line.cells[tag] for line in lines) if is_tagged else None
    return TaggedWords(str(number), tuple(line.cells[word] for line in lines), tags, f"{file}:{lines[0].number}")
