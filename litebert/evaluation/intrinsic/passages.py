"""The documents to test on, and those a probe or baseline may learn from. No document is in both."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.batches.random_kernels import combine, hash_integers, permute
from litebert.batches.rows import Text
from litebert.batches.segments import Outline, outline_shards
from litebert.core.errors import DataError
from litebert.corpus.shards import Corpus, Shard, Split, open_corpus

_HALVES, _SHARDS = range(2)  # the purpose of a random key


@dataclass(frozen=True)
class Passages:
    """Some of the documents of a corpus."""

    name: str  # description of the documents, for display
    where: str
    shards: tuple[Shard, ...]
    outline: Outline
    is_ours: NDArray[np.bool_]  # by document

    @property
    def text(self) -> Text:
        return Text(self.shards, self.outline)

    @property
    def num_documents(self) -> int:
        return int(self.is_ours.sum())

    def find_documents(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the document that contains each token address."""
        starts = self.outline.sentence_starts[self.outline.document_starts]
        return np.searchsorted(starts, addresses, "right") - 1


def open_passages(path: Path, split: Split, *, enough_tokens: int, seed: int) -> tuple[Passages, Passages]:
    """The documents to learn from, and those to test on.

    When testing on the validation split, `enough_tokens` of the training split are for learning, if there is one.
    Otherwise the split is halved by document: by its hash, so that copies of a document are in the same half.
    """
    corpus = open_corpus(path, split)
    if not corpus.num_documents:
        other = "train" if split == "valid" else "valid"
        raise DataError(
            "empty-split",
            f"the {split} split of {path} is empty: evaluate its {other} split, "
            f"or rebuild the corpus with {'a larger' if split == 'valid' else 'a smaller'} valid_share",
            option="split",
        )
    training = open_corpus(path, "train")
    if split == "valid" and training.num_documents:
        shards = _take_shards(training, enough_tokens, seed)
        return _all_of(shards, path, "the train split"), _all_of(corpus.shards, path, "the valid split")
    outline = outline_shards(corpus.shards)
    is_learned = _draw_half(corpus.shards, seed)
    halves = f"half of the {split} documents", f"the other half of the {split} documents"
    learned, tested = (
        Passages(name, str(path), corpus.shards, outline, chosen)
        for name, chosen in zip(halves, (is_learned, ~is_learned), strict=True)
    )
    return learned, tested


def _all_of(shards: tuple[Shard, ...], path: Path, name: str) -> Passages:
    outline = outline_shards(shards)
    return Passages(name, str(path), shards, outline, np.ones(len(outline.document_starts) - 1, np.bool_))


def _take_shards(corpus: Corpus, enough_tokens: int, seed: int) -> tuple[Shard, ...]:
    """Shards in random order until there are enough tokens: planning a large corpus would take minutes."""
    order = permute(hash_integers(seed, _SHARDS), len(corpus.shards))
    tokens_before = np.cumsum([0, *(corpus.shards[k].num_tokens for k in order[:-1])])
    return tuple(corpus.shards[k] for k in order[tokens_before < enough_tokens])


def _draw_half(shards: tuple[Shard, ...], seed: int) -> NDArray[np.bool_]:
    key = hash_integers(seed, _HALVES)
    hashes = np.concatenate([shard.document_hashes for shard in shards])
    return np.array([combine(key, value) & np.uint64(1) for value in hashes], np.bool_)
