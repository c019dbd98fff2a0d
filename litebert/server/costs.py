"""The cost of an input: characters after normalization, tokens over all windows, and its share of the queue.

Limiting the request size does not bound the computation: one character (U+FDFA) becomes eighteen after normalization,
and a long passage is read in overlapping windows.
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from litebert.inference.predictor import Predictor
from litebert.server.functions import Function
from litebert.tasks.groups import Group
from litebert.text.tokenizer import Tokenizer

_LETTERS_PER_TOKEN = 4  # estimate for texts cut to the model's length; only used to share the queue
_BYTES_PER_LETTER = 4  # at most; a token has at least one byte


def count_characters(value: Any, tokenizer: Tokenizer, most: int, counted: dict[str, int] | None = None) -> int:
    """The characters of all texts in an input, plus one between texts, because an empty word is a token too.

    A text counts as sent or as normalized, whichever is longer. An input longer than `most` as sent is not normalized.
    `counted` caches the counts of texts that occur in several inputs.
    """
    known = {} if counted is None else counted

    def measure(text: str) -> int:
        if text not in known:
            known[text] = len(text) if text.isascii() else max(len(text), len(tokenizer.normalize(text)))
        return known[text]

    as_sent = _count(value, len)
    if as_sent > most:
        return as_sent - 1
    return _count(value, measure) - 1


def _count(value: Any, measure: Callable[[str], int]) -> int:
    if isinstance(value, str):
        return 1 + measure(value)
    if isinstance(value, BaseModel):
        value = [getattr(value, name) for name in type(value).model_fields]
    return sum(_count(one, measure) for one in value)


def estimate_cost(function: Function, predictor: Predictor, value: Any, num_characters: int) -> int:
    """An input's share of the queue, in characters that the model reads.

    Characters count once per window that contains them, and a context counts once per choice.
    """
    room = _LETTERS_PER_TOKEN * predictor.form().max_length
    if choices := getattr(value, "choices", ()):
        return len(choices) * min(num_characters, room)
    if function.to_examples is None or num_characters <= room:
        return min(num_characters, room)
    stride = _LETTERS_PER_TOKEN * _stride(predictor)
    return room * (1 + -(-(num_characters - room) // stride))


def encode_windows(function: Function, predictor: Predictor, one: Any, num_characters: int, most: int) -> Group | None:
    """The windows of an input that may have more than `most` tokens over all of them; None for others."""
    if function.to_examples is None:
        return None
    num_windows = 1 + _BYTES_PER_LETTER * num_characters // _stride(predictor)
    if num_windows * predictor.form().max_length <= most:
        return None
    groups = predictor.task.encode(function.to_examples(predictor, one), predictor.tokenizer, predictor.form())
    return groups[0] if groups else None


def _stride(predictor: Predictor) -> int:
    return min(getattr(predictor.task, "stride", predictor.form().max_length), predictor.form().max_length)
