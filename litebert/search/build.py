"""`litebert search index`: embed new passages of some files, and remove those of deleted documents.

New passages are saved as a segment every two minutes, so a kill loses little: the same call resumes. Documents are
identified by a fingerprint of their text: moving a file embeds nothing again, changing a line only its document.
"""

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import LOCK_FILE, exclusive_lock, remove_leftovers
from litebert.corpus.documents import Document
from litebert.search.index import (
    INDEX_FILE,
    IndexRecord,
    SearchIndex,
    check_same_model,
    embed,
    make_probe,
    read_index,
    write_index,
)
from litebert.search.passages import cut_passages, hash_text
from litebert.search.segment import Passage, Precision, Segment, SegmentRecord, write_segment

if TYPE_CHECKING:
    from litebert.inference.predictor import Predictor

_DEFAULT_TOKENS = 128
_BATCH_PASSAGES = 512
_SEGMENT_PASSAGES = 1 << 17  # held in memory until written
_SAVE_SECONDS = 120.0
_LEFT_BY_KILL = re.compile(rf"{re.escape(LOCK_FILE)}|\d{{6}}\.(jsonl|vectors)|\..+\.tmp")


@dataclass(frozen=True)
class IndexOptions:
    """Options of an index, the same for all its passages."""

    precision: Precision = "int8"
    passage_tokens: int | None = None  # None: 128, or the model's maximum if that is less


@dataclass
class IndexResult:
    """The result of one call."""

    record: IndexRecord
    num_documents: int = 0  # without duplicates
    num_new: int = 0  # passages that were embedded
    num_removed: int = 0  # passages of deleted documents
    num_cut: int = 0  # tokens cut off because the model reads fewer
    elapsed_seconds: float = 0.0

    def count_cut(self, num_cut: Sequence[int]) -> None:
        self.num_cut += sum(num_cut)


class _Place(NamedTuple):
    """A document's position in the index."""

    document: str
    segment: Segment
    start: int
    end: int


@dataclass
class _Pending:
    """Passages that are not in a segment yet."""

    passages: list[Passage] = field(default_factory=list)
    vectors: list[NDArray[np.float32]] = field(default_factory=list)

    def add(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        self.passages += passages
        self.vectors.append(vectors)


def build_index(
    documents: Iterable[Document], folder: Path, model: "Predictor", options: IndexOptions, *, title: str
) -> IndexResult:
    """Create an index of documents, or update one to contain exactly these; `title` is the model's name in it."""
    started = time.monotonic()
    if folder.exists() and not (folder / INDEX_FILE).is_file() and any(folder.iterdir()) and not _is_begun(folder):
        raise ConfigError("output-exists", f"{folder} exists and is not an index: choose another folder", option="out")
    with exclusive_lock(folder, purpose="indexing"):
        remove_leftovers(folder)
        record = _open_record(folder, model, options, title)
        _remove_unnamed_files(folder, record)
        result = IndexResult(record)
        known, wanted = _find_documents(folder, record), set[tuple[str, str]]()
        pending, saved_at, num_moved = _Pending(), time.monotonic(), 0
        for moved, new in _iter_batches(documents, model, record.passage_tokens, known, wanted):
            for passages, place in moved:
                pending.add(passages, place.segment.vectors(place.start, place.end))
                num_moved += len(passages)
            if new:
                pending.add(new, embed(model, [passage.text for passage in new], result.count_cut))
                result.num_new += len(new)
            if len(pending.passages) >= _SEGMENT_PASSAGES or time.monotonic() - saved_at > _SAVE_SECONDS:
                record, pending, saved_at = _save(folder, record, pending), _Pending(), time.monotonic()
        before = _save(folder, record, pending)
        record = _remove_unwanted(folder, before, wanted)
        if not record.num_passages:
            raise DataError("no-text", "there is no text to index: the files have no documents")
        write_index(folder, record)
        _remove_unnamed_files(folder, record)
    result.record, result.num_documents = record, len(wanted)
    result.num_removed = before.num_passages - record.num_passages - num_moved
    result.elapsed_seconds = time.monotonic() - started
    return result


def _is_begun(folder: Path) -> bool:
    """Whether a folder holds nothing but what a call that was killed before its first save can have left."""
    names = {path.name for path in folder.iterdir()}
    return LOCK_FILE in names and all(map(_LEFT_BY_KILL.fullmatch, names))


def _open_record(folder: Path, model: "Predictor", options: IndexOptions, title: str) -> IndexRecord:
    """The existing index, which must have the same model and options; an empty one if there is none."""
    reads = model.checkpoint.find_max_length("embedding") - 2  # [CLS] and [SEP]
    tokens = min(_DEFAULT_TOKENS, reads) if options.passage_tokens is None else options.passage_tokens
    if not 1 <= tokens <= reads:
        raise ConfigError(
            "out-of-range",
            f"passage_tokens must be 1 to {reads}, which is what the model reads, got {tokens}",
            option="passage_tokens",
        )
    if not (folder / INDEX_FILE).is_file():
        return IndexRecord(title, make_probe(model), options.precision, tokens)
    record = read_index(folder)
    check_same_model(record, model, folder)
    if (record.precision, record.passage_tokens) != (options.precision, tokens):
        raise ConfigError(
            "other-index",
            f"{folder} has passages of {record.passage_tokens} tokens in {record.precision}, not of {tokens} in "
            f"{options.precision}: use its options, or another folder",
            option="out",
        )
    return replace(record, model=title)


def _find_documents(folder: Path, record: IndexRecord) -> dict[str, _Place]:
    """The position of each document in the index, by fingerprint. A document's passages are consecutive."""
    places: dict[str, _Place] = {}
    for segment in SearchIndex(folder).segments if record.segments else ():
        passages = groupby(segment.iter_kept(), key=lambda kept: (kept[1].fingerprint, kept[1].document))
        for (fingerprint, document), kept in passages:
            numbers = [number for number, _ in kept]
            places[fingerprint] = _Place(document, segment, numbers[0], numbers[-1] + 1)
    return places


def _iter_batches(
    documents: Iterable[Document],
    model: "Predictor",
    max_tokens: int,
    known: Mapping[str, _Place],
    wanted: set[tuple[str, str]],
) -> Iterator[tuple[list[tuple[list[Passage], _Place]], list[Passage]]]:
    """Yield batches: whole documents whose text is indexed under another name, and passages of new documents.

    `wanted` collects the fingerprint and the name of every document; duplicates of an earlier text are skipped.
    """
    moved: list[tuple[list[Passage], _Place]] = []
    new: list[Passage] = []
    seen: set[str] = set()
    for document in documents:
        fingerprint = hash_text(document)
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        wanted.add((fingerprint, document.id))
        place = known.get(fingerprint)
        if place is not None and place.document == document.id:
            continue
        texts = cut_passages(document, model.tokenizer, max_tokens)
        passages = [Passage(text, document.id, fingerprint) for text in texts]
        if place is not None and place.end - place.start == len(passages):
            moved.append((passages, place))
        else:
            new += passages
        if len(new) + len(moved) >= _BATCH_PASSAGES:
            yield moved, new
            moved, new = [], []
    yield moved, new


def _save(folder: Path, record: IndexRecord, pending: _Pending) -> IndexRecord:
    """Write the pending passages as a segment, and list it in the index."""
    if not pending.passages:
        return record
    vectors = np.concatenate(pending.vectors)
    segment = write_segment(folder, _next_name(record.segments), pending.passages, vectors, record.precision)
    record = replace(record, segments=(*record.segments, segment))
    write_index(folder, record)
    return record


def _next_name(segments: Iterable[SegmentRecord]) -> str:
    return f"{1 + max((int(segment.name) for segment in segments), default=0):06}"


def _remove_unwanted(folder: Path, record: IndexRecord, wanted: Collection[tuple[str, str]]) -> IndexRecord:
    """The index with only the wanted documents; a segment with at most half of its passages left is rewritten."""
    kept: list[SegmentRecord] = []
    for segment in SearchIndex(folder).segments if record.segments else ():
        passages = [(n, one) for n, one in segment.iter_kept() if (one.fingerprint, one.document) in wanted]
        numbers = [number for number, _ in passages]
        if len(numbers) * 2 > segment.record.num_passages:
            removed = sorted(set(range(segment.record.num_passages)) - set(numbers))
            kept.append(replace(segment.record, removed=tuple(_find_ranges(removed))))
        elif numbers:
            name = _next_name((*record.segments, *kept))
            vectors = segment.vectors(0, segment.record.num_passages)[numbers]
            kept.append(write_segment(folder, name, [one for _, one in passages], vectors, record.precision))
    return replace(record, segments=tuple(kept))


def _find_ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive numbers, as start and end."""
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield members[0], members[-1] + 1


def _remove_unnamed_files(folder: Path, record: IndexRecord) -> None:
    """Delete segment files that the index does not list: written by a killed call, or replaced."""
    named: set[str] = set().union(*(segment.sha256 for segment in record.segments))
    for path in (*folder.glob("*.vectors"), *folder.glob("*.jsonl")):
        if path.name not in named and path.stem.isdigit():
            path.unlink()
