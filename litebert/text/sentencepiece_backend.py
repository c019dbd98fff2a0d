"""Unigram vocabularies through `sentencepiece`: the official ALBERT model and the ones we train.

sentencepiece encodes the same vocabulary several times faster than `tokenizers` does, and the released models were made
with it. Our normalization (normalize.py) comes first; then the model's own rules (nmt_nfkc) apply.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

import sentencepiece

from litebert.core.errors import ConfigError, DataError, suggest
from litebert.text.backend import Encoding
from litebert.text.normalize import Normalization, align, normalize

MODEL_FILE = "spiece.model"
SPACE = "▁"  # how SentencePiece writes the space before a word

# A piece such as "▁2010," (a digit, then a comma) is split into "▁2010" and ",".
#   intended    as Google meant it: the parts of a piece inside a word do not get a new "▁"
#   google_py3  as Google's code does it on Python 3: they do, because a str is compared with bytes
#   off         the piece is left alone, as transformers 5 does
DigitComma = Literal["intended", "google_py3", "off"]


class SentencePieceBackend:
    """Text to ids through a SentencePiece model, with Google's normalization and digit-comma rule around it."""

    model_file = MODEL_FILE
    kind = "unigram"

    def __init__(self, model: bytes, normalization: Normalization, digit_comma: DigitComma) -> None:
        self.model = model
        self.normalization = normalization
        self.digit_comma = digit_comma
        self._processor = load_processor(model)
        self.vocabulary: list[str] = [self._processor.id_to_piece(i) for i in range(len(self._processor))]
        self._splits = _plan_digit_splits(self._processor, self.vocabulary, digit_comma)
        self._split_ids = frozenset(self._splits)

    @property
    def identity(self) -> bytes:
        return self.model

    @property
    def splits(self) -> dict[int, list[int]]:
        return {token_id: [part for part, _ in parts] for token_id, parts in self._splits.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the ids in addition to the model."""
        return {"normalization": asdict(self.normalization), "digit_comma": self.digit_comma}

    def normalize(self, text: str) -> str:
        text = self._processor.normalize(normalize(text, self.normalization))
        return text.replace(SPACE, " ").removeprefix(" ")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        policy = self.normalization
        normalized = [normalize(text, policy) for text in texts]
        # one thread: corpus building starts several processes instead, which also share the normalization
        batch: list[list[int]] = self._processor.encode(normalized, num_threads=1)
        if not self._splits:
            return batch
        return [token_ids if self._split_ids.isdisjoint(token_ids) else self._split(token_ids) for token_ids in batch]

    def encode_with_offsets(self, text: str) -> Encoding:
        ours = align(text, self.normalization)
        # encoding twice is twice as fast as the library's own offsets, which it counts in bytes first
        theirs = zip(self._processor.encode(ours.text), self._processor.encode(ours.text, out_type=str), strict=True)
        visible, origins = self._processor.normalize(ours.text, with_offsets=True)
        ends = _next_origins(origins)
        token_ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        position = 0  # in `visible`, which the pieces cover without gaps
        for token_id, piece in theirs:
            for part_id, length in self._parts(token_id, len(piece)):
                first = position + (length > 0 and visible[position] == SPACE)
                position += length
                token_ids.append(part_id)
                if first < position:
                    offsets.append((ours.starts[origins[first]], ours.ends[ends[position - 1] - 1]))
                else:  # a lone "▁" covers nothing: an empty span where the next character begins
                    place = ours.starts[origins[first]] if origins[first] < len(ours.starts) else len(text)
                    is_inside = bool(offsets) and place < offsets[-1][1]  # one character that became several words
                    offsets.append(offsets[-1] if is_inside else (place, place))
        return Encoding(token_ids, offsets)

    def decode(self, token_ids: Sequence[int]) -> str:
        text: str = self._processor.decode(list(token_ids))
        return text

    def _split(self, token_ids: list[int]) -> list[int]:
        splits = self._splits
        return [part for token_id in token_ids for part, _ in splits.get(token_id, ((token_id, 0),))]

    def _parts(self, token_id: int, length: int) -> Sequence[tuple[int, int]]:
        return self._splits.get(token_id, ((token_id, length),))


def parse_digit_comma(mode: str) -> DigitComma:
    """The mode, or a ConfigError that names the valid ones."""
    for valid in get_args(DigitComma):
        if mode == valid:
            return valid  # type: ignore[no-any-return]
    raise ConfigError("unknown-value", f"unknown digit-comma mode '{mode}'; {suggest(mode, get_args(DigitComma))}")


def load_processor(model: bytes) -> Any:
    """The library's processor for a model; raises for other files and for models with byte fallback."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise DataError("corrupt-tokenizer", f"not a SentencePiece model ({error}); is the file complete?") from error
    if any(processor.is_byte(i) for i in range(len(processor))):
        raise DataError(
            "unsupported-tokenizer",
            "this SentencePiece model uses byte fallback, which is not supported; load its tokenizer.json instead",
        )
    return processor


Splits = dict[int, tuple[tuple[int, int], ...]]


def _plan_digit_splits(processor: Any, vocabulary: list[str], mode: DigitComma) -> Splits:
    """For each piece that the rule splits: its parts as (id, number of characters). The context does not matter."""
    if mode == "off":
        return {}
    touched = [i for i, p in enumerate(vocabulary) if len(p) > 1 and p.endswith(",") and p[-2].isdigit()]
    splits: Splits = {}
    for token_id in touched:
        piece = vocabulary[token_id]
        parts = processor.encode(piece[:-1].replace(SPACE, ""), out_type=str)
        if mode == "intended" and not piece.startswith(SPACE) and parts[0].startswith(SPACE):
            parts = [part for part in (parts[0].removeprefix(SPACE), *parts[1:]) if part]
        lengths = [len(part) for part in parts]
        if parts[0].startswith(SPACE) and not piece.startswith(SPACE):
            lengths[0] -= 1  # google_py3: a "▁" that is not in the text
        token_ids = [processor.piece_to_id(part) for part in parts]
        splits[token_id] = (*zip(token_ids, lengths, strict=True), (processor.piece_to_id(","), 1))
    return splits


def _next_origins(origins: list[int]) -> list[int]:
    """For each character of SentencePiece's text, the end of the original character it comes from: the next origin.

    A ligature that became several characters is the origin of all of them.
    """
    ends = origins[1:]
    for i in range(len(ends) - 2, -1, -1):
        if ends[i] == origins[i]:
            ends[i] = ends[i + 1]
    return ends
