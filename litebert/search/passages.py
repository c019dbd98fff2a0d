"""Split documents into passages that fit a model's maximum length."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from litebert.corpus.documents import Document
from litebert.text.tokenizer import Tokenizer


def hash_text(document: Document) -> str:
    """A fingerprint of a document's text; documents with equal fingerprints have equal passages."""
    return hashlib.sha256("\n".join(document.sentences).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def cut_passages(document: Document, tokenizer: Tokenizer, max_tokens: int) -> list[str]:
    """Passages of whole sentences, up to `max_tokens` each; only longer sentences are split."""
    passages: list[list[str]] = []
    room = 0
    for sentence, num_tokens in _iter_short(document.sentences, tokenizer, max_tokens):
        if not passages and not num_tokens:  # only characters that tokenizers drop
            continue
        if num_tokens > room:
            passages.append([])
            room = max_tokens
        passages[-1].append(sentence)
        room -= num_tokens
    return [" ".join(sentences) for sentences in passages]


def _iter_short(sentences: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> Iterator[tuple[str, int]]:
    """Sentences, or parts of long ones, with their number of tokens."""
    for sentence, ids in zip(sentences, tokenizer.encode_batch(sentences), strict=True):
        if len(ids) <= max_tokens or len(sentence) == 1:
            yield sentence, len(ids)
        else:
            parts = _cut_evenly(sentence, math.ceil(len(ids) / max_tokens))
            yield from _iter_short(parts, tokenizer, max_tokens)


def _cut_evenly(text: str, num_parts: int) -> list[str]:
    """Parts of about equal length, split at a space if there is one in the second half of a part."""
    ends = [0]
    for number in range(1, num_parts):
        aim = max(ends[-1] + 1, number * len(text) // num_parts)
        space = text.rfind(" ", (ends[-1] + aim) // 2, aim)
        ends.append(space if space > ends[-1] else aim)
    parts = (text[start:end].strip() for start, end in pairwise([*ends, len(text)]))
    return [part for part in parts if part]
