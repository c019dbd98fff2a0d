"""From encoded chunks to shards: drops duplicates, splits documents into train and valid, writes a file for each."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from litebert.corpus.encode import Part
from litebert.corpus.notes import MAX_EXAMPLES
from litebert.corpus.shards import (
    SPLITS,
    Manifest,
    Shard,
    ShardContent,
    Split,
    TokenizerFacts,
    id_dtype,
    offsets,
    shard_name,
    shard_path,
    write_shard,
)


class SeenDocuments:
    """The hashes of all documents so far, at 8 bytes each: ten million documents need 80 MB."""

    def __init__(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._sorted = np.unique(hashes)

    @classmethod
    def load(cls, directory: Path, manifest: Manifest) -> Self:
        """The documents in the shards of a manifest."""
        shards = [Shard(shard_path(directory, record.name), record) for record in manifest.shards]
        return cls(np.concatenate([np.zeros(0, np.uint64), *(shard.document_hashes for shard in shards)]))

    def add(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Remember these hashes; returns for each whether it is new."""
        is_new = np.zeros(len(hashes), dtype=bool)
        is_new[np.unique(hashes, return_index=True)[1]] = True
        places = np.searchsorted(self._sorted, hashes)
        inside = places < len(self._sorted)
        is_new[inside] &= self._sorted[places[inside]] != hashes[inside]
        self._sorted = np.insert(self._sorted, places[is_new], hashes[is_new])
        self._sorted.sort(kind="stable")  # several new ones at one place
        return is_new


class _Buffer:
    """Documents appended part by part. Bytearrays grow in place: joining arrays would need twice the memory."""

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


class ShardWriter:
    """Collects parts in order until they fill a shard."""

    def __init__(self, tokenizer: TokenizerFacts, *, valid_share: float, seen: SeenDocuments | None) -> None:
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
        self.text_bytes += part.note.text_bytes
        self._counts.update(part.note.counts)
        self._problems += part.note.problems
        content = part.content
        if self._seen:
            is_new = self._seen.add(content.document_hashes)
            self._counts.update({"duplicate_documents": int((~is_new).sum())})
            content = select_documents(content, is_new)
        is_valid = in_valid_split(content.document_hashes, self._valid_share)
        self._buffers["train"].add(select_documents(content, ~is_valid))
        self._buffers["valid"].add(select_documents(content, is_valid))

    def write(self, directory: Path, manifest: Manifest) -> Manifest:
        """Write the collected documents as one shard per split; returns the new manifest and empties the writer."""
        number = 1 + max((int(Path(record.name).stem.rpartition("-")[2]) for record in manifest.shards), default=-1)
        records = list(manifest.shards)
        for split in SPLITS:
            content = self._buffers[split].content()
            if len(content.token_ids):
                path = shard_path(directory, shard_name(split, number))
                records.append(write_shard(path, content, split=split, unk_id=self._tokenizer.unk_id))
        manifest = replace(
            manifest,
            text_bytes=manifest.text_bytes + self.text_bytes,
            counts=dict(sorted((Counter(manifest.counts) + self._counts).items())),
            problems=[*manifest.problems, *self._problems][:MAX_EXAMPLES],
            shards=tuple(records),
        )
        self._clear()
        return manifest


def in_valid_split(hashes: npt.NDArray[np.uint64], valid_share: float) -> npt.NDArray[np.bool_]:
    """Which documents are for validation: decided by each document's own hash, independent of the others."""
    if valid_share == 1:  # a corpus for evaluation; 2**64 would not fit
        return np.ones(len(hashes), np.bool_)
    chosen: npt.NDArray[np.bool_] = hashes < np.uint64(valid_share * 2.0**64)
    return chosen


def select_documents(content: ShardContent, chosen: npt.NDArray[np.bool_]) -> ShardContent:
    """Only the documents where `chosen` (D,) is True."""
    if chosen.all():
        return content
    sentences_per_document, tokens_per_sentence = np.diff(content.document_offsets), np.diff(content.sentence_offsets)
    chosen_sentences = np.repeat(chosen, sentences_per_document)  # (S,)
    chosen_tokens = np.repeat(chosen_sentences, tokens_per_sentence)  # (N,)
    return ShardContent(
        token_ids=content.token_ids[chosen_tokens],
        word_starts=content.word_starts[chosen_tokens],
        sentence_offsets=offsets(tokens_per_sentence[chosen_sentences]),
        document_offsets=offsets(sentences_per_document[chosen]),
        document_hashes=content.document_hashes[chosen],
    )
