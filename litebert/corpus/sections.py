"""A file of named arrays, memory-mapped: the format of shards and of the part files of a build.

It is a safetensors file, so that it can be opened without litebert. We map it ourselves, because the library's numpy
reader copies. The header is checked completely: the arrays must fill the file exactly.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litebert.core.errors import DataError
from litebert.core.files import atomic_path, parse_json

_DTYPES = {"I64": np.int64, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8}
_DTYPE_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_ALIGNMENT = 64  # the header is padded to it: int64 sections come first, so that every section is aligned
_MAX_HEADER = 1 << 22
_METADATA = "__metadata__"
_NOTE, _CHECKSUM = "litebert", "sha256"

assert sys.byteorder == "little", "shards are little-endian and mapped as they are"


def write_sections(path: Path, sections: Mapping[str, npt.NDArray[Any]], note: str = "") -> tuple[int, str]:
    """Write named arrays as a safetensors file, in the given order; returns its size and SHA-256.

    The same arrays always give the same bytes, which the library does not promise. A file with a note also contains its
    own checksum.
    """
    entries: dict[str, Any] = {}
    position = 0
    for name, array in sections.items():
        entries[name] = {
            "dtype": _DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    checksum = _checksum(entries, note, [array.data for array in sections.values()]) if note else ""
    header = {_METADATA: {_NOTE: note, _CHECKSUM: checksum}} | entries if note else entries
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    blocks: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    blocks += [array.data for array in sections.values()]
    digest = hashlib.sha256()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
    return len(text) + 8 + position, digest.hexdigest()


def map_sections(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of a file that write_sections wrote, memory-mapped."""
    return _map_file(path)[1]


def read_noted_sections(path: Path) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """The note and the arrays of a file, after verifying its checksum."""
    header, sections = _map_file(path)
    metadata = header.pop(_METADATA, {})
    note, stated = metadata.get(_NOTE, ""), metadata.get(_CHECKSUM)
    if not isinstance(note, str) or stated != _checksum(header, note, [array.data for array in sections.values()]):
        raise _corrupt(path, "its content does not match its checksum")
    return note, sections


def _map_file(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    if path.stat().st_size < 8:
        raise _corrupt(path, "it ends inside its header")
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    if start > min(len(whole), _MAX_HEADER) or start % _ALIGNMENT:
        raise _corrupt(path, "it ends inside its header")
    header = parse_json(whole[8:start].tobytes(), f"the header of {path}")
    position = start
    sections = {}
    for name, entry in header.items():
        if name != _METADATA:
            dtype, size = _check_entry(path, name, entry, position - start)
            if size > len(whole) - position:
                raise _corrupt(path, f'"{name[:40]}" reaches beyond its end')
            sections[name] = whole[position : position + size].view(dtype)
            position += size
    if position != len(whole):
        raise _corrupt(path, "its arrays do not fill it")
    if not isinstance(header.get(_METADATA, {}), dict):
        raise _corrupt(path, f'"{_METADATA}" is not an object')
    return header, sections


def _check_entry(path: Path, name: str, entry: Any, position: int) -> tuple[type[Any], int]:
    """The kind and the number of bytes of an array that must begin at `position` of the file's data."""
    facts = entry if isinstance(entry, dict) else {}
    kind, shape = facts.get("dtype"), facts.get("shape")
    dtype = _DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None or not isinstance(shape, list) or len(shape) != 1 or type(shape[0]) is not int or shape[0] < 0:
        raise _corrupt(path, f'"{name[:40]}" is not the description of an array')
    size = shape[0] * np.dtype(dtype).itemsize
    if facts.get("data_offsets") != [position, position + size] or position % np.dtype(dtype).itemsize:
        raise _corrupt(path, f'"{name[:40]}" is not where it should be')
    return dtype, size


def _checksum(entries: Mapping[str, Any], note: str, arrays: list[memoryview]) -> str:
    digest = hashlib.sha256(json.dumps([entries, note], sort_keys=True).encode())
    for array in arrays:
        digest.update(array)
    return digest.hexdigest()


def _corrupt(path: Path, reason: str) -> DataError:
    return DataError("corrupt-arrays", f"{path} is corrupt: {reason}")
