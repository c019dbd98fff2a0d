"""Which pieces begin a word, as n-gram and whole-word masking need to know.

For languages written with spaces, a table over the vocabulary is enough. Chinese has none: in the table each character
begins a "word", and jieba, which reads the whole sentence, finds the real words.
"""

import logging
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError

# Where words come from: the table alone, or jieba for runs of Chinese characters.
Words = Literal["pieces", "jieba"]

# As the released ALBERT was trained: ' = < > are not in it.
PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def find_word_starts(kind: str, vocabulary: Sequence[str], special_ids: frozenset[int]) -> npt.NDArray[np.bool_]:
    """For each piece of the vocabulary, whether it begins a word. Special tokens always do."""
    rule = {"unigram": _starts_unigram, "wordpiece": _starts_wordpiece, "bpe": _starts_byte_level}[kind]
    starts = np.array([rule(piece) for piece in vocabulary], dtype=np.bool_)  # (V,)
    if not starts.any():  # a BPE that marks word ends instead of beginnings: each piece is its own word
        starts[:] = True
    starts[list(special_ids)] = True
    return starts


def find_chinese_continuations(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """The indices of tokens that continue a Chinese word, according to jieba."""
    if not any(map(_is_chinese, text)):
        return []
    word_starts = set(_iter_word_starts(text))
    return [
        index
        for index, (start, end) in enumerate(offsets)
        if start < end and _is_chinese(text[start]) and start not in word_starts
    ]


def check_jieba() -> None:
    """Raise if jieba is not installed."""
    try:
        import jieba
    except ImportError:
        raise ConfigError(
            "missing-package", "Chinese word segmentation needs jieba: pip install 'litebert[chinese]'"
        ) from None
    jieba.setLogLevel(logging.WARNING)  # it announces its dictionary on stderr


def _starts_unigram(piece: str) -> bool:
    if piece.startswith(("▁", "<")) or piece in PUNCTUATION:
        return True
    return any(character not in LETTERS and character not in PUNCTUATION for character in piece)


def _starts_wordpiece(piece: str) -> bool:
    return not piece.startswith("##")


def _starts_byte_level(piece: str) -> bool:
    return piece.startswith(
        ("Ġ", "Ċ", "ĉ", "▁")
    )  # the byte-level letters for space, newline and tab; SentencePiece's space


def _iter_word_starts(text: str) -> Iterator[int]:
    import jieba

    return accumulate(map(len, jieba.cut(text)), initial=0)


def _is_chinese(character: str) -> bool:
    return "一" <= character <= "鿿" or "㐀" <= character <= "䶿" or "\U00020000" <= character <= "\U0003ffff"
