"""What a tokenizer stands on: one of two libraries behind the same small face."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class Encoding(NamedTuple):
    """Ids, and for each of them its place in the original text: text[start:end], without the space before a word."""

    token_ids: list[int]
    offsets: list[tuple[int, int]]


class Front(Protocol):
    """A vocabulary with its rules, in the library that made it. Never parses special tokens out of text."""

    model_file: str  # the name under which `model` is saved
    model: bytes
    kind: str
    vocabulary: list[str]

    @property
    def identity(self) -> bytes:
        """What of the model decides ids; equal where the files differ in anything else."""
        ...

    @property
    def splits(self) -> dict[int, list[int]]:
        """Pieces that are cut further after the library has found them, and what they become."""
        ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def normalize(self, text: str) -> str: ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode_with_offsets(self, text: str) -> Encoding: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...
