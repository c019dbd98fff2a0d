"""The line layout of plain text: one sentence per line, one paragraph per line, or hard-wrapped."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from litebert.text.sentences import split_sentences

Layout = Literal["lines", "prose", "wrapped"]

_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’»」』)\]]*$")
_BLANK_LINES = re.compile(r"\n[ \t\r]*\n\s*")
_CJK = "\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef"
_CJK_JOIN = re.compile(rf"(?<=[{_CJK}]) (?=[{_CJK}])")
_SAMPLE_LINES = 2000
_WRAP_WIDTH = 120


def guess_layout(text: str) -> Layout:
    """The layout of a text, guessed from its first lines."""
    lines = [line.strip() for line in text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]]
    blocks = [list(group) for is_filled, group in groupby(lines, key=bool) if is_filled]
    filled = [line for block in blocks for line in block]
    if not filled:
        return "prose"
    if _is_wrapped(blocks, filled):
        return "wrapped"
    return "lines" if _has_sentence_per_line(blocks, filled) else "prose"


def _is_wrapped(blocks: list[list[str]], filled: list[str]) -> bool:
    """Most lines are not the last of their block, are about as wide as the page, and end inside a sentence."""
    inner = [line for block in blocks for line in block[:-1]]
    width = sorted(map(len, filled))[len(filled) * 95 // 100]
    if width > _WRAP_WIDTH or len(inner) * 2 < len(filled):
        return False
    unfinished = sum(not _SENTENCE_END.search(line) for line in inner)
    wide = sum(len(line) * 2 > width for line in inner)
    return unfinished >= 0.65 * len(inner) and wide >= 0.65 * len(inner)


def _has_sentence_per_line(blocks: list[list[str]], filled: list[str]) -> bool:
    """Most lines are one complete sentence; documents have several lines (single lines would be paragraphs)."""
    if len(filled) < 1.5 * len(blocks):
        return False
    sample = filled[:200]
    ended = [line for line in sample if _SENTENCE_END.search(line)]
    num_single = sum(len(split_sentences(line)) == 1 for line in ended)
    return len(ended) >= 0.6 * len(sample) and num_single >= 0.8 * len(ended)


def wrapped_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of hard-wrapped text, each on one line."""
    for block in _BLANK_LINES.split(text):
        if paragraph := join_wrapped(block.split("\n")):
            yield paragraph


def join_wrapped(lines: list[str]) -> str:
    """Lines joined with spaces, but without one after a hyphen or dash and between Chinese characters."""
    text = " ".join(" ".join(lines).split())
    if "- " in text:
        text = ""
        for line in lines:
            words = " ".join(line.split())
            is_glued = len(text) > 1 and text[-1] == "-" and text[-2] != " "
            text += words if is_glued or not text else f" {words}"
        text = text.strip()
    return _CJK_JOIN.sub("", text) if not text.isascii() else text
