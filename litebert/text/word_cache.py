"""A cache of encoded words: text repeats its words, and `tokenizers` spends most of its time on repeated ones.

Correct only if the ids of a text are the ids of its parts in a row: BERT's and GPT-2's rules never look across a space,
and BERT's never across a Chinese character. Any other tokenizer.json is encoded by its library.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from litebert.text.chinese_script import find_charsmap

_CHINESE = "handle_chinese_chars"
Cut = Callable[[str], list[str]]

MAX_WORDS = 200_000  # about 70 MB; then the cache is emptied
# For printable ASCII, which is most text, words as BERT and GPT-2 define them
_BERT_WORD = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")
_GPT2_WORD = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 ]+")
# For everything else, the parts between spaces, in which the library finds the words
_SPACES_OR_CHINESE = re.compile(r"[一-鿿]|[^ 一-鿿]+")
_WORD_WITH_SPACE = re.compile(r" ?[^ ]+")
# After a Chinese character, `tokenizers` may replace these together with it when it converts scripts
_MARK = re.compile("[\u0300-\u07ff]")
_ODD_SPACE = re.compile(r"  |[^\S ]| $")


class WordCache:
    """`encode` with a cache: the same ids, several times faster on real text."""

    def __init__(self, cut: Cut, encode: Callable[[Sequence[str]], list[list[int]]]) -> None:
        self._cut = cut
        self._encode = encode
        self._known: dict[str, tuple[int, ...]] = {}  # the garbage collector does not track tuples of integers

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if len(self._known) > MAX_WORDS:
            self._known.clear()
        known = self._known
        cut = list(map(self._cut, texts))
        unseen = list(set(chain.from_iterable(cut)).difference(known))
        known.update(zip(unseen, map(tuple, self._encode(unseen)), strict=True))
        return [list(chain.from_iterable(map(known.__getitem__, words))) for words in cut]


def find_cut(facts: dict[str, Any]) -> Cut | None:
    """How to cut text for a tokenizer.json with this content; None if its rules may look across parts."""
    if any(not token["special"] for token in facts["added_tokens"]):
        return None  # may contain spaces
    normalizer = facts["normalizer"] or {"type": None}
    splitter = facts["pre_tokenizer"] or {"type": None}
    if splitter["type"] == "BertPreTokenizer" and find_charsmap(normalizer) and normalizer["normalizers"][1][_CHINESE]:
        return lambda text: [text] if _MARK.search(text) else _cut_spaces_and_chinese(text)
    if splitter["type"] == "BertPreTokenizer" and normalizer["type"] == "BertNormalizer":
        return _cut_spaces_and_chinese if normalizer[_CHINESE] else _cut_spaces
    if (
        splitter["type"] == "ByteLevel"
        and splitter.get("use_regex", True)
        and not splitter.get("add_prefix_space", True)  # every piece would get a space of its own
        and normalizer["type"] in (None, "Lowercase")
    ):
        return _cut_before_spaces
    return None


def _cut_spaces(text: str) -> list[str]:
    return _BERT_WORD.findall(text) if _is_plain(text) else text.split(" ")


def _cut_spaces_and_chinese(text: str) -> list[str]:
    return _BERT_WORD.findall(text) if _is_plain(text) else _SPACES_OR_CHINESE.findall(text)


def _cut_before_spaces(text: str) -> list[str]:
    """GPT-2 joins a space to the next word, but several spaces are one word: such a text is not cut."""
    if _ODD_SPACE.search(text):
        return [text]
    return _GPT2_WORD.findall(text) if _is_plain(text) else _WORD_WITH_SPACE.findall(text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
