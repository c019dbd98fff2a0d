"""fastText's training files: lines of labels, each with `__label__` before it, and then the text."""

import re

from litebert.core.errors import DataError

PREFIX = "__label__"
COLUMNS = ("text", "label")
_LINE = re.compile(rf"\s*((?:{PREFIX}\S+(?:\s+|$))+)(.*?)\s*")


def is_fasttext(text: str) -> bool:
    """Whether a file's first line that is not empty begins with a label."""
    return text.lstrip().startswith(PREFIX)


def read_fasttext(text: str, where: str) -> list[tuple[int, dict[str, str | list[str]]]]:
    """The number of each line, and its text and label: a list where there are several."""
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
