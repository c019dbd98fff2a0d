"""From chunks of text to token ids, in one or several processes: each chunk becomes a part file."""

import gc
import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litebert.core.errors import DataError
from litebert.core.files import parse_json
from litebert.core.processes import spawn_context
from litebert.core.sealed import build_record
from litebert.corpus.chunks import Chunk
from litebert.corpus.documents import Document, ReadOptions, read_stretch
from litebert.corpus.notes import Notes
from litebert.corpus.sections import read_noted_sections, write_sections
from litebert.corpus.shards import (
    TOKENIZER,
    ShardContent,
    content_from_sections,
    find_misfit,
    id_dtype,
    offsets,
    sections_of,
)
from litebert.corpus.unfinished import part_path
from litebert.text.tokenizer import Tokenizer, load_tokenizer

_BATCH_CHARACTERS = 1 << 19


@dataclass(frozen=True)
class PartNote:
    """What was noted while a chunk was read; stored in its part file together with its documents."""

    text_bytes: int
    counts: dict[str, int]
    problems: list[str]


class Part(NamedTuple):
    """An encoded chunk."""

    content: ShardContent
    note: PartNote


def encode_chunks(
    chunks: Iterable[Chunk], directory: Path, options: ReadOptions, *, processes: int
) -> Iterator[tuple[Chunk, int]]:
    """Write a part file for each chunk that has no intact one; yields the chunks in order, emptied, with their size."""
    if processes == 1:
        worker = _Worker(directory, options)
        for chunk in chunks:
            if not has_part(directory, chunk):
                worker.encode(chunk)
            yield replace(chunk, stretches=()), chunk.num_bytes
        return
    pool = ProcessPoolExecutor(processes, spawn_context(), initializer=_start, initargs=(directory, options))
    waiting: deque[tuple[Chunk, int, Future[None] | None]] = deque()
    try:
        for chunk in chunks:
            future = None if has_part(directory, chunk) else pool.submit(_encode, chunk)
            waiting.append((replace(chunk, stretches=()), chunk.num_bytes, future))
            if len(waiting) > processes + 1:
                yield _wait_for(*waiting.popleft())
        while waiting:
            yield _wait_for(*waiting.popleft())
    except BrokenProcessPool as error:
        raise DataError(
            "worker-died",
            "a worker process died, perhaps out of memory; run it again with fewer processes: it continues from here",
            option="processes",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _wait_for(chunk: Chunk, num_bytes: int, future: Future[None] | None) -> tuple[Chunk, int]:
    if future:
        future.result()
    return chunk, num_bytes


class _Worker:
    """What a process keeps between chunks."""

    def __init__(self, directory: Path, options: ReadOptions) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
        self.directory, self.options = directory, options
        self.tokenizer: Tokenizer = load_tokenizer(directory / TOKENIZER)

    def encode(self, chunk: Chunk) -> None:
        write_part(part_path(self.directory, chunk.number), encode_chunk(chunk, self.tokenizer, self.options))


_worker: _Worker  # one per process, created by _start


def _start(directory: Path, options: ReadOptions) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the reading process, which ends the others
    parent = multiprocessing.parent_process()
    assert parent is not None

    def exit_with_parent() -> None:
        # a build that is killed must leave no process behind; the pool alone would wait for work forever
        parent.join()
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()
    _worker = _Worker(directory, options)


def _encode(chunk: Chunk) -> None:
    _worker.encode(chunk)


def encode_chunk(chunk: Chunk, tokenizer: Tokenizer, options: ReadOptions) -> Part:
    """The documents of a chunk as token ids, in order; sentences and documents without a token are left out."""
    notes = Notes(options.on_error)
    contents: list[ShardContent] = []
    batch: list[Document] = []
    size = 0
    was_enabled = gc.isenabled()
    gc.disable()  # a chunk makes a hundred thousand lists and no cycles: searching them would take a sixth of the time
    try:
        for document in chain.from_iterable(read_stretch(stretch, options, notes) for stretch in chunk.stretches):
            batch.append(document)
            size += sum(map(len, document.sentences))
            if size >= _BATCH_CHARACTERS:
                contents.append(_encode_documents(batch, tokenizer))
                batch, size = [], 0
        if batch:
            contents.append(_encode_documents(batch, tokenizer))
    finally:
        if was_enabled:
            gc.enable()
    content = join_contents(contents, id_dtype(tokenizer.vocab_size))
    return Part(content, PartNote(chunk.num_bytes, dict(notes.counts), notes.examples))


def _encode_documents(documents: list[Document], tokenizer: Tokenizer) -> ShardContent:
    sentences = [sentence for document in documents for sentence in document.sentences]
    encoded = tokenizer.encode_batch(sentences)
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))  # (S,)
    token_ids = np.fromiter(chain.from_iterable(encoded), id_dtype(tokenizer.vocab_size), count=int(lengths.sum()))
    word_starts: npt.NDArray[np.bool_]
    if tokenizer.words == "pieces":  # the piece alone decides whether a word starts: Tokenizer.mark_words all at once
        word_starts = tokenizer.word_starts[token_ids]
        word_starts[offsets(lengths)[:-1][lengths > 0]] = True
    else:
        pairs = zip(sentences, encoded, strict=True)
        word_starts = np.concatenate([tokenizer.mark_words(text, ids) for text, ids in pairs])
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


def write_part(path: Path, part: Part) -> None:
    """Store an encoded chunk until its shard is complete."""
    write_sections(path, sections_of(part.content), json.dumps(asdict(part.note)))


def has_part(directory: Path, chunk: Chunk) -> bool:
    """Whether the part file of a chunk exists and is intact; otherwise the chunk is encoded again."""
    try:
        read_part(part_path(directory, chunk.number))
    except (FileNotFoundError, DataError):
        return False
    return True


def read_part(path: Path) -> Part:
    """An encoded chunk, after comparing it with its checksum."""
    note, sections = read_noted_sections(path)
    if problem := find_misfit(sections):
        raise DataError("corrupt-part", f"{path} is corrupt: {problem}; delete it and run the build again")
    facts = build_record(PartNote, parse_json(note, f"the note of {path}"), where=str(path))
    return Part(content_from_sections(sections), facts)
