"""Read LevelDB's sorted table of keys and values, the format of a TensorFlow checkpoint's index.

A table has blocks of entries, each with its checksum, a block that lists the others, and a footer that locates that
block. Every byte is checked: blocks against their CRC, the footer against its magic number and its zeros.
"""

from collections.abc import Iterator
from typing import NamedTuple

from litebert.core.errors import DataError
from litebert.core.protobuf import read_varint
from litebert.interop.crc32c import masked_crc32c

MAGIC = bytes.fromhex("57fb808b247547db")
FOOTER_SIZE = 48
TRAILER_SIZE = 5  # one byte for the compression type, four for the checksum
COMPRESSIONS = {0: "none", 1: "snappy", 2: "zlib", 4: "zstd"}
MAX_EXPANSION = 16  # maximum ratio of all keys, which are prefix-compressed, to the size of the file that holds them


class Handle(NamedTuple):
    """The location of a block."""

    offset: int
    size: int


def read_table(table: bytes) -> dict[bytes, bytes]:
    """The entries of a table in their order; a corrupt table raises an error."""
    metaindex, index = _read_footer(table)
    _read_block(table, metaindex)  # its filters are not needed; only the checksum is verified
    entries: dict[bytes, bytes] = {}
    last_key, length_of_keys = None, 0
    for _, place in _iter_entries(_read_block(table, index)):
        handle, _ = _read_handle(place, 0)
        for key, value in _iter_entries(_read_block(table, handle)):
            if last_key is not None and key <= last_key:
                raise DataError("corrupt-table", f"its keys are not in order at {key!r}")
            last_key, length_of_keys = key, length_of_keys + len(key)
            if length_of_keys > MAX_EXPANSION * len(table):
                raise DataError(
                    "corrupt-table",
                    "its keys are implausibly long: it would unpack to far more than its size",
                )
            entries[key] = value
    return entries


def _read_footer(table: bytes) -> tuple[Handle, Handle]:
    footer = table[-FOOTER_SIZE:]
    if len(footer) < FOOTER_SIZE or footer[-len(MAGIC) :] != MAGIC:
        raise DataError("corrupt-table", "it has no table footer: it is truncated or is not a TensorFlow index")
    metaindex, position = _read_handle(footer, 0)
    index, position = _read_handle(footer, position)
    if any(footer[position : -len(MAGIC)]):
        raise DataError("corrupt-table", "its footer is corrupt")
    return metaindex, index


def _read_handle(data: bytes, position: int) -> tuple[Handle, int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return Handle(offset, size), position


def _read_block(table: bytes, handle: Handle) -> bytes:
    end = handle.offset + handle.size
    if end + TRAILER_SIZE + FOOTER_SIZE > len(table):
        raise DataError("corrupt-table", f"a block of {handle.size} bytes at byte {handle.offset} is outside the file")
    compression = table[end]
    stored = int.from_bytes(table[end + 1 : end + TRAILER_SIZE], "little")
    if masked_crc32c(table[handle.offset : end + 1]) != stored:
        raise DataError("corrupt-table", f"the block at byte {handle.offset} is corrupt: its checksum does not match")
    if compression:
        name = COMPRESSIONS.get(compression, f"number {compression}")
        raise DataError(
            "unsupported-tensorflow",
            f"the block at byte {handle.offset} is compressed ({name}), which TensorFlow never does; "
            "save it again with TensorFlow",
        )
    return table[handle.offset : end]


def _iter_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    num_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * num_restarts  # then the offsets of restart points follow, not needed here
    if len(block) < 4 or end < 0:
        raise DataError("corrupt-table", f"a block of {len(block)} bytes cannot have {num_restarts} restarts")
    key, position = b"", 0
    while position < end:
        num_shared, position = read_varint(block, position)
        num_own, position = read_varint(block, position)
        value_size, position = read_varint(block, position)
        if num_shared > len(key) or position + num_own + value_size > end:
            raise DataError("corrupt-table", f"an entry at byte {position} of its block extends past the end")
        key = key[:num_shared] + block[position : position + num_own]
        position += num_own
        yield key, block[position : position + value_size]
        position += value_size
