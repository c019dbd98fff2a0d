"""Which columns of a user's table are the text, the second text and the label: as they were named, else as such are
usually called, and then shown."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from litebert.core.errors import DataError
from litebert.tasks.reading import TableOptions
from litebert.tasks.tables import Table


class Usual(NamedTuple):
    """The names under which columns are looked for where none are given, the likeliest first."""

    text: tuple[str, ...]
    text_b: tuple[str, ...]
    label: tuple[str, ...]


TEXTS = Usual(
    ("text", "sentence", "text_a", "sentence1", "premise", "question1", "question", "review", "content", "query"),
    ("text_b", "sentence2", "hypothesis", "question2", "answer"),
    ("label", "labels", "class", "category", "score", "target", "gold_label", "is_duplicate", "tags"),
)
TAGGED_WORDS = Usual(("tokens", "words"), (), ("tags", "ner_tags", "labels", "pos_tags"))
OFTEN_LABEL = "answer"  # where no other column is the label, this one is hardly a second text
_BY_NUMBER = "or where the file has no row of names, by number: --text 1 --label 2"


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where text and label are."""

    text: str
    text_b: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"text": self.text, "second text": self.text_b, "label": self.label}
        return ", ".join(f"{name} = '{column}'" for name, column in parts.items() if column is not None)


def find_columns(table: Table, options: TableOptions, *, needs_label: bool, usual: Usual = TEXTS) -> Columns:
    """The columns as they were named, or as they are usually called; where none is needed, a label may be missing.

    No column is two things. A second text is guessed only where both are: who names the text alone means single texts.
    """
    named = _check_named(table, options, needs_label=needs_label)
    free = [column for column in table.columns if column not in named.values()]
    text = named.get("--text") or _guess(free, usual.text)
    label = named.get("--label") or (_guess(free, usual.label) if options.label is None else None)
    text_b = named.get("--text-b") or (_guess(free, usual.text_b) if options.text is None else None)
    if "--text-b" not in named and text_b and text_b.lower() == OFTEN_LABEL and needs_label and label is None:
        text_b = None
    others = [column for column in table.columns if column not in (text, text_b, label, "id")]
    if text is None and len(others) == 1:
        text = others.pop()
    if needs_label and label is None and len(others) == 1:
        label = others.pop()
    has = f"it has {', '.join(table.columns)}"
    if text is None:
        raise DataError(f"{table.path}: which column is the text? {has}; name it with --text, {_BY_NUMBER}")
    if needs_label and label is None:
        raise DataError(f"{table.path}: which column is the label? {has}; name it with --label, {_BY_NUMBER}")
    return Columns(text, text_b, label)


def reuse_columns(found: Columns, table: Table, options: TableOptions, *, needs_label: bool) -> TableOptions:
    """Options that name what was found in the training file, so that another split is not guessed otherwise.

    A split whose columns are called otherwise is looked at for itself; but a label that may be missing is not taken
    from a column that was none in training.
    """
    texts = [column for column in (found.text, found.text_b) if column is not None]
    if all(column in table.columns for column in texts):
        options = dataclasses.replace(options, text=found.text, text_b=found.text_b)
    if found.label in table.columns or not needs_label:
        options = dataclasses.replace(options, label=found.label)
    return options


def has_header(options: TableOptions) -> bool:
    """A column named by its number means that the file has no names."""
    named = [column for column in (options.text, options.text_b, options.label) if column is not None]
    return not (named and all(column.isdecimal() for column in named))


def _check_named(table: Table, options: TableOptions, *, needs_label: bool) -> dict[str, str]:
    """The columns that were named, by flag; a label that is not needed may be missing."""
    said = {"--text": options.text, "--text-b": options.text_b, "--label": options.label}
    named: dict[str, str] = {}
    for flag, column in said.items():
        if column is None or (flag == "--label" and not needs_label and column not in table.columns):
            continue
        if column not in table.columns:
            raise DataError(f"{table.path}: no column '{column}' ({flag}); it has {', '.join(table.columns)}")
        twice = next((other for other, taken in named.items() if taken == column), None)
        if twice:
            raise DataError(f"{table.path}: '{column}' is both {twice} and {flag}; name another column for one of them")
        named[flag] = column
    return named


def _guess(free: Sequence[str], usual: Sequence[str]) -> str | None:
    by_lower_case = {column.lower(): column for column in reversed(free)}
    return next((by_lower_case[name] for name in usual if name in by_lower_case), None)
