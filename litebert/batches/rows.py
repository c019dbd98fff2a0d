"""From planned sequences to rows of token ids: where each sequence lies, its special tokens, its text, its targets."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.batches.masking import Targets
from litebert.batches.masking_kernels import SPECIAL
from litebert.batches.options import BatchOptions
from litebert.core.compiled import compiled
from litebert.core.errors import ConfigError


class SpecialIds(NamedTuple):
    """The ids that frame a sequence."""

    cls_id: int
    sep_id: int
    pad_id: int


class HasTokens(Protocol):
    """What of a shard the rows are copied from."""

    @property
    def token_ids(self) -> NDArray[np.generic]: ...
    @property
    def word_starts(self) -> NDArray[np.uint8]: ...


class Text(NamedTuple):
    """A corpus to copy from."""

    shards: tuple[HasTokens, ...]
    shard_starts: NDArray[np.int64]  # token address of each shard, and the end
    borders: NDArray[np.int64]  # token address of each document, where a sequence may cross them; else empty


@dataclass(frozen=True)
class Layout:
    """Where sequences lie in rows (S sequences in B rows of width T)."""

    rows: NDArray[np.int64]  # (S,)
    starts: NDArray[np.int64]  # (S,) flat index of each sequence's [CLS]
    lengths: NDArray[np.int32]  # (S,)
    num_rows: int
    width: int
    first_row: int = 0  # of a part: its first row's number in the whole batch

    @property
    def efficiency(self) -> float:
        """The share of positions that are not padding."""
        return float(self.lengths.sum() / max(self.num_rows * self.width, 1))


@dataclass(frozen=True)
class Rows:
    """A batch in numpy, with the reasons that a tensor batch leaves out."""

    token_ids: NDArray[np.int64]  # (B, T) after masking
    segment_ids: NDArray[np.int64]  # (B, T)
    layout: Layout
    targets: Targets
    labels: NDArray[np.int8]  # (S,)
    is_lead: NDArray[np.bool_]  # (S,)
    is_packed: bool


def lay_out(lengths: NDArray[np.int32], options: BatchOptions, max_length: int) -> Layout:
    """A row for each sequence, or as few rows as hold them all when packed."""
    if not options.is_packed:
        rows = np.arange(len(lengths))
        width = _round_up(int(lengths.max()), options, max_length)
        return Layout(rows, rows * width, lengths, len(lengths), width)
    rows, columns = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    longest_first = np.argsort(-lengths, kind="stable")
    num_rows = _pack(lengths, longest_first, max_length, rows, columns)
    width = _round_up(int((columns + lengths).max()), options, max_length)
    return Layout(rows, rows * width + columns, lengths, num_rows, width)


def _round_up(used: int, options: BatchOptions, max_length: int) -> int:
    return min(-(-used // options.width_multiple) * options.width_multiple, max_length)


def take_part(layout: Layout, part: int, num_parts: int) -> tuple[Layout, NDArray[np.int64]]:
    """The rows of one rank, and which sequences lie in them, in the order of their places."""
    if layout.num_rows < num_parts:
        raise ConfigError(
            f"a batch of {layout.num_rows} rows cannot be divided among {num_parts} processes; "
            "make batch.sequences or batch.tokens larger"
        )
    first, stop = (layout.num_rows * k // num_parts for k in (part, part + 1))
    by_place = np.argsort(layout.starts)
    chosen = by_place[np.searchsorted(layout.rows[by_place], first) : np.searchsorted(layout.rows[by_place], stop)]
    starts = layout.starts[chosen] - first * layout.width
    rows, lengths = layout.rows[chosen] - first, layout.lengths[chosen]
    return Layout(rows, starts, lengths, stop - first, layout.width, layout.first_row + first), chosen


def number_positions(layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each flat position, its place within its sequence and that sequence's number in the row (0 = padding)."""
    within, numbers = np.zeros((2, layout.num_rows * layout.width), np.int64)
    _number_sequences(layout.rows, layout.starts, layout.lengths, within, numbers)
    return within, numbers


class Canvas(NamedTuple):
    """The flat arrays that rows are drawn on."""

    token_ids: NDArray[np.int64]
    segment_ids: NDArray[np.int64]
    word_codes: NDArray[np.uint8]


def blank_canvas(layout: Layout, pad_id: int) -> Canvas:
    """Nothing but padding."""
    size = layout.num_rows * layout.width
    return Canvas(np.full(size, pad_id), np.zeros(size, np.int64), np.full(size, SPECIAL, np.uint8))


def draw_sequences(
    text: Text, ranges: NDArray[np.int64], starts: NDArray[np.int64], special: SpecialIds, canvas: Canvas
) -> None:
    """Write sequences of one corpus at their places: special tokens first, then the text from each shard."""
    most = 2 * len(ranges) + (int((ranges[:, 1] - ranges[:, 0]).sum()) if len(text.borders) else 0)
    pieces = np.empty((most, 3), np.int64)
    count = _frame_sequences(ranges, starts, text.borders, special, canvas, pieces)
    pieces = pieces[:count]
    used = np.unique(np.searchsorted(text.shard_starts, pieces[:, 0], "right") - 1) if len(text.shards) > 1 else (0,)
    for number in used:
        shard, base, stop = text.shards[number], text.shard_starts[number], text.shard_starts[number + 1]
        _copy_pieces(np.asarray(shard.token_ids), np.asarray(shard.word_starts), base, stop, pieces, canvas)


@compiled
def _pack(
    lengths: NDArray[np.int32],
    order: NDArray[np.int64],
    width: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> int:
    """Best fit: each sequence, longest first, into the fullest row that still has room. Returns the number of rows."""
    newest = np.full(width + 1, -1, np.int64)  # by room left: the newest row with exactly that room
    older = np.full(len(lengths), -1, np.int64)  # row -> the next one with the same room
    num_rows = 0
    for sequence in order:
        length = lengths[sequence]
        room = length
        while room < width and newest[room] < 0:
            room += 1
        if newest[room] >= 0:
            row = newest[room]
            newest[room] = older[row]
        else:
            room, row = width, num_rows
            num_rows += 1
        rows[sequence], columns[sequence] = row, width - room
        older[row] = newest[room - length]
        newest[room - length] = row
    return num_rows


@compiled
def _number_sequences(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    within: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> None:
    number = 0
    for k in range(len(rows)):
        number = number + 1 if k > 0 and rows[k] == rows[k - 1] else 1
        for offset in range(lengths[k]):
            within[starts[k] + offset] = offset
            numbers[starts[k] + offset] = number


@compiled
def _frame_sequences(
    ranges: NDArray[np.int64],
    starts: NDArray[np.int64],
    borders: NDArray[np.int64],
    special: SpecialIds,
    canvas: Canvas,
    pieces: NDArray[np.int64],
) -> int:
    """Write [CLS] A [SEP] or [CLS] A [SEP] B [SEP] without the text; note (from, to, count) of each piece of text."""
    count = 0
    for k in range(len(ranges)):
        position = starts[k]
        canvas.token_ids[position] = special.cls_id
        position, count = _frame_segment(
            ranges[k, 0], ranges[k, 1], position + 1, borders, special, canvas, pieces, count
        )
        if ranges[k, 3] > ranges[k, 2]:
            begin = position
            position, count = _frame_segment(
                ranges[k, 2], ranges[k, 3], position, borders, special, canvas, pieces, count
            )
            canvas.segment_ids[begin:position] = 1
    return count


@compiled
def _frame_segment(
    start: int,
    stop: int,
    position: int,
    borders: NDArray[np.int64],
    special: SpecialIds,
    canvas: Canvas,
    pieces: NDArray[np.int64],
    count: int,
) -> tuple[int, int]:
    """One segment and its [SEP], with another [SEP] at each document border inside; returns where it ends."""
    border = np.searchsorted(borders, start, "right")
    while start < stop:
        end = stop
        if border < len(borders) and borders[border] < stop:
            end = borders[border]
            border += 1
        pieces[count, 0], pieces[count, 1], pieces[count, 2] = start, position, end - start
        count += 1
        position += end - start
        canvas.token_ids[position] = special.sep_id
        position += 1
        start = end
    return position, count


@compiled
def _copy_pieces(
    token_ids: NDArray[np.uint16],
    word_starts: NDArray[np.uint8],
    base: int,
    stop: int,
    pieces: NDArray[np.int64],
    canvas: Canvas,
) -> None:
    """Copy the pieces that lie in one shard, and unpack which tokens begin a word."""
    for k in range(len(pieces)):
        if not base <= pieces[k, 0] < stop:
            continue
        source, target = pieces[k, 0] - base, pieces[k, 1]
        for offset in range(pieces[k, 2]):
            address = source + offset
            canvas.token_ids[target + offset] = token_ids[address]
            canvas.word_codes[target + offset] = (word_starts[address >> 3] >> (address & 7)) & 1
