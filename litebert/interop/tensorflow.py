"""Read TensorFlow checkpoints without TensorFlow: the tensor bundle, an index of variables and their data files.

`model.ckpt.index` is a sorted table that maps names to locations; files such as `model.ckpt.data-00000-of-00002` hold
the values. A tensor is read on request and checked against its checksum; no memory is allocated for a size that
exceeds the files.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.core.protobuf import get_bytes, get_number, iter_fields
from litebert.interop.crc32c import masked_crc32c
from litebert.interop.own_files import checked_file
from litebert.interop.sstable import read_table

INDEX_SUFFIX = ".index"
# numbers of tensorflow/core/framework/types.proto
DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    9: torch.int64,
    14: torch.bfloat16,
    19: torch.float16,
}
OTHER_DTYPES = {4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 10: "bool", 20: "resource"}


class Variable(NamedTuple):
    """The index entry of one variable."""

    dtype: torch.dtype | None  # None: a type that weights never have, such as text
    dtype_name: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int  # bytes
    checksum: int
    is_sliced: bool


class Index(NamedTuple):
    """The variables of a bundle by name, and the number of data files."""

    variables: dict[str, Variable]
    num_shards: int


def read_index(file: Path) -> Index:
    """The content of an `.index` file; the data files are not opened."""
    try:
        entries = read_table(file.read_bytes())
        num_shards = _read_header(entries.pop(b"", None))
        # a key that begins with 0 belongs to a slice, whose variable has its own entry
        variables = {key.decode(): _read_entry(key.decode(), value) for key, value in entries.items() if key[0] != 0}
    except UnicodeDecodeError:
        raise DataError("bad-encoding", f"{file}: a name is not UTF-8; is it a TensorFlow index?") from None
    except DataError as error:
        raise DataError(error.code, f"{file}: {error}") from None
    return Index(variables, num_shards)


@dataclass(frozen=True)
class Bundle:
    """An opened checkpoint: variables by name, with their values still on disk."""

    prefix: Path
    variables: dict[str, Variable]
    files: dict[int, Path]  # by shard

    def read(self, name: str) -> Tensor:
        """A variable's values, checked against their checksum."""
        variable = self.variables[name]
        if variable.is_sliced:
            raise DataError(
                "unsupported-tensorflow",
                f"{self.prefix}: {name} is stored in slices (a partitioned variable), which is not supported; "
                "save it again without a partitioner",
            )
        if variable.dtype is None:
            raise DataError(
                "not-weights", f"{self.prefix}: {name} is of type {variable.dtype_name}, which is not a weight type"
            )
        file = self.files[variable.shard]
        stored = np.fromfile(file, np.uint8, count=variable.size, offset=variable.offset)
        if masked_crc32c(stored) != variable.checksum:
            raise DataError(
                "corrupt-file", f"{file}: {name} is corrupt: its checksum does not match; download the file again"
            )
        if not variable.size:
            return torch.empty(variable.shape, dtype=variable.dtype)
        return torch.frombuffer(stored, dtype=variable.dtype).view(variable.shape)


def open_bundle(prefix: Path) -> Bundle:
    """The checkpoint `prefix`.index with its data files; raises an error if one is missing or too short."""
    index = read_index(checked_file(prefix.parent, prefix.name + INDEX_SUFFIX))
    ends: dict[int, tuple[int, str]] = {}  # the minimum length of each data file, and the variable that needs it
    for name, variable in index.variables.items():
        if not variable.is_sliced:
            ends[variable.shard] = max(ends.get(variable.shard, (0, "")), (variable.offset + variable.size, name))
    if any(shard >= index.num_shards for shard in ends):
        raise DataError(
            "corrupt-file", f"{prefix}: a variable is in data file {max(ends)}, but there are only {index.num_shards}"
        )
    files = {}
    for shard, (end, name) in sorted(ends.items()):
        file = _shard_file(prefix, shard, index.num_shards)
        if not file.is_file():
            raise DataError(
                "missing-file",
                f"{file} is missing: the index lists {name} there; was the checkpoint copied completely?",
            )
        checked_file(file.parent, file.name)
        if file.stat().st_size < end:
            raise DataError(
                "truncated-file",
                f"{file} is truncated: it has {file.stat().st_size:,} bytes, and {name} ends at {end:,}",
            )
        files[shard] = file
    return Bundle(prefix, index.variables, files)


def _shard_file(prefix: Path, shard: int, num_shards: int) -> Path:
    return prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{num_shards:05}")


def _read_header(message: bytes | None) -> int:
    """The number of data files, from the bundle's header entry."""
    if message is None:
        raise DataError("corrupt-file", "the table is not a TensorFlow checkpoint index: it has no header")
    fields = dict(iter_fields(message))
    if get_number(fields, 2) != 0:
        raise DataError(
            "unsupported-tensorflow",
            "big-endian checkpoints are not supported; save it again on a little-endian machine",
        )
    return get_number(fields, 1)


def _read_entry(name: str, message: bytes) -> Variable:
    """A BundleEntryProto of tensorflow/core/protobuf/tensor_bundle.proto."""
    fields = dict(iter_fields(message))
    number_of_dtype = get_number(fields, 1)
    dtype = DTYPES.get(number_of_dtype)
    shape = _read_shape(get_bytes(fields, 2))
    variable = Variable(
        dtype=dtype,
        dtype_name=OTHER_DTYPES.get(number_of_dtype, f"number {number_of_dtype}") if dtype is None else str(dtype)[6:],
        shape=shape,
        shard=get_number(fields, 3),
        offset=get_number(fields, 4),
        size=get_number(fields, 5),
        checksum=int.from_bytes(get_bytes(fields, 6), "little"),
        is_sliced=7 in fields,
    )
    if dtype is not None and not variable.is_sliced and math.prod(shape) * dtype.itemsize != variable.size:
        raise DataError(
            "corrupt-file", f"{name} has shape {list(shape)} of {variable.dtype_name}, but {variable.size:,} bytes"
        )
    return variable


def _read_shape(message: bytes) -> tuple[int, ...]:
    dimensions = [get_bytes({number: value}, number) for number, value in iter_fields(message) if number == 2]
    return tuple(get_number(dict(iter_fields(dimension)), 1) for dimension in dimensions)
