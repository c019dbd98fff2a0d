"""From a chunk of text to token ids: what one process of a build does."""

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litebert.core.errors import DataError
from litebert.core.files import parse_json
from litebert.core.sealed import build_record
from litebert.corpus.chunks import Chunk
from litebert.corpus.documents import Document, ReadOptions, read_segment
from litebert.corpus.notes import MAX_EXAMPLES, Notes
from litebert.corpus.sections import read_noted_sections, write_sections
from litebert.corpus.shards import ShardContent, content_from_sections, find_misfit, id_dtype, offsets, sections_of
from litebert.text.tokenizer import Tokenizer

_BATCH_CHARACTERS = 1 << 19


@dataclass(frozen=True)
class Part:
    """A chunk, encoded: its documents, and what there is to say about how they were read."""

    content: ShardContent
    text_bytes: int
    counts: dict[str, int]
    problems: list[str]


def encode_chunk(chunk: Chunk, tokenizer: Tokenizer, options: ReadOptions) -> Part:
    """The documents of a chunk as token ids, in order; sentences and documents without a token are left out."""
    with _no_garbage_collection():
        return _encode_chunk(chunk, tokenizer, options)


def _encode_chunk(chunk: Chunk, tokenizer: Tokenizer, options: ReadOptions) -> Part:
    notes = Notes(options.on_error)
    documents = chain.from_iterable(read_segment(segment, options, notes) for segment in chunk.segments)
    contents = [_encode_batch(batch, tokenizer) for batch in _batches(documents)]
    return Part(
        join_contents(contents, id_dtype(tokenizer.vocab_size)), chunk.num_bytes, dict(notes.counts), notes.examples
    )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A chunk makes a hundred thousand lists and no cycles: looking for them would take a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += sum(map(len, document.sentences))
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _encode_batch(documents: list[Document], tokenizer: Tokenizer) -> ShardContent:
    sentences = [sentence for document in documents for sentence in document.sentences]
    encoded = tokenizer.encode_batch(sentences)
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))  # (S,)
    token_ids = np.fromiter(chain.from_iterable(encoded), id_dtype(tokenizer.vocab_size), count=int(lengths.sum()))
    word_starts = _mark_words(sentences, encoded, token_ids, lengths, tokenizer)
    document_of = np.repeat(np.arange(len(documents)), [len(document.sentences) for document in documents])  # (S,)
    num_sentences = np.bincount(document_of[lengths > 0], minlength=len(documents))  # (D,)
    hashes = np.array([hash_document(document) for document in documents], dtype=np.uint64)
    return ShardContent(
        token_ids=token_ids,
        word_starts=word_starts,
        sentence_offsets=offsets(lengths[lengths > 0]),
        document_offsets=offsets(num_sentences[num_sentences > 0]),
        document_hashes=hashes[num_sentences > 0],
    )


def _mark_words(
    sentences: list[str],
    encoded: list[list[int]],
    token_ids: npt.NDArray[Any],
    lengths: npt.NDArray[np.int64],
    tokenizer: Tokenizer,
) -> npt.NDArray[np.bool_]:
    """Tokenizer.mark_words of every sentence, all at once where words can be told by their pieces."""
    if tokenizer.words != "pieces":
        pairs = zip(sentences, encoded, strict=True)
        return np.concatenate([tokenizer.mark_words(text, ids) for text, ids in pairs])
    marks: npt.NDArray[np.bool_] = tokenizer.word_starts[token_ids]
    marks[offsets(lengths)[:-1][lengths > 0]] = True
    return marks


def hash_document(document: Document) -> int:
    """A number that depends on the text alone: it decides the split, and equal texts have equal numbers."""
    digest = blake2b("\n".join(document.sentences).encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def join_contents(contents: list[ShardContent], dtype: npt.DTypeLike) -> ShardContent:
    """Several contents one after the other."""
    empty = ShardContent(np.zeros(0, dtype), np.zeros(0, bool), offsets([]), offsets([]), np.zeros(0, np.uint64))
    contents = [empty, *contents]
    return ShardContent(
        token_ids=np.concatenate([content.token_ids for content in contents]),
        word_starts=np.concatenate([content.word_starts for content in contents]),
        sentence_offsets=offsets(np.concatenate([np.diff(content.sentence_offsets) for content in contents])),
        document_offsets=offsets(np.concatenate([np.diff(content.document_offsets) for content in contents])),
        document_hashes=np.concatenate([content.document_hashes for content in contents]),
    )


def select_documents(content: ShardContent, chosen: npt.NDArray[np.bool_]) -> ShardContent:
    """Only the documents where `chosen` (D,) is True."""
    if chosen.all():
        return content
    sentences_a_document, tokens_a_sentence = np.diff(content.document_offsets), np.diff(content.sentence_offsets)
    chosen_sentences = np.repeat(chosen, sentences_a_document)  # (S,)
    chosen_tokens = np.repeat(chosen_sentences, tokens_a_sentence)  # (N,)
    return ShardContent(
        token_ids=content.token_ids[chosen_tokens],
        word_starts=content.word_starts[chosen_tokens],
        sentence_offsets=offsets(tokens_a_sentence[chosen_sentences]),
        document_offsets=offsets(sentences_a_document[chosen]),
        document_hashes=content.document_hashes[chosen],
    )


@dataclass(frozen=True)
class _PartNote:
    """What a part file says beside its documents."""

    text_bytes: int
    counts: dict[str, int]
    problems: list[str]


def write_part(path: Path, part: Part) -> None:
    """Keep an encoded chunk until its shard is complete."""
    note = _PartNote(part.text_bytes, part.counts, part.problems[:MAX_EXAMPLES])
    write_sections(path, sections_of(part.content), json.dumps(asdict(note)))


def is_whole_part(path: Path) -> bool:
    """Whether a part file is there and as it was written; one that is not is encoded again."""
    try:
        read_part(path)
    except (FileNotFoundError, DataError):
        return False
    return True


def read_part(path: Path) -> Part:
    """An encoded chunk, after comparing it with its checksum."""
    note, sections = read_noted_sections(path)
    if problem := find_misfit(sections):
        raise DataError(f"{path} is corrupt: {problem}; delete it and run the build again")
    facts = build_record(_PartNote, parse_json(note, f"the note of {path}"), where=str(path))
    return Part(content_from_sections(sections), facts.text_bytes, facts.counts, facts.problems)
