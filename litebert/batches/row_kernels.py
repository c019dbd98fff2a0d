"""Compiled loops that pack sequences into rows and write their tokens."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.core.compiled import compiled


class SpecialIds(NamedTuple):
    """The ids of the special tokens of a sequence."""

    cls_id: int
    sep_id: int
    pad_id: int


class FlatRows(NamedTuple):
    """The rows of a batch while they are written, concatenated."""

    token_ids: NDArray[np.int64]
    segment_ids: NDArray[np.int64]
    word_codes: NDArray[np.uint8]


@compiled
def pack_rows(
    lengths: NDArray[np.int32],
    order: NDArray[np.int64],
    width: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> int:
    """Best fit: each sequence, longest first, goes to the fullest row with enough room. Returns the number of rows."""
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
def number_positions(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    within: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> None:
    """For each token, its position within its sequence, and its sequence's number in the row (from 1)."""
    number = 0
    for k in range(len(rows)):
        number = number + 1 if k > 0 and rows[k] == rows[k - 1] else 1
        for offset in range(lengths[k]):
            within[starts[k] + offset] = offset
            numbers[starts[k] + offset] = number


@compiled
def write_special_tokens(
    ranges: NDArray[np.int64],
    starts: NDArray[np.int64],
    borders: NDArray[np.int64],
    special: SpecialIds,
    flat: FlatRows,
    pieces: NDArray[np.int64],
) -> int:
    """Write the special tokens and segment ids of [CLS] A [SEP] or [CLS] A [SEP] B [SEP], but not the text.

    Lists the text to copy in `pieces` as (from address, to position, token count), and returns the number of pieces.
    """
    count = 0
    for k in range(len(ranges)):
        flat.token_ids[starts[k]] = special.cls_id
        position = starts[k] + 1
        position, count = write_separators(ranges[k, 0], ranges[k, 1], position, borders, special, flat, pieces, count)
        if ranges[k, 3] > ranges[k, 2]:
            begin = position
            position, count = write_separators(
                ranges[k, 2], ranges[k, 3], position, borders, special, flat, pieces, count
            )
            flat.segment_ids[begin:position] = 1
    return count


@compiled
def write_separators(
    start: int,
    stop: int,
    position: int,
    borders: NDArray[np.int64],
    special: SpecialIds,
    flat: FlatRows,
    pieces: NDArray[np.int64],
    count: int,
) -> tuple[int, int]:
    """One segment and its [SEP], with another [SEP] at each document border inside; returns the position after it."""
    border = np.searchsorted(borders, start, "right")
    while start < stop:
        end = stop
        if border < len(borders) and borders[border] < stop:
            end = borders[border]
            border += 1
        pieces[count, 0], pieces[count, 1], pieces[count, 2] = start, position, end - start
        count += 1
        position += end - start
        flat.token_ids[position] = special.sep_id
        position += 1
        start = end
    return position, count


@compiled
def copy_pieces(
    token_ids: NDArray[np.uint16],
    word_starts: NDArray[np.uint8],
    base: int,
    stop: int,
    pieces: NDArray[np.int64],
    flat: FlatRows,
) -> None:
    """Copy the pieces of one shard (token addresses base..stop), and unpack which tokens begin a word."""
    for k in range(len(pieces)):
        if not base <= pieces[k, 0] < stop:
            continue
        source, target = pieces[k, 0] - base, pieces[k, 1]
        for offset in range(pieces[k, 2]):
            address = source + offset
            flat.token_ids[target + offset] = token_ids[address]
            flat.word_codes[target + offset] = (word_starts[address >> 3] >> (address & 7)) & 1
