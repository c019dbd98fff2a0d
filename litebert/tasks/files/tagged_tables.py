"""Reads tables with tagged words: one sentence per row, with words and tags as lists or separated by spaces, or one
word per row with a sentence column."""

import dataclasses
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.columnar import is_columnar
from litebert.tasks.files.columns import Columns, guess_column
from litebert.tasks.files.list_cells import is_list_text, parse_list
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import Row, Table, is_blank
from litebert.tasks.kinds.token_tags import TaggedWords

WORD = ("word", "token", "words", "tokens")
TAG = ("tag", "ner_tag", "ner", "label", "tags", "ner_tags", "labels", "pos")
SENTENCE = ("sentence #", "sentence_id", "sentence_idx", "sentence_no", "sentence_number", "sent_id", "sentence")


def is_table(file: Path) -> bool:
    """Whether a file is a table of words or sentences with named columns.

    A TSV is one if it has columns word and tag and separates sentences by a column, not by blank lines as in CoNLL.
    """
    if file.suffix.lower() == ".tsv" and file.is_file():
        first, *rest = file.read_text(encoding="utf-8", errors="replace").rstrip().split("\n")
        names = {name.strip().lower() for name in first.split("\t")}
        is_cut = bool(names & {*SENTENCE}) or all(line.strip() for line in rest)
        return bool(names & {*WORD} and names & {*TAG}) and is_cut
    return file.suffix.lower() in (".jsonl", ".json", ".csv") or is_columnar(file)


def read_tagged_rows(
    table: Table, columns: Columns, *, needs_tags: bool, group: str | None = None
) -> list[TaggedWords]:
    """One sentence per row; tags that are not required are read if every word has one."""
    return [_tagged_row(row, number, columns, needs_tags, group) for number, row in enumerate(table.rows)]


def join_word_rows(table: Table, options: TableOptions, *, needs_tags: bool) -> Table:
    """The table with one sentence per row, if it has one word per row; else the table unchanged.

    A sentence starts where its column has a new value: a number, or `Sentence: 1` followed by blanks.
    """
    word = options.text or guess_column(table.columns, WORD)
    sentence = guess_column([column for column in table.columns if column != word], SENTENCE)
    if word not in table.columns or not all(_is_one_word(row.cells.get(word)) for row in table.rows):
        return table
    if sentence is None:
        if len(table.rows) > 1 and all(" " not in str(row.cells[word]).strip() for row in table.rows):
            raise DataError(
                "ambiguous-column",
                f"{table.path}: '{word}' has one word per row, but no column says where a sentence begins; add a "
                f"column sentence_id (it has {', '.join(table.columns)})",
            )
        return table
    tag = options.label or guess_column([column for column in table.columns if column not in (word, sentence)], TAG)
    if needs_tags and tag not in table.columns:
        raise DataError(
            "ambiguous-column",
            f"{table.path}: cannot tell which column has the tags; name one of {', '.join(table.columns)}",
            option="label",
        )
    kept = [name for name in (options.group,) if name is not None]  # a sentence gets the value of its first word
    rows: list[Row] = []
    current: Any = None
    for row in table.rows:
        said = None if is_blank(row, sentence) else row.cells[sentence]
        if not rows or (said is not None and said != current):
            rows.append(Row({"tokens": [], "tags": [], **{name: row.cells.get(name) for name in kept}}, row.where))
            current = said
        if is_blank(row, word) or (needs_tags and is_blank(row, str(tag))):
            raise DataError("empty-cell", f"{row.where}: a word or its tag is missing; fill it or remove the row")
        rows[-1].cells["tokens"].append(str(row.cells[word]).strip(" "))
        rows[-1].cells["tags"].append(None if tag is None else row.cells.get(tag))
    note = f"{table.path.name}: one word per row; words = '{word}', tags = '{tag}', sentences = '{sentence}'"
    return dataclasses.replace(table, columns=("tokens", "tags", *kept), rows=rows, notes=(*table.notes, note))


def _is_one_word(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not is_list_text(value) and " " not in value.strip())


def _tagged_row(row: Row, number: int, columns: Columns, needs_tags: bool, group: str | None) -> TaggedWords:
    words, tags = _read_cell(row, columns.text), None if columns.label is None else _read_cell(row, columns.label)
    if not words or None in words:
        raise DataError(
            "unknown-column",
            f'{row.where}: no list of words in \'{columns.text}\'; write ["one", "two"], or name another column',
            option="text",
        )
    said = None if columns.label is None else row.cells.get(columns.label)
    if isinstance(said, str) and 0 < said.count(",") == len(words) - 1 and parse_list(said) is None:
        tags = [tag.strip() for tag in said.split(",")]  # words with spaces between them, tags with commas
    is_tagged = tags is not None and len(tags) == len(words) and None not in tags
    if needs_tags and not is_tagged:
        raise DataError(
            "row-count-mismatch",
            f"{row.where}: {len(words)} words, but a different number of tags in '{columns.label}'; "
            f"fix the row, or name another column",
            option="label",
        )
    labels = tuple(map(str, tags)) if is_tagged and tags is not None else None
    return TaggedWords(row.identity(number), tuple(map(str, words)), labels, row.where, row.group(group))


def _read_cell(row: Row, column: str) -> list[Any] | None:
    """The list in a cell, also if it is written as text; other text is split at spaces."""
    value = row.cells.get(column)
    values = parse_list(value)
    if values is None and isinstance(value, str):
        values = [one for one in value.replace("\t", " ").split(" ") if one]
    return values
