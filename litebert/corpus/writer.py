"""From encoded chunks to shards: duplicates out, documents to train or valid, one file for each."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from litebert.corpus.encode import Part, select_documents
from litebert.corpus.notes import MAX_EXAMPLES
from litebert.corpus.shards import (
    SPLITS,
    Manifest,
    Shard,
    ShardContent,
    ShardRecord,
    Split,
    TokenizerFacts,
    id_dtype,
    offsets,
    shard_name,
    shard_path,
    write_shard,
)


class Seen:
    """The hashes of all documents so far: 8 bytes each, so that ten million documents need 80 MB."""

    def __init__(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._sorted = np.unique(hashes)

    @classmethod
    def load(cls, directory: Path, manifest: Manifest) -> Self:
        """What the shards of a manifest hold."""
        shards = [Shard(shard_path(directory, record.name), record) for record in manifest.shards]
        return cls(np.concatenate([np.zeros(0, np.uint64), *(shard.document_hashes for shard in shards)]))

    def add(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Remember these; gives for each whether it is the first of its kind."""
        is_new = np.zeros(len(hashes), dtype=bool)
        is_new[np.unique(hashes, return_index=True)[1]] = True
        places = np.searchsorted(self._sorted, hashes)
        inside = places < len(self._sorted)
        is_new[inside] &= self._sorted[places[inside]] != hashes[inside]
        self._sorted = np.insert(self._sorted, places[is_new], hashes[is_new])
        self._sorted.sort(kind="stable")  # several new ones at one place
        return is_new


class _Buffer:
    """Documents appended one part after the other. Bytearrays grow in place: joining arrays would need them twice."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = dtype
        self._token_ids, self._word_starts = bytearray(), bytearray()
        self._sentence_lengths = [np.zeros(0, np.int64)]
        self._document_lengths = [np.zeros(0, np.int64)]
        self._hashes = [np.zeros(0, np.uint64)]

    def add(self, content: ShardContent) -> None:
        self._token_ids += content.token_ids.data
        self._word_starts += content.word_starts.data
        self._sentence_lengths.append(np.diff(content.sentence_offsets))
        self._document_lengths.append(np.diff(content.document_offsets))
        self._hashes.append(content.document_hashes)

    def content(self) -> ShardContent:
        return ShardContent(
            token_ids=np.frombuffer(self._token_ids, dtype=self._dtype),
            word_starts=np.frombuffer(self._word_starts, dtype=np.bool_),
            sentence_offsets=offsets(np.concatenate(self._sentence_lengths)),
            document_offsets=offsets(np.concatenate(self._document_lengths)),
            document_hashes=np.concatenate(self._hashes),
        )


class ShardDraft:
    """Gathers parts in their order until there are enough for a shard."""

    def __init__(self, tokenizer: TokenizerFacts, *, valid_share: float, seen: Seen | None) -> None:
        self._tokenizer, self._valid_share, self._seen = tokenizer, valid_share, seen
        self._clear()

    def _clear(self) -> None:
        self.text_bytes = self.num_parts = 0
        self._counts: Counter[str] = Counter()
        self._problems: list[str] = []
        dtype = id_dtype(self._tokenizer.vocab_size)
        self._buffers: dict[Split, _Buffer] = {split: _Buffer(dtype) for split in SPLITS}

    def add(self, part: Part) -> None:
        self.num_parts += 1
        self.text_bytes += part.text_bytes
        self._counts.update(part.counts)
        self._problems += part.problems
        content = part.content
        if self._seen:
            is_new = self._seen.add(content.document_hashes)
            self._counts.update({"duplicate_documents": int((~is_new).sum())})
            content = select_documents(content, is_new)
        is_valid = in_valid_split(content.document_hashes, self._valid_share)
        self._buffers["train"].add(select_documents(content, ~is_valid))
        self._buffers["valid"].add(select_documents(content, is_valid))

    def write(self, directory: Path, manifest: Manifest) -> Manifest:
        """Write what has been gathered; gives the manifest with it and begins the next shard."""
        records = tuple(filter(None, (self._write_split(directory, split, manifest) for split in SPLITS)))
        counts = Counter(manifest.counts) + self._counts
        manifest = replace(
            manifest,
            text_bytes=manifest.text_bytes + self.text_bytes,
            counts=dict(sorted(counts.items())),
            problems=[*manifest.problems, *self._problems][:MAX_EXAMPLES],
            shards=(*manifest.shards, *records),
        )
        self._clear()
        return manifest

    def _write_split(self, directory: Path, split: Split, manifest: Manifest) -> ShardRecord | None:
        content = self._buffers[split].content()
        if not len(content.token_ids):
            return None
        path = shard_path(directory, shard_name(split, _next_number(manifest)))
        return write_shard(path, content, split=split, unk_id=self._tokenizer.unk_id)


def in_valid_split(hashes: npt.NDArray[np.uint64], valid_share: float) -> npt.NDArray[np.bool_]:
    """Which documents are for validation: decided by each one's own hash, whatever else is in the corpus."""
    if valid_share == 1:  # a corpus for evaluation; 2**64 would not fit
        return np.ones(len(hashes), np.bool_)
    chosen: npt.NDArray[np.bool_] = hashes < np.uint64(valid_share * 2.0**64)
    return chosen


def _next_number(manifest: Manifest) -> int:
    return 1 + max((int(Path(record.name).stem.rpartition("-")[2]) for record in manifest.shards), default=-1)
