"""Tensor bundles as TensorFlow writes them, for tests: small, with every knob that a reader must not care about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from litebert.interop.crc32c import masked_crc32c

MAGIC = 0xDB4775248B80FB57
DTYPE_NUMBERS = {
    torch.float32: 1,
    torch.float64: 2,
    torch.int32: 3,
    torch.int64: 9,
    torch.bfloat16: 14,
    torch.float16: 19,
}


@dataclass(frozen=True)
class BundleOptions:
    num_shards: int = 1
    block_size: int = 256 * 1024
    restart_interval: int = 16
    gap: int = 0  # unused bytes before each tensor


def varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def number_field(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number) if number else b""


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def write_bundle(prefix: Path, tensors: Mapping[str, Tensor], options: BundleOptions = BundleOptions()) -> None:
    """Write `prefix`.index and its data files."""
    shards = [bytearray() for _ in range(options.num_shards)]
    entries = {b"": number_field(1, options.num_shards) + bytes_field(3, number_field(1, 1))}
    for number, name in enumerate(sorted(tensors)):
        shard = number % options.num_shards
        data = raw_bytes(tensors[name])
        shards[shard] += b"\xee" * options.gap
        entries[name.encode()] = entry(tensors[name], shard, len(shards[shard]), data)
        shards[shard] += data
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for shard, content in enumerate(shards):
        file = prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{options.num_shards:05}")
        file.write_bytes(content)
    index = table(sorted(entries.items()), options)
    prefix.with_name(f"{prefix.name}.index").write_bytes(index)


def raw_bytes(tensor: Tensor) -> bytes:
    contiguous = tensor.contiguous()
    if contiguous.dtype == torch.bfloat16:
        contiguous = contiguous.view(torch.int16)
    return np.asarray(contiguous.numpy()).tobytes()


def entry(tensor: Tensor, shard: int, offset: int, data: bytes) -> bytes:
    shape = b"".join(bytes_field(2, number_field(1, size)) for size in tensor.shape)
    return (
        number_field(1, DTYPE_NUMBERS[tensor.dtype])
        + bytes_field(2, shape)
        + number_field(3, shard)
        + number_field(4, offset)
        + number_field(5, len(data))
        + varint(6 << 3 | 5)
        + masked_crc32c(data).to_bytes(4, "little")
    )


def table(entries: Sequence[tuple[bytes, bytes]], options: BundleOptions, compression: int = 0) -> bytes:
    """A sorted table of these entries."""
    out = bytearray()
    handles: list[tuple[bytes, bytes]] = []
    waiting: list[tuple[bytes, bytes]] = []
    for number, item in enumerate(entries):
        waiting.append(item)
        if sum(len(k) + len(v) for k, v in waiting) >= options.block_size or number == len(entries) - 1:
            handles.append((waiting[-1][0], append_block(out, waiting, options, compression)))
            waiting = []
    metaindex = append_block(out, [], options)
    index = append_block(out, handles, options)
    footer = (metaindex + index).ljust(40, b"\0") + MAGIC.to_bytes(8, "little")
    return bytes(out + footer)


def append_block(
    out: bytearray, entries: Sequence[tuple[bytes, bytes]], options: BundleOptions, compression: int = 0
) -> bytes:
    """Add a block and give its handle."""
    block, restarts, last = bytearray(), [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % options.restart_interval == 0:
            restarts.append(len(block))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        block += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    for restart in restarts or [0]:
        block += restart.to_bytes(4, "little")
    block += len(restarts or [0]).to_bytes(4, "little")
    handle = varint(len(out)) + varint(len(block))
    checked = bytes(block) + bytes([compression])
    out += checked + masked_crc32c(checked).to_bytes(4, "little")
    return handle
