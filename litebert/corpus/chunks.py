"""Cutting the input into chunks, the unit of work that one process encodes.

Where a chunk ends depends on the bytes alone, never on how they arrived: a build that was killed, or that has more
processes, cuts the same chunks. Nothing here needs more memory than one chunk, however long a file or a line is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litebert.corpus.notes import Problem
from litebert.corpus.sources import Block, Source, TruncatedError, iter_blocks

# Formats whose files have a meaningful beginning and end: read in one piece
WHOLE_FILE_FORMATS = ("gutenberg", "squad")
# Formats with one record per line: a record that is too long is left out
RECORD_FORMATS = ("jsonl", "race")
# (mark, offset of the document's start in it): where a file may be cut between documents
_BLANK_LINES = ((b"\n\n", 2), (b"\n\r\n", 3))
_DOCUMENT_STARTS = {"wiki": ((b"\n<doc ", 1),), "lines": _BLANK_LINES, "wrapped": _BLANK_LINES}


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
class Stretch:
    """Consecutive bytes of one source."""

    name: str
    format: str
    field: str
    first_line: int
    data: bytes
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Consecutive stretches, the position after them, and how many bytes of files on disk were read up to there."""

    number: int
    stretches: tuple[Stretch, ...]
    end: Position
    raw_position: int

    @property
    def num_bytes(self) -> int:
        return sum(len(stretch.data) for stretch in self.stretches)


class _Cut(NamedTuple):
    stretch: Stretch
    end: Position
    raw_position: int


def iter_chunks(
    sources: Sequence[Source], *, limits: Limits, start: Position = START, number: int = 0
) -> Iterator[Chunk]:
    """The text of all sources in chunks; `start` and `number` say where to continue."""
    stretches: list[Stretch] = []
    num_bytes = 0
    raw_bytes = sum(source.num_bytes for source in sources[: start.source])
    for index in range(start.source, len(sources)):
        source = sources[index]
        position = start if index == start.source else Position(index, 0, 1)
        blocks = iter_blocks(source.path, source.packing, start=position.byte, field=source.field)
        if source.format in WHOLE_FILE_FORMATS:
            cuts = iter([_read_whole(source, index, blocks, limits)])
        else:
            cuts = _LineCutter(source, position, limits).cut(blocks)
        for stretch, end, raw_position in cuts:
            stretches.append(stretch)
            num_bytes += len(stretch.data)
            last = end, raw_bytes + raw_position
            if num_bytes >= limits.chunk // 2:
                yield Chunk(number, tuple(stretches), *last)
                number, stretches, num_bytes = number + 1, [], 0
        raw_bytes += source.num_bytes
    if stretches:
        yield Chunk(number, tuple(stretches), *last)


def _read_whole(source: Source, index: int, blocks: Iterator[Block], limits: Limits) -> _Cut:
    """A file in one piece; a file that is too large is reported."""
    pieces: list[bytes] = []
    num_bytes = 0
    problems: tuple[Problem, ...] = ()
    try:
        for block in blocks:
            pieces.append(block.data)
            num_bytes += len(block.data)
            if num_bytes > limits.whole_file:
                limit = f"{limits.whole_file >> 20} MB"
                what = f"larger than {limit}, which a {source.format} file cannot be; choose another format"
                problems = (Problem("too_large", source.name, what),)
                pieces = []
                break
    except TruncatedError as error:
        problems = (Problem("truncated", source.name, str(error)),)
    data = b"".join(pieces)
    if not problems and not data.strip():
        problems = (Problem("empty", f"{source.name}:1", "an empty file"),)
    stretch = Stretch(source.name, source.format, source.field, 1, data, problems)
    return _Cut(stretch, Position(index + 1, 0, 1), source.num_bytes)


class _LineCutter:
    """Cuts a file before a document's first line if possible, else after a line, else inside a line (reported)."""

    def __init__(self, source: Source, position: Position, limits: Limits) -> None:
        self.source, self.limits = source, limits
        self.index, self.byte, self.line = position
        self.pending = b""
        self.raw_position = 0
        self.problems: list[Problem] = []
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
        """Cut off stretches as long as enough is pending."""
        is_record = self.source.format in RECORD_FORMATS
        while True:
            if self.is_discarding:
                self._discard()
            size = self._next_size()
            if not size:
                return
            is_inside_line = self.pending[size - 1] != 0x0A
            if is_inside_line:
                outcome = "left out" if is_record else "cut"
                self._report("long_line", f"longer than {self.limits.line:,} bytes: {outcome}")
            if is_inside_line and is_record:
                self.is_discarding = True
                continue
            data, self.pending = self.pending[:size], self.pending[size:]
            stretch = self._stretch(data)
            self.line += data.count(b"\n")
            self.byte += size
            yield _Cut(stretch, Position(self.index, self.byte, self.line), self.raw_position)

    def _next_size(self) -> int:
        """The size of the next stretch; 0 if more input is needed to decide."""
        window, limits = self.pending, self.limits
        if len(window) < limits.chunk:
            return 0
        for mark, offset in _DOCUMENT_STARTS.get(self.source.format, ()):
            found = window.rfind(mark, 0, limits.chunk)
            if found > 0:
                return found + offset
        if (end := window.rfind(b"\n", 0, limits.chunk)) >= 0:
            return end + 1
        if (end := window.find(b"\n", limits.chunk, limits.line)) >= 0:
            return end + 1
        if len(window) <= limits.line:
            return 0
        end = limits.line
        if (space := window.rfind(b" ", end // 2, end)) >= 0:
            return space + 1
        for _ in range(3):  # not inside a UTF-8 character
            end -= window[end] & 0xC0 == 0x80
        return end

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
            self._report("truncated", f"{truncated}; the text before this line is kept", line=last_line)
        return _Cut(self._stretch(data), Position(self.index + 1, 0, 1), self.source.num_bytes)

    def _stretch(self, data: bytes) -> Stretch:
        problems, self.problems = tuple(self.problems), []
        return Stretch(self.source.name, self.source.format, self.source.field, self.line, data, problems)

    def _report(self, kind: str, what: str, *, line: int | None = None) -> None:
        self.problems.append(Problem(kind, f"{self.source.name}:{line or self.line}", what))
