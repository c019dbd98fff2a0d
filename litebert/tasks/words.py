"""Splits a text into words, which are tagged if a file has character spans instead of words."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal, NamedTuple

# Thai and Lao, Burmese, Khmer, kana, Chinese characters and their extensions: letters of scripts without spaces, as
# the inside of a character class
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = re.compile(f"[{UNSPACED}]")
_NUM_SAMPLED = 1000  # texts by which a language is recognized

# kana, Chinese characters, and their compatibility forms and extensions
_IDEOGRAPHS = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))


# How the texts of a task are cut: at spaces (False), by `find_words` (True), or into characters
Cut = bool | Literal["characters"]


class Word(NamedTuple):
    """A word of a text: text[start:end]."""

    start: int
    end: int


def has_no_spaces(texts: Iterable[str]) -> bool:
    """Whether most letters of the texts are from scripts without spaces between words, such as Chinese."""
    num_letters = num_unspaced = 0
    for text, _ in zip(texts, range(_NUM_SAMPLED), strict=False):
        num_letters += sum(map(str.isalnum, text))
        num_unspaced += len(_UNSPACED.findall(text))
    return 2 * num_unspaced > num_letters


def is_unspaced(character: str) -> bool:
    """Whether a character is of a script without spaces between words."""
    return bool(_UNSPACED.match(character))


def cut_text(text: str, *, splits_words: Cut) -> list[Word]:
    """The words of a text to be tagged: cut at white space, or as the training texts were (`splits_words`).

    A text of a script without spaces would be one word; if it has no white space, `find_words` cuts it too.
    """
    if splits_words == "characters":
        return [Word(place, place + 1) for place, character in enumerate(text) if not character.isspace()]
    at_spaces = [Word(*match.span()) for match in re.finditer(r"\S+", text)]
    is_unspaced = len(at_spaces) == 1 and len(_UNSPACED.findall(text)) > 1
    return find_words(text) if splits_words or is_unspaced else at_spaces


def find_words(text: str) -> list[Word]:
    """The words of a text: runs of letters and digits, and single punctuation, Chinese or Japanese characters."""
    words: list[Word] = []
    start: int | None = None
    for place, character in enumerate(text):
        if belongs_to_word(character):
            start = place if start is None else start
            continue
        if start is not None:
            words.append(Word(start, place))
            start = None
        if not character.isspace():
            words.append(Word(place, place + 1))
    return words if start is None else [*words, Word(start, len(text))]


def belongs_to_word(character: str) -> bool:
    """Whether `find_words` joins this character with its neighbours."""
    return not (character.isspace() or unicodedata.category(character)[0] in "PSC" or _is_ideograph(character))


def _is_ideograph(character: str) -> bool:
    return any(first <= character <= last for first, last in _IDEOGRAPHS)
