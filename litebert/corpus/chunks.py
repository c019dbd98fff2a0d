"""Cutting the input into chunks: the unit of work that one process encodes.

Where a chunk ends depends on the bytes alone, never on how they arrived, so that a build that was killed, or that has
more processes, cuts the same chunks. Nothing here holds more than one chunk, however long a file or a line is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litebert.corpus.notes import Problem
from litebert.corpus.sources import Block, Source, TruncatedError, iter_blocks

# Formats whose files have a beginning and an end that mean something: read in one piece
WHOLE_FILE_FORMATS = ("gutenberg", "squad")
# Formats of one record a line: a record that is too long is no record
RECORD_FORMATS = ("jsonl", "race")
_BLANK_LINES = (b"\n\n", b"\n\r\n")
_DOCUMENT_STARTS = {"wiki": ((b"\n<doc ", 1),), "lines": tuple((blank, len(blank)) for blank in _BLANK_LINES)}
_DOCUMENT_STARTS["wrapped"] = _DOCUMENT_STARTS["lines"]


@dataclass(frozen=True)
class Limits:
    """The sizes that keep memory constant, in bytes of text. They shape the result: the manifest records them."""

    chunk: int = 4 << 20
    shard: int = 128 << 20
    line: int = 16 << 20
    whole_file: int = 64 << 20


class Position(NamedTuple):
    """A place in a list of sources: byte and line (from 1) of the unpacked text of one of them."""

    source: int
    byte: int
    line: int


START = Position(source=0, byte=0, line=1)


@dataclass(frozen=True)
class Segment:
    """A stretch of one source."""

    name: str
    format: str
    field: str
    first_line: int
    data: bytes
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Consecutive segments, the position after them, and how many bytes of files on disk have been read till there."""

    number: int
    segments: tuple[Segment, ...]
    end: Position
    raw_position: int

    @property
    def num_bytes(self) -> int:
        return sum(len(segment.data) for segment in self.segments)


class _Cut(NamedTuple):
    segment: Segment
    end: Position
    raw_position: int


def iter_chunks(
    sources: Sequence[Source], *, limits: Limits, start: Position = START, number: int = 0
) -> Iterator[Chunk]:
    """The text of all sources in chunks; `start` and `number` are where an earlier call stopped."""
    segments: list[Segment] = []
    num_bytes = 0
    cut = None
    for cut in _iter_cuts(sources, limits=limits, start=start):
        segments.append(cut.segment)
        num_bytes += len(cut.segment.data)
        if num_bytes >= limits.chunk // 2:
            yield Chunk(number, tuple(segments), cut.end, cut.raw_position)
            number, segments, num_bytes = number + 1, [], 0
    if segments and cut:
        yield Chunk(number, tuple(segments), cut.end, cut.raw_position)


def _iter_cuts(sources: Sequence[Source], *, limits: Limits, start: Position) -> Iterator[_Cut]:
    raw_bytes = sum(source.num_bytes for source in sources[: start.source])
    for index in range(start.source, len(sources)):
        source = sources[index]
        position = start if index == start.source else Position(index, 0, 1)
        blocks = iter_blocks(source.path, source.packing, start=position.byte, field=source.field)
        cutter = _WholeFile if source.format in WHOLE_FILE_FORMATS else _Lines
        for cut in cutter(source, position, limits).cut(blocks):
            yield cut._replace(raw_position=raw_bytes + cut.raw_position)
        raw_bytes += source.num_bytes


class _WholeFile:
    """Reads a file in one piece, or reports that it is too large for that."""

    def __init__(self, source: Source, position: Position, limits: Limits) -> None:
        self.source, self.index, self.limit = source, position.source, limits.whole_file

    def cut(self, blocks: Iterator[Block]) -> Iterator[_Cut]:
        pieces: list[bytes] = []
        problems: tuple[Problem, ...] = ()
        try:
            for block in blocks:
                pieces.append(block.data)
                if sum(map(len, pieces)) > self.limit:
                    problems = (self._too_large(),)
                    pieces = []
                    break
        except TruncatedError as error:
            problems = (Problem("truncated", self.source.name, str(error)),)
        data = b"".join(pieces)
        if not problems and not data.strip():
            problems = (Problem("empty", f"{self.source.name}:1", "an empty file"),)
        segment = Segment(self.source.name, self.source.format, self.source.field, 1, data, problems)
        yield _Cut(segment, Position(self.index + 1, 0, 1), self.source.num_bytes)

    def _too_large(self) -> Problem:
        what = (
            f"larger than {self.limit >> 20} MB, which a {self.source.format} file cannot be; choose another --format"
        )
        return Problem("too_large", self.source.name, what)


class _Lines:
    """Cuts a file before a document's first line if it can, else after a line, else inside a line, which it reports."""

    def __init__(self, source: Source, position: Position, limits: Limits) -> None:
        self.source, self.limits = source, limits
        self.index, self.byte, self.line = position
        self.pending = b""
        self.raw_position = 0
        self.problems: list[Problem] = []
        self.starts = _DOCUMENT_STARTS.get(source.format, ())
        self.is_discarding = False  # inside a record that is too long

    def cut(self, blocks: Iterator[Block]) -> Iterator[_Cut]:
        try:
            for block in blocks:
                self.pending += block.data
                self.raw_position = block.raw_position
                yield from self._take_all()
        except TruncatedError as error:
            yield self._finish(error)
        else:
            yield self._finish(None)

    def _take_all(self) -> Iterator[_Cut]:
        while True:
            if self.is_discarding:
                self._discard()
            size = self._next_size()
            if not size:
                return
            is_inside_line = self.pending[size - 1] != 0x0A
            if is_inside_line:
                self._report("long_line", f"longer than {self.limits.line:,} bytes: {self._fate_of_long_line}")
            if is_inside_line and self.source.format in RECORD_FORMATS:
                self.is_discarding = True
            else:
                yield self._take(size)

    @property
    def _fate_of_long_line(self) -> str:
        return "left out" if self.source.format in RECORD_FORMATS else "cut"

    def _next_size(self) -> int:
        """How many bytes of what is pending form the next segment; 0 if more must be read to know."""
        window, limits = self.pending, self.limits
        if len(window) < limits.chunk:
            return 0
        for mark, length in self.starts:
            found = window.rfind(mark, 0, limits.chunk)
            if found > 0:
                return found + length
        if (end := window.rfind(b"\n", 0, limits.chunk)) >= 0:
            return end + 1
        if (end := window.find(b"\n", limits.chunk, limits.line)) >= 0:
            return end + 1
        return 0 if len(window) <= limits.line else self._size_inside_line()

    def _size_inside_line(self) -> int:
        end = self.limits.line
        space = self.pending.rfind(b" ", end // 2, end)
        if space >= 0:
            return space + 1
        for _ in range(3):  # not inside a UTF-8 character
            end -= self.pending[end] & 0xC0 == 0x80
        return end

    def _take(self, size: int) -> _Cut:
        data, self.pending = self.pending[:size], self.pending[size:]
        segment = self._segment(data)
        self.line += data.count(b"\n")
        self.byte += size
        return _Cut(segment, Position(self.index, self.byte, self.line), self.raw_position)

    def _discard(self) -> None:
        end = self.pending.find(b"\n") + 1
        self.is_discarding = end == 0
        size = end or len(self.pending)
        self.pending = self.pending[size:]
        self.byte += size
        self.line += bool(end)

    def _finish(self, truncated: TruncatedError | None) -> _Cut:
        data = self.pending
        if not truncated and self.byte == 0 and not data.strip():
            self._report("empty", "an empty file")
        if truncated:
            data = data[: data.rfind(b"\n") + 1]
            last_line = self.line + data.count(b"\n")
            self._report("truncated", f"{truncated}; what lies before this line is kept", line=last_line)
        return _Cut(self._segment(data), Position(self.index + 1, 0, 1), self.source.num_bytes)

    def _segment(self, data: bytes) -> Segment:
        problems, self.problems = tuple(self.problems), []
        return Segment(self.source.name, self.source.format, self.source.field, self.line, data, problems)

    def _report(self, kind: str, what: str, *, line: int | None = None) -> None:
        self.problems.append(Problem(kind, f"{self.source.name}:{line or self.line}", what))
