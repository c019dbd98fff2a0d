"""Texts of a few kilobytes, and options that cut them into many parts."""

import random
from pathlib import Path

from litebert.corpus.build import BuildOptions
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import ReadOptions
from litebert.corpus.shards import SHARDS, Corpus

LIMITS = Limits(chunk=2000, shard=6000, line=4000, whole_file=4000)
OPTIONS = BuildOptions(read=ReadOptions(format="lines", limits=LIMITS), valid_share=0.2, is_quiet=True)
WORDS = ["the", "a", "of", "and", "in", "to", "cat", "dog", "sat", "ran", "mat", "house"]


def text_of(seed: int, *, num_documents: int = 60) -> str:
    rng = random.Random(seed)
    documents = []
    for _ in range(num_documents):
        sentences = [" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) + "." for _ in range(rng.randint(1, 6))]
        documents.append("\n".join(sentences) + "\n")
    return "\n".join(documents)


def files_of(directory: Path) -> dict[str, bytes]:
    """Everything in a corpus but the ledger, which has times of files in it."""
    wanted = [directory / "manifest.json", *(directory / SHARDS).iterdir()]
    return {path.name: path.read_bytes() for path in sorted(wanted)}


def documents_of(corpus: Corpus) -> set[bytes]:
    return {
        b"|".join(sentence.tobytes() for sentence in shard.sentences(i))
        for shard in corpus.shards
        for i in range(shard.num_documents)
    }
