"""Reads one sentence per line with a tag after each word: `Ada/B-PER lived/O in/O London/B-LOC`."""

import re
from pathlib import Path

from litebert.core.errors import DataError
from litebert.tasks.kinds.token_tags import TaggedWords

_ITEM = re.compile(r"\S.*/[^/\s]+")
_NUM_SAMPLED = 20  # lines used to recognize the format


def is_slash_tagged(text: str) -> bool:
    """Whether the first lines contain only words with a slash and a tag."""
    lines = [line for line in text.split("\n") if line.strip()][:_NUM_SAMPLED]
    return bool(lines) and all(_ITEM.fullmatch(item) for line in lines for item in _cut(line))


def read_slash_tags(text: str, file: Path) -> list[TaggedWords]:
    """Read one sentence per line."""
    sentences: list[TaggedWords] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        items = _cut(line)
        wrong = next((item for item in items if not _ITEM.fullmatch(item)), None)
        if wrong is not None:
            raise DataError("missing-tag", f"{file}:{number}: '{wrong}' has no tag; write it as word/TAG")
        words, tags = zip(*(item.rsplit("/", 1) for item in items), strict=True)
        sentences.append(TaggedWords(str(len(sentences)), words, tags, f"{file}:{number}"))
    return sentences


def _cut(line: str) -> list[str]:
    # not split(): a word may contain a no-break space
    return [item for item in re.split(r"[ \t\r]+", line) if item]
