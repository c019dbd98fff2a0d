"""Splits a text into words, which are tagged if a file has character spans instead of words."""

import unicodedata
from typing import NamedTuple

# kana, Chinese characters, and their compatibility forms and extensions
_IDEOGRAPHS = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))


class Word(NamedTuple):
    """A word of a text: text[start:end]."""

    start: int
    end: int


def find_words(text: str) -> list[Word]:
    """The words of a text: runs of letters and digits, and single punctuation, Chinese or Japanese characters."""
    words: list[Word] = []
    start: int | None = None
    for place, character in enumerate(text):
        if _belongs_to_word(character):
            start = place if start is None else start
            continue
        if start is not None:
            words.append(Word(start, place))
            start = None
        if not character.isspace():
            words.append(Word(place, place + 1))
    return words if start is None else [*words, Word(start, len(text))]


def _belongs_to_word(character: str) -> bool:
    return not (character.isspace() or unicodedata.category(character)[0] in "PSC" or _is_ideograph(character))


def _is_ideograph(character: str) -> bool:
    return any(first <= character <= last for first, last in _IDEOGRAPHS)
