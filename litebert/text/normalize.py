"""Normalization of text before SentencePiece, as a value that is saved with the tokenizer.

In Google's ALBERT each script that calls the tokenizer normalizes on its own, and a script that forgot it fed the model
text unlike any it was trained on. Here normalization belongs to the tokenizer. (For WordPiece and byte-level BPE it is
part of tokenizer.json.)
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

UnicodeForm = Literal["none", "NFKC", "NFKD"]


@dataclass(frozen=True)
class Normalization:
    """The steps in order: collapse white space, apply a Unicode normal form, drop accents, lower-case."""

    collapses_whitespace: bool = True
    unicode_form: UnicodeForm = "NFKD"
    drops_accents: bool = True  # every character with a canonical combining class, as Google's ALBERT
    lowercase: bool = True


class Alignment(NamedTuple):
    """A normalized text, and for each of its characters the span it came from: original[start:end]."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def normalize(text: str, policy: Normalization) -> str:
    """The normalized text. Lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    if policy.collapses_whitespace:
        text = " ".join(text.split())
    if not text.isascii():
        text = _normalize_unicode(replace_surrogates(text), policy)
    return text.lower() if policy.lowercase else text


def align(text: str, policy: Normalization) -> Alignment:
    """`normalize` with offsets into the original text; slower."""
    normalized = normalize(text, policy)
    if text.isascii() and len(normalized) == len(text):  # most text: nothing moved
        return Alignment(normalized, range(len(text)), range(1, len(text) + 1))
    runs = [match.span() for match in re.finditer(r"\S+", text)] if policy.collapses_whitespace else [(0, len(text))]
    starts: list[int] = []
    ends: list[int] = []
    for index, (start, end) in enumerate(runs):
        if index > 0:  # the one space that is left between two runs
            starts.append(runs[index - 1][1])
            ends.append(start)
        for cluster_start, cluster_end, length in _measure_clusters(text, start, end, policy):
            starts.extend([cluster_start] * length)
            ends.extend([cluster_end] * length)
    return Alignment(normalized, starts, ends)


def replace_surrogates(text: str) -> str:
    """The text with each lone surrogate (from a badly decoded file) replaced by U+FFFD; the length does not change."""
    return _SURROGATES.sub("�", text)


_SURROGATES = re.compile("[\ud800-\udfff]")


def _normalize_unicode(text: str, policy: Normalization) -> str:
    if policy.unicode_form != "none":
        text = unicodedata.normalize(policy.unicode_form, text)
    if policy.drops_accents and not text.isascii():
        text = _combining_characters(0x300, 0xFFFF).sub("", text)
        if _BEYOND_BMP.search(text):
            text = _combining_characters(0x10000, sys.maxunicode).sub("", text)
    return text


_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


@cache
def _combining_characters(first: int, last: int) -> re.Pattern[str]:
    """A pattern for those of a range. `re` has a bitmap for classes of 16-bit characters, many times faster."""
    marks = (chr(code) for code in range(first, last + 1) if unicodedata.combining(chr(code)))
    return re.compile(f"[{''.join(marks)}]+")


def _measure_clusters(text: str, start: int, end: int, policy: Normalization) -> list[tuple[int, int, int]]:
    """(start, end, normalized length) of each part of text[start:end] that is normalized on its own."""
    if text[start:end].isascii():
        return [(position, position + 1, 1) for position in range(start, end)]
    spans = _split_at_starters(text, start, end)
    lengths = [len(normalize(text[a:b], policy)) for a, b in spans]
    length = len(normalize(text[start:end], policy))
    if sum(lengths) != length:  # composed across starters (Hangul jamo under NFKC): the whole stretch is one
        return [(start, end, length)]
    return [(a, b, n) for (a, b), n in zip(spans, lengths, strict=True)]


def _split_at_starters(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of text[start:end] that are one base character and the combining characters after it."""
    cuts = [
        position for position in range(start, end) if position == start or not unicodedata.combining(text[position])
    ]
    return list(zip(cuts, [*cuts[1:], end], strict=True))
