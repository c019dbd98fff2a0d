"""Corpora in memory in which every token is unique, so that a batch shows exactly which text it was made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import BatchOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.batches.rows import Rows
from litebert.batches.stream import Stream
from litebert.corpus.shards import offsets

PAD, UNK, CLS, SEP, MASK, FIRST = range(6)  # ids of text begin at FIRST: the token at address k is FIRST + k

Documents = Sequence[Sequence[int]]  # the lengths of each document's sentences


@dataclass(frozen=True)
class ToyShard:
    token_ids: NDArray[np.uint32]
    word_starts: NDArray[np.uint8]
    sentence_offsets: NDArray[np.int64]
    document_offsets: NDArray[np.int64]


@dataclass(frozen=True)
class ToyCorpus:
    shards: tuple[ToyShard, ...]
    documents: Documents
    is_word_start: NDArray[np.bool_]  # by address
    path: Path = Path("toy")

    @property
    def sentence_of(self) -> NDArray[np.int64]:
        """Address -> sentence."""
        lengths = [length for document in self.documents for length in document]
        return np.repeat(np.arange(len(lengths)), lengths)

    @property
    def document_of(self) -> NDArray[np.int64]:
        """Address -> document."""
        return np.repeat(np.arange(len(self.documents)), [sum(document) for document in self.documents])


@dataclass(frozen=True)
class ToyTokenizer:
    vocab_size: int
    special_ids: frozenset[int] = field(default=frozenset(range(FIRST)))
    pad_id: int = PAD
    cls_id: int = CLS
    sep_id: int = SEP
    mask_id: int = MASK


def build_corpus(
    documents: Documents, *, num_shards: int = 1, word_start_rate: float = 0.7, first_id: int = FIRST
) -> ToyCorpus:
    num_tokens = sum(map(sum, documents))
    is_word_start = np.random.default_rng(7).random(num_tokens) < word_start_rate
    shards, address = [], 0
    for number in range(num_shards):
        part = documents[len(documents) * number // num_shards : len(documents) * (number + 1) // num_shards]
        lengths = [length for document in part for length in document]
        stop = address + sum(lengths)
        shards.append(
            ToyShard(
                np.arange(first_id + address, first_id + stop, dtype=np.uint32),
                np.packbits(is_word_start[address:stop], bitorder="little"),
                offsets(lengths),
                offsets([len(document) for document in part]),
            )
        )
        address = stop
    return ToyCorpus(tuple(shards), documents, is_word_start)


def random_documents(count: int, *, seed: int = 0, most_sentences: int = 20, most_tokens: int = 40) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most_sentences + 1, count)
    return [rng.integers(1, most_tokens + 1, size).tolist() for size in sizes]


def build_options(
    *,
    segments: SegmentOptions | None = None,
    masking: MaskingOptions | None = None,
    batch: BatchOptions | None = None,
    seed: int = 1,
) -> StreamOptions:
    return StreamOptions(
        segments=segments or SegmentOptions(max_length=64),
        masking=masking or MaskingOptions(),
        batch=batch or BatchOptions(sequences=16),
        seed=seed,
    )


def build_stream(*corpora: ToyCorpus, weights: Sequence[float] = (), **sections: object) -> Stream:
    num_tokens = sum(int(shard.sentence_offsets[-1]) for corpus in corpora for shard in corpus.shards)
    return Stream(corpora, ToyTokenizer(FIRST + num_tokens), build_options(**sections), weights=weights)  # type: ignore[arg-type]


def unmask(rows: Rows) -> NDArray[np.int64]:
    """The token ids before masking, flat."""
    token_ids = rows.token_ids.reshape(-1).copy()
    token_ids[rows.targets.positions] = rows.targets.labels
    return token_ids


def read_sequences(rows: Rows) -> list[NDArray[np.int64]]:
    """Each sequence's token ids before masking."""
    flat = unmask(rows)
    return [
        flat[start : start + length]
        for start, length in zip(rows.plan.starts, rows.plan.sequences.lengths, strict=True)
    ]
