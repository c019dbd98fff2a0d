"""A minimal protocol buffer reader for two foreign formats: the fields of a message, by number."""

from collections.abc import Iterator, Mapping

from litebert.core.errors import DataError

_FIXED_SIZES = {1: 8, 5: 4}  # wire type -> bytes


def iter_fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message as (number, value): an integer, or the bytes of a text, a message or a fixed number."""
    position = 0
    while position < len(message):
        key, position = read_varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, position = read_varint(message, position)
            yield number, value
            continue
        if wire_type == 2:
            length, position = read_varint(message, position)
        elif wire_type in _FIXED_SIZES:
            length = _FIXED_SIZES[wire_type]
        else:
            raise DataError("corrupt-protobuf", f"not a protocol buffer: wire type {wire_type} at byte {position}")
        if position + length > len(message):
            raise DataError(
                "corrupt-protobuf",
                f"truncated protocol buffer: field {number} needs {length} bytes at byte {position}",
            )
        yield number, message[position : position + length]
        position += length


def get_number(fields: Mapping[int, bytes | int], number: int, default: int = 0) -> int:
    """An integer field; any other wire type is a DataError."""
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise DataError("corrupt-protobuf", f"protocol buffer field {number} should be a number, but is bytes")
    return value


def get_bytes(fields: Mapping[int, bytes | int], number: int) -> bytes:
    """A string or message field; any other wire type is a DataError."""
    value = fields.get(number, b"")
    if not isinstance(value, bytes):  # bytes(value) would make that many zeros
        raise DataError("corrupt-protobuf", f"protocol buffer field {number} should be bytes, but is a number")
    return value


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    """A base-128 number of at most 64 bits, lowest digits first, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            raise DataError("corrupt-protobuf", f"truncated protocol buffer: a number is incomplete at byte {position}")
        byte = message[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise DataError("corrupt-protobuf", f"not a protocol buffer: a number at byte {position} has more than 64 bits")
