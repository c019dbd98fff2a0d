"""Reading text of any kind and size as documents of sentences, in constant memory.

for document in iter_documents(["wiki/*.gz", "books/"], ReadOptions(on_error="skip")):
    print(document.id, document.sentences)
"""

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from litebert.core.errors import ConfigError, suggest
from litebert.corpus.chunks import Limits, Stretch, iter_chunks
from litebert.corpus.formats.parsers import FORMATS, Document, guess_format, parse_stretch
from litebert.corpus.notes import Notes, OnError
from litebert.corpus.sources import STDIN, Source, detect_packing, find_files, read_head, spool_stdin, spool_texts

__all__ = ["Document", "ReadOptions", "check_format", "describe_source", "iter_documents", "read_stretch"]

_HEAD_BYTES = 1 << 18


@dataclass(frozen=True)
class ReadOptions:
    """How to read. `format` "auto" guesses per file; bad input stops the reading unless `on_error` is "skip"."""

    format: str = "auto"
    field: str = "text"
    first_sentences: int | None = None  # read only the first sentences of each document
    on_error: OnError = "fail"
    limits: Limits = dataclasses.field(default_factory=Limits)


def iter_documents(
    paths: Sequence[str | Path],
    options: ReadOptions | None = None,
    *,
    notes: Notes | None = None,
    texts: Iterable[str] | None = None,
    report: Callable[[float], object] = lambda _: None,
) -> Iterator[Document]:
    """The documents of files, folders, globs and standard input ("-"), in order, and then of `texts`.

    `notes` collects what was skipped, with reasons; `report` gets the share of the files' bytes that has been read.
    """
    options = options or ReadOptions()
    notes = notes or Notes(options.on_error)
    patterns = [str(path) for path in paths]
    with tempfile.TemporaryDirectory(prefix="litebert-stdin-") as spool:
        if STDIN in patterns:
            patterns[patterns.index(STDIN)] = str(spool_stdin(Path(spool)))
        patterns += [] if texts is None else [str(spool_texts(texts, Path(spool)))]
        sources = [describe_source(path, options) for path in find_files(patterns)]
        num_bytes = max(1, sum(source.num_bytes for source in sources))
        for chunk in iter_chunks(sources, limits=options.limits):
            for stretch in chunk.stretches:
                yield from read_stretch(stretch, options, notes)
            report(chunk.raw_position / num_bytes)


def read_stretch(stretch: Stretch, options: ReadOptions, notes: Notes) -> Iterator[Document]:
    """The documents of a stretch of a file, cut to `first_sentences`."""
    for document in parse_stretch(stretch, notes):
        yield document._replace(sentences=document.sentences[: options.first_sentences])


def describe_source(path: Path, options: ReadOptions, *, sha256: str = "") -> Source:
    """Packing and format of a file, detected from its first bytes unless the options set the format."""
    check_format(options.format)
    packing = detect_packing(path)
    facts = path.stat()
    if packing.startswith("parquet"):
        format_: str = "jsonl"
    elif options.format != "auto":
        format_ = options.format
    else:
        format_ = guess_format(read_head(path, packing, num_bytes=_HEAD_BYTES, field=options.field))
    return Source(path, facts.st_size, facts.st_mtime_ns, sha256, packing, format_, options.field)


def check_format(name: str) -> None:
    """Fail for a format that does not exist."""
    if name not in ("auto", *FORMATS):
        raise ConfigError("unknown-format", f"unknown format '{name}'; {suggest(name, ('auto', *FORMATS))}")
