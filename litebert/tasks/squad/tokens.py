"""Encodes paragraphs and questions to token ids, with the character offsets of each paragraph token.

Encoding is the slow part of building features, and depends only on the file and the tokenizer: it is done once
per paragraph, however many questions it has, and cached on disk.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from litebert.core.caches import cache_directory
from litebert.core.files import atomic_path
from litebert.tasks.squad.reading import Question
from litebert.text.tokenizer import Tokenizer

CACHE_VERSION = 1
MIN_CACHED = 1000  # questions; fewer are encoded in no noticeable time

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SquadTokens:
    """The concatenated tokens of all distinct paragraphs and questions. Row i is values[bounds[i] : bounds[i + 1]]."""

    context_ids: npt.NDArray[np.int32]
    context_starts: npt.NDArray[np.int32]  # token -> first character in its paragraph
    context_ends: npt.NDArray[np.int32]  # token -> character after the last; equal to the start for a bare "▁"
    context_bounds: IntArray
    question_ids: npt.NDArray[np.int32]
    question_bounds: IntArray
    paragraphs: IntArray  # question -> its paragraph

    @property
    def context_lengths(self) -> IntArray:
        return np.diff(self.context_bounds)

    @property
    def question_lengths(self) -> IntArray:
        return np.diff(self.question_bounds)


def encode_squad(questions: Sequence[Question], tokenizer: Tokenizer, cache: Path | None = None) -> SquadTokens:
    """Encode all paragraphs and questions; large files are cached in `cache`, or in the user's cache folder."""
    if len(questions) < MIN_CACHED:
        return _encode(questions, tokenizer)
    file = (cache or cache_directory()) / f"squad-{_name_content(questions, tokenizer)}.npz"
    kept = _read_cache(file)
    if kept is not None:
        return kept
    tokens = _encode(questions, tokenizer)
    # an unwritable folder or a full disk: not cached, so encoded again next time
    with suppress(OSError), atomic_path(file) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **{field.name: getattr(tokens, field.name) for field in fields(tokens)})
    return tokens


def locate_spans(
    tokens: SquadTokens, questions: IntArray, starts: IntArray, ends: IntArray
) -> tuple[IntArray, IntArray]:
    """The first and the last token that overlap each character span in the paragraphs of some questions.

    Tokens are counted within the paragraph. If no token overlaps a span, because normalization removed all of its
    characters, the last is before the first.
    """
    # offsets are shifted per paragraph, so that one sorted array holds all paragraphs
    shift = np.int64(1) << 32
    rows = np.repeat(np.arange(len(tokens.context_bounds) - 1), tokens.context_lengths) * shift
    paragraphs = tokens.paragraphs[questions]
    first = np.searchsorted(tokens.context_ends + rows, starts + paragraphs * shift, side="right")
    last = np.searchsorted(tokens.context_starts + rows, ends + paragraphs * shift, side="left") - 1
    offsets = tokens.context_bounds[paragraphs]
    return first - offsets, last - offsets


def _encode(questions: Sequence[Question], tokenizer: Tokenizer) -> SquadTokens:
    numbers: dict[str, int] = {}
    for question in questions:
        numbers.setdefault(question.context, len(numbers))
    contexts = [tokenizer.encode_with_offsets(context) for context in numbers]
    spans = _join([offset for encoding in contexts for offset in encoding.offsets]).reshape(-1, 2)
    asked = tokenizer.encode_batch([question.text for question in questions])
    return SquadTokens(
        context_ids=_join([token_id for encoding in contexts for token_id in encoding.token_ids]),
        context_starts=np.ascontiguousarray(spans[:, 0]),
        context_ends=np.ascontiguousarray(spans[:, 1]),
        context_bounds=_bounds([encoding.token_ids for encoding in contexts]),
        question_ids=_join([token_id for token_ids in asked for token_id in token_ids]),
        question_bounds=_bounds(asked),
        paragraphs=np.array([numbers[question.context] for question in questions], dtype=np.int64),
    )


def _join(values: Sequence[int] | Sequence[tuple[int, int]]) -> npt.NDArray[np.int32]:
    return np.array(values, dtype=np.int32)


def _bounds(rows: Sequence[Sequence[int]]) -> IntArray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def _name_content(questions: Sequence[Question], tokenizer: Tokenizer) -> str:
    """A cache key that changes with the texts, the tokenizer or our format."""
    digest = hashlib.sha256(f"{CACHE_VERSION} {tokenizer.fingerprint}".encode())
    context = ""
    for question in questions:
        texts = [question.text] if question.context is context else [question.text, question.context]
        context = question.context
        data = json.dumps(texts).encode()  # JSON escapes lone surrogates, which UTF-8 cannot encode
        digest.update(data)
    return digest.hexdigest()[:16]


def _read_cache(file: Path) -> SquadTokens | None:
    """The cached tokens; None if missing or unusable, in which case the cache is written again, never repaired."""
    if not file.is_file():
        return None
    try:
        with np.load(file) as arrays:
            return SquadTokens(**{field.name: arrays[field.name] for field in fields(SquadTokens)})
    except (BadZipFile, EOFError, KeyError, ValueError):
        return None
