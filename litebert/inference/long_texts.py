"""Texts longer than a model reads: cut into overlapping windows whose outputs are pooled, instead of truncated."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from litebert.tasks.groups import Group, SequenceForm, TokenSequence
from litebert.tasks.texts import TextExample, join_texts
from litebert.text.tokenizer import Tokenizer

LongTexts = Literal["truncate", "windows"]
WindowPooling = Literal["mean", "max", "first"]

_OVERLAP = 4  # consecutive windows share a quarter, so that few sentences are split in all of them
_NO_LIMIT = 1 << 40


def encode_windows(examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[list[Group]]:
    """The windows of each text, each a group of its own; a pair is one group, truncated as usual."""
    singles = [example for example in examples if example.text_b is None]
    pairs = [example for example in examples if example.text_b is not None]
    whole = iter(join_texts(singles, tokenizer, replace(form, max_length=_NO_LIMIT)))
    truncated = iter(join_texts(pairs, tokenizer, form))
    windows = (_cut(form, next(whole)) if one.text_b is None else [next(truncated)] for one in examples)
    return [[Group((sequence,)) for sequence in of_text] for of_text in windows]


def _cut(form: SequenceForm, sequence: TokenSequence) -> list[TokenSequence]:
    """A single text's windows, spread evenly: the first begins with the text, the last ends with it."""
    ids, room = sequence.token_ids[1:-1], form.max_length - form.num_special(is_pair=False)
    num_windows = 1 + -(-max(0, len(ids) - room) // (room - room // _OVERLAP))
    starts = np.linspace(0, max(0, len(ids) - room), num_windows).round().astype(int)
    return [form.join(ids[start : start + room].tolist()) for start in starts]


def pool_windows(outputs: Sequence[Any], pooling: WindowPooling, *, sums_to_one: bool = False) -> NDArray[Any]:
    """Pool the outputs of a text's windows into one; maxima of probabilities are rescaled to sum to 1."""
    values = np.array(outputs)
    if pooling == "first" or len(values) == 1:
        pooled: NDArray[Any] = values[0]
    elif pooling == "mean":
        pooled = values.mean(0)
    else:
        pooled = values.max(0)
        pooled = pooled / pooled.sum() if sums_to_one else pooled
    return pooled
