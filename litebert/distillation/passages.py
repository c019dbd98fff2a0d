"""The texts of a corpus that a teacher embeds: whole sentences in their order, short and long ones in proportion."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.corpus.shards import Corpus
from litebert.text.tokenizer import load_tokenizer

SHORTEST, LONGEST = 8, 128  # tokens of the corpus that a passage aims at; it ends with its sentence
_ORDER = 0  # seeds the order of documents, so that any number of passages is a sample of the whole corpus


class Passage(NamedTuple):
    """A text, and where it comes from."""

    text: str
    name: str  # split, document and number in it
    document: str


def iter_passages(corpus: Corpus) -> Iterator[Passage]:
    """The passages of all documents, in an order that depends on the corpus alone."""
    tokenizer = load_tokenizer(corpus.tokenizer_path)
    ends = np.cumsum([shard.num_documents for shard in corpus.shards])
    for number in np.random.default_rng(_ORDER).permutation(corpus.num_documents).tolist():
        place = int(np.searchsorted(ends, number, side="right"))
        shard = corpus.shards[place]
        sentences = shard.sentences(number - int(ends[place]) + shard.num_documents)
        document = f"{corpus.split}-{number}"
        for turn, part in enumerate(join_sentences(sentences, np.random.default_rng((_ORDER, number)))):
            if text := tokenizer.decode(part.tolist()).strip():
                yield Passage(text, f"{document}-{turn}", document)


def join_sentences(sentences: list[NDArray[np.int64]], rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """All sentences in their order, joined until each passage has the length that was drawn for it."""
    part: list[NDArray[np.int64]] = []
    num_tokens, wanted = 0, 0.0
    for sentence in sentences:
        if not part:
            num_tokens, wanted = 0, math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST)))
        part.append(sentence)
        num_tokens += len(sentence)
        if num_tokens >= wanted:
            yield np.concatenate(part)
            part = []
    if part:
        yield np.concatenate(part)
