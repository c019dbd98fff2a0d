"""Pairs from plain text alone: two crops of one document belong together (arXiv:2508.03453).

A crop is a run of whole words. Its length is drawn between a few words and about a paragraph, each length as likely in
proportion, so that short crops learn to find long ones. Crops of a document may overlap.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import MANIFEST, Corpus, Shard, ShardContent, open_corpus
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.kinds.embedding import EmbeddedText
from litebert.text.tokenizer import load_tokenizer

SHORTEST, LONGEST = 4, 96  # words of a crop
FEWEST = 8  # words of a document that is used
WORDS_PER_PAIR, MAX_PER_DOCUMENT = 64, 8  # longer documents give more pairs
MAX_PAIRS, MAX_DEV_PAIRS = 200_000, 1_000
_COLUMNS = ("dev", "test", "text", "text_b", "label", "group", "has_header")


def is_corpus(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def read_crops(path: Path, options: TableOptions) -> tuple[dict[str, list[EmbeddedText]], list[str]]:
    """Pairs of crops from a corpus: from its text, and for dev from its validation split; and notes to show.

    The pairs are a function of the corpus. A model that is only scored needs no training pairs.
    """
    for option in _COLUMNS:
        if getattr(options, option) != getattr(TableOptions(), option):
            argument = option.removeprefix("has_")
            raise ConfigError(
                "conflicting-options",
                f"{argument} does not apply to a corpus, which has no columns; leave it out",
                option=argument,
            )
    train = _cut_split(open_corpus(path, "train"), MAX_PAIRS, MAX_PER_DOCUMENT) if options.is_learned else []
    dev = _cut_split(open_corpus(path, "valid"), MAX_DEV_PAIRS, 1)
    if not (train if options.is_learned else dev):
        split = "train" if options.is_learned else "valid"
        raise DataError("too-few-examples", f"{path}: no document of its {split} split has {FEWEST} words for crops")
    notes = [f"{len(train):,} pairs of crops from the corpus, {len(dev):,} from its validation split"]
    return {"train": train} | ({"dev": dev} if dev else {}), notes if options.is_learned else []


def _cut_split(corpus: Corpus, most: int, per_document: int) -> list[EmbeddedText]:
    """At most `most` pairs, from documents that are spread evenly over the split."""
    tokenizer = load_tokenizer(corpus.tokenizer_path)
    every = max(1, math.ceil(corpus.num_documents / most))
    per_document = max(1, min(per_document, most // max(1, corpus.num_documents)))
    pairs: list[EmbeddedText] = []
    number = 0
    for shard in corpus.shards:
        for document, pair in _cut_shard(
            shard, range(-number % every, shard.num_documents, every), per_document, number
        ):
            texts = [tokenizer.decode(crop.tolist()).strip() for crop in pair]
            if all(texts):
                name = f"{corpus.split}-{document}"
                where = f"{corpus.path}: document {document} of {corpus.split}"
                pairs.append(EmbeddedText(f"{name}-{len(pairs)}", texts[0], texts[1], 1.0, where, name))
        number += shard.num_documents
        if len(pairs) >= most:
            break
    return pairs[:most]


def _cut_shard(
    shard: Shard, documents: range, per_document: int, first_number: int
) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
    """The token ids of both crops of each pair, with the number of their document in the split."""
    content = shard.content()
    for document in documents:
        words = find_words(content, document)
        number = first_number + document
        for turn in range(min(per_document, max(1, (len(words) - 1) // WORDS_PER_PAIR))):
            if len(words) > FEWEST:
                rng = np.random.default_rng((number, turn))
                yield number, [content.token_ids[slice(*draw_crop(words, rng))] for _ in range(2)]


def find_words(content: ShardContent, document: int) -> NDArray[np.int64]:
    """The token offset at which each word of a document begins, and the document's end."""
    start, end = content.sentence_offsets[content.document_offsets[document : document + 2]]
    return np.append(start + np.flatnonzero(content.word_starts[start:end]), end)


def draw_crop(words: NDArray[np.int64], rng: np.random.Generator) -> tuple[int, int]:
    """The first token of a crop of whole words, and the end of its last one."""
    num_words = len(words) - 1
    length = min(num_words, int(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST + 1)))))
    first = int(rng.integers(num_words - length + 1))
    return int(words[first]), int(words[first + length])
