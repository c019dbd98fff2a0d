"""TextExample: a text or a pair of texts with its label, and its conversion to a group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import DataError
from litebert.tasks.groups import Group, SequenceForm, TokenSequence
from litebert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TextExample:
    """One row of a file."""

    id: str
    text: str
    text_b: str | None = None
    label: Any = None  # a label, a number or a tuple of labels; None: unknown
    where: str = ""  # file:line, for messages
    group: str = field(default="", repr=False, metadata={"is_shown": False})  # held out together; not part of the text

    def to_input(self) -> Any:
        """The example as server input."""
        return self.text if self.text_b is None else [self.text, self.text_b]


def join_texts(
    examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm, *, num_texts: int = 0
) -> list[TokenSequence]:
    """The input sequence of each example; encoding all texts at once is several times faster.

    `num_texts` is the required number of texts per example; 0: any.
    """
    for example in examples:
        check_num_texts(example, num_texts)
    first = tokenizer.encode_batch([example.text for example in examples])
    second = iter(tokenizer.encode_batch([example.text_b for example in examples if example.text_b is not None]))
    return [
        form.join(ids, None if example.text_b is None else next(second))
        for ids, example in zip(first, examples, strict=True)
    ]


def check_num_texts(example: TextExample, num_texts: int) -> None:
    """Raise unless an example is a single text (1) or a pair (2); 0 accepts both."""
    if num_texts and num_texts != (1 if example.text_b is None else 2):
        has, wants = ("a pair of texts", "single texts") if num_texts == 1 else ("one text", "pairs of texts")
        message = f"'{example.text[:40]}' is {has}, but the model takes {wants}"
        if not example.where:
            raise DataError("wrong-input", message)
        fix = "name only the column text" if num_texts == 1 else "name both columns, text and text_b"
        option = "text" if num_texts == 1 else "text_b"
        raise DataError("wrong-input", f"{example.where}: {message}; {fix}", option=option)


def group_texts(sequences: Sequence[TokenSequence], targets: Sequence[NDArray[Any] | None]) -> list[Group]:
    """One group per sequence."""
    return [Group((sequence,), target) for sequence, target in zip(sequences, targets, strict=True)]


def to_floats(values: NDArray[Any]) -> list[float]:
    """Floats rounded to seven digits, the precision of float32, to keep files readable."""
    return [float(f"{value:.7g}") for value in values.astype(np.float64)]
