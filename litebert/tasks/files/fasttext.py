"""Reads fastText training files: each line has labels prefixed with `__label__`, then the text."""

import re

from litebert.core.errors import DataError

PREFIX = "__label__"
COLUMNS = ("text", "label")
_LINE = re.compile(rf"\s*((?:{PREFIX}\S+(?:\s+|$))+)(.*?)\s*")


def is_fasttext(text: str) -> bool:
    """Whether a file's first non-empty line begins with a label."""
    return text.lstrip().startswith(PREFIX)


def read_fasttext(text: str, where: str) -> list[tuple[int, dict[str, str | list[str]]]]:
    """The number, text and label of each line; several labels are a list."""
    rows: list[tuple[int, dict[str, str | list[str]]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise DataError("missing-label", f"{where}:{number}: line does not start with {PREFIX}; add its label")
        labels = [label.removeprefix(PREFIX) for label in parts[1].split()]
        rows.append((number, {"text": parts[2], "label": labels if len(labels) > 1 else labels[0]}))
    return rows
