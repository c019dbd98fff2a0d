"""The library that runs a tokenizer's vocabulary: sentencepiece or tokenizers, behind one interface."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class Encoding(NamedTuple):
    """Token ids with the span of each in the original text: text[start:end], without the space before a word."""

    token_ids: list[int]
    offsets: list[tuple[int, int]]


class Backend(Protocol):
    """A vocabulary with its rules, run by one library. Never parses special tokens out of text."""

    model_file: str  # the name under which `model` is saved
    model: bytes
    kind: str
    vocabulary: list[str]

    @property
    def identity(self) -> bytes:
        """The content that decides ids: equal for two files that differ only in other things."""
        ...

    @property
    def splits(self) -> dict[int, list[int]]:
        """Pieces that are split further after the library has found them, each with the ids that replace it."""
        ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def normalize(self, text: str) -> str: ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode_with_offsets(self, text: str) -> Encoding: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...
