"""A segment of an index: passages and their vectors, written once.

NAME.vectors    one record per passage: the offset of its line, a scale, and a unit vector in int8 or float32
NAME.jsonl      one line per passage: its text, its document and the document's fingerprint

Vectors are memory-mapped, and a query reads only the lines of the passages that it returns. Files that changed since
they were last verified are hashed when the index is opened.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, check_keys, hash_file, parse_json
from litebert.core.sealed import find_changed
from litebert.core.verified import describe_state, is_verified, remember_verified

Precision = Literal["int8", "float32"]
_BLOCK_ROWS = 1 << 15  # computed at once: 16 MB of float32 at width 128


class Passage(NamedTuple):
    """A passage of a document; `document` names its file and line."""

    text: str
    document: str
    fingerprint: str  # of the document's whole text


@dataclass(frozen=True)
class SegmentRecord:
    """A segment's entry in the index's root file."""

    name: str
    num_passages: int
    sha256: dict[str, str]  # of its files
    removed: tuple[tuple[int, int], ...] = ()  # ranges of removed passages

    @property
    def num_removed(self) -> int:
        return sum(end - start for start, end in self.removed)

    @property
    def files(self) -> tuple[str, str]:
        return f"{self.name}.jsonl", f"{self.name}.vectors"

    def find_contradiction(self) -> str | None:
        """The key of the first value that no segment can have; None if there is none."""
        bounds = [0, *(bound for part in self.removed for bound in part), self.num_passages]
        is_empty = any(start == end for start, end in self.removed)
        wrong = {
            "name": not (self.name.isascii() and self.name.isdigit()),  # becomes a path inside the folder
            "num_passages": self.num_passages < 1,
            "sha256": set(self.sha256) != set(self.files),
            "removed": is_empty or bounds != sorted(bounds),
        }
        return next((key for key, is_wrong in wrong.items() if is_wrong), None)


@dataclass(frozen=True)
class Segment:
    """An opened segment."""

    folder: Path
    record: SegmentRecord
    width: int
    precision: Precision

    @cached_property
    def rows(self) -> NDArray[np.void]:
        """The records, memory-mapped."""
        return np.memmap(self.folder / f"{self.record.name}.vectors", row_type(self.width, self.precision), "r")

    def check(self) -> None:
        """Raise if the files are not those that were written; unchanged ones are read once."""
        try:
            claim = f"search segment of {self.width} {self.precision} {self.record}"
            states = [describe_state(self.folder / name, claim) for name in self.record.files]
        except OSError as error:
            raise DataError(
                "corrupt-file", f"{error.filename} cannot be read ({error.strerror}); build the index again"
            ) from None
        if all(map(is_verified, states)):
            return
        for problem in self.find_damage():
            raise DataError("corrupt-file", f"{problem}; build the index again")
        for state in states:
            remember_verified(state)

    def find_damage(self) -> list[str]:
        """What is wrong with the files, after reading all of them; a stranger's index may have hashes that match."""
        if changed := find_changed(self.folder, self.record.sha256):
            return changed
        texts, vectors = (self.folder / name for name in self.record.files)
        size, kind = vectors.stat().st_size, row_type(self.width, self.precision)
        if size != self.record.num_passages * kind.itemsize:
            return [f"{vectors} is corrupt: {size:,} bytes are not {self.record.num_passages:,} vectors"]
        starts = self.rows["start"]
        if starts[0] != 0 or (starts[1:] <= starts[:-1]).any() or starts[-1] >= texts.stat().st_size:
            return [f"{vectors} is corrupt: its offsets do not rise through {texts.name}"]
        ranges = range(0, len(self.rows), _BLOCK_ROWS)
        if not all(np.isfinite(self.vectors(start, start + _BLOCK_ROWS)).all() for start in ranges):
            return [f"{vectors} is corrupt: a number is not finite"]
        return []

    def score(self, queries: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield each block's first row and the cosine of its passages with the queries (rows, queries)."""
        for start in range(0, len(self.rows), _BLOCK_ROWS):
            block = self.rows[start : start + _BLOCK_ROWS]
            scores = block["vector"].astype(np.float32) @ queries.T
            scores *= block["scale"][:, None]
            for first, end in self.record.removed:
                scores[max(0, first - start) : max(0, end - start)] = -np.inf
            yield start, scores

    def vectors(self, start: int, end: int) -> NDArray[np.float32]:
        """The vectors of a range of passages, as used in a search."""
        block = self.rows[start:end]
        vectors: NDArray[np.float32] = block["vector"].astype(np.float32) * block["scale"][:, None]
        return vectors

    def read_passages(self, numbers: Sequence[int]) -> list[Passage]:
        """The passages with these numbers."""
        path = self.folder / f"{self.record.name}.jsonl"
        with path.open("rb") as file:
            found = []
            for number in numbers:
                file.seek(int(self.rows["start"][number]))
                found.append(_parse_passage(file.readline(), f"{path}, passage {number}"))
        return found

    def iter_kept(self) -> Iterator[tuple[int, Passage]]:
        """The passages that have not been removed, with their numbers, in order."""
        path = self.folder / f"{self.record.name}.jsonl"
        removed = {number for start, end in self.record.removed for number in range(start, end)}
        with path.open("rb") as file:
            for number, line in enumerate(file):
                if number not in removed:
                    yield number, _parse_passage(line, f"{path}, passage {number}")


def row_type(width: int, precision: Precision) -> np.dtype[np.void]:
    """The record type of a passage: structured, so that offsets, scales and vectors are in one file."""
    kind = {"int8": "i1", "float32": "<f4"}[precision]
    return np.dtype([("start", "<i8"), ("scale", "<f4"), ("vector", kind, (width,))])


def write_segment(
    folder: Path, name: str, passages: Sequence[Passage], vectors: NDArray[np.float32], precision: Precision
) -> SegmentRecord:
    """Write passages with their unit vectors."""
    lines = [
        json.dumps(passage._asdict(), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for passage in passages
    ]
    rows = np.zeros(len(passages), row_type(vectors.shape[1], precision))
    rows["start"] = np.cumsum([0, *map(len, lines[:-1])])
    if precision == "int8":
        rows["scale"] = np.maximum(np.abs(vectors).max(1), 1e-12) / 127
        rows["vector"] = np.rint(vectors / rows["scale"][:, None])
    else:
        rows["scale"], rows["vector"] = 1, vectors
    for suffix, content in (("jsonl", b"".join(lines)), ("vectors", rows.tobytes())):
        with atomic_path(folder / f"{name}.{suffix}") as temporary:
            temporary.write_bytes(content)
    record = SegmentRecord(name, len(passages), {})
    return replace(record, sha256={file: hash_file(folder / file) for file in record.files})


def _parse_passage(line: bytes, where: str) -> Passage:
    value: dict[str, Any] = parse_json(line, where)
    check_keys(Path(where), value, dict.fromkeys(Passage._fields, str))
    return Passage(**{name: value[name] for name in Passage._fields})
