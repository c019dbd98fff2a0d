"""The processes of a build: each takes chunks and leaves part files."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from litebert.core.errors import DataError
from litebert.core.processes import spawn_context
from litebert.corpus.chunks import Chunk
from litebert.corpus.documents import ReadOptions
from litebert.corpus.encode import encode_chunk, is_whole_part, write_part
from litebert.corpus.shards import TOKENIZER
from litebert.corpus.unfinished import part_path
from litebert.text.tokenizer import Tokenizer, load_tokenizer


class _Worker:
    """What a process keeps between chunks."""

    def __init__(self, directory: Path, options: ReadOptions) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes are the parallelism here
        self.directory, self.options = directory, options
        self.tokenizer: Tokenizer = load_tokenizer(directory / TOKENIZER)

    def encode(self, chunk: Chunk) -> None:
        write_part(part_path(self.directory, chunk.number), encode_chunk(chunk, self.tokenizer, self.options))


_worker: _Worker  # one a process, made by _start


def encode_chunks(
    chunks: Iterable[Chunk], directory: Path, options: ReadOptions, *, processes: int
) -> Iterator[tuple[Chunk, int]]:
    """Leave a part file for each chunk that has no whole one; gives the chunks in order, emptied, with their size."""
    if processes == 1:
        yield from _encode_here(chunks, _Worker(directory, options))
        return
    pool = ProcessPoolExecutor(processes, spawn_context(), initializer=_start, initargs=(directory, options))
    try:
        yield from _encode_in(pool, chunks, directory, ahead=processes + 1)
    except BrokenProcessPool as error:
        what = "a worker process died, perhaps for want of memory"
        raise DataError(
            f"{what}; start it again with fewer processes: it continues from here", option="processes"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _encode_here(chunks: Iterable[Chunk], worker: _Worker) -> Iterator[tuple[Chunk, int]]:
    for chunk in chunks:
        if not is_whole_part(part_path(worker.directory, chunk.number)):
            worker.encode(chunk)
        yield _emptied(chunk)


def _encode_in(
    pool: ProcessPoolExecutor, chunks: Iterable[Chunk], directory: Path, *, ahead: int
) -> Iterator[tuple[Chunk, int]]:
    waiting: deque[tuple[tuple[Chunk, int], Future[None] | None]] = deque()
    for chunk in chunks:
        is_there = is_whole_part(part_path(directory, chunk.number))
        waiting.append((_emptied(chunk), None if is_there else pool.submit(_encode, chunk)))
        if len(waiting) > ahead:
            yield _next(waiting)
    while waiting:
        yield _next(waiting)


def _next(waiting: deque[tuple[tuple[Chunk, int], Future[None] | None]]) -> tuple[Chunk, int]:
    chunk, future = waiting.popleft()
    if future:
        future.result()
    return chunk


def _emptied(chunk: Chunk) -> tuple[Chunk, int]:
    return replace(chunk, segments=()), chunk.num_bytes


def _start(directory: Path, options: ReadOptions) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reads; it ends the others
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker = _Worker(directory, options)


def _exit_with_parent() -> None:
    """A build that is killed must leave no process behind; the pool alone would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _encode(chunk: Chunk) -> None:
    _worker.encode(chunk)
