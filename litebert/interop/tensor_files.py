"""The tensors of a Hugging Face folder: safetensors, single or sharded, and pickles without running their code.

Nothing outside the folder is read, whatever an index or a link says.
"""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from litebert.core.errors import DataError
from litebert.core.files import read_json
from litebert.interop.matching import Store, Stored
from litebert.interop.own_files import checked_file

SAFE = "model.safetensors"
PICKLE = "pytorch_model.bin"
SAFE_SUFFIX = ".safetensors"
PICKLE_SUFFIX = ".bin"
INDEX_SUFFIX = ".index.json"
_PART = 1 << 20  # bytes of a file read at once
STATE_KEYS = ("state_dict", "model_state_dict")
OTHERS = {
    "tf_model.h5": "Keras",
    "flax_model.msgpack": "Flax",
    "model.onnx": "ONNX",
    "model.ckpt.h5": "Keras",
}


def open_tensor_files(folder: Path, named: str | None = None) -> Store:
    """The tensors of a folder (safetensors before pickles), or of the one file named; no tensors is an error."""
    if named is not None:
        return _join([(checked_file(folder, named), named.endswith(PICKLE_SUFFIX))])
    for name, is_pickle in ((SAFE, False), (PICKLE, True)):
        if (folder / f"{name}{INDEX_SUFFIX}").is_file():
            return _open_shards(folder, f"{name}{INDEX_SUFFIX}", is_pickle=is_pickle)
        if (folder / name).is_file() or (folder / name).is_symlink():
            return _join([(checked_file(folder, name), is_pickle)])
    for name, library in OTHERS.items():
        if (folder / name).is_file():
            raise DataError(
                "unsupported-weights",
                f"{folder} has only {library} weights ({name}); save them as {SAFE} with transformers",
            )
    raise DataError("missing-file", f"{folder} has no weights: neither {SAFE} nor {PICKLE}")


def has_tensor_files(folder: Path) -> bool:
    """Whether a folder has weights that `open_tensor_files` looks for."""
    names = [*OTHERS, *(f"{name}{suffix}" for name in (SAFE, PICKLE) for suffix in ("", INDEX_SUFFIX))]
    return any((folder / name).is_file() for name in names)


def _open_shards(folder: Path, index_name: str, *, is_pickle: bool) -> Store:
    index = checked_file(folder, index_name)
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise DataError("corrupt-file", f"{index} is not a shard index: it has no weight_map")
    wanted = {str(name): str(file) for name, file in weight_map.items()}
    store = _join([(checked_file(folder, name), is_pickle) for name in sorted(set(wanted.values()))])
    for name in sorted(wanted.keys() ^ store.tensors.keys()):
        verb = "is not in any shard" if name in wanted else "is in a shard, but not in the index"
        raise DataError("corrupt-file", f"{index}: {name} {verb}")
    return store


def _join(files: list[tuple[Path, bool]]) -> Store:
    tensors: dict[str, Stored] = {}
    readers: dict[str, Any] = {}
    for file, is_pickle in files:
        opened = _open_pickle(file) if is_pickle else _open_safe(file)
        for name, (stored, reader) in opened.items():
            if name in tensors:
                raise DataError("duplicate-tensor", f"{file}: {name} is in more than one shard")
            tensors[name], readers[name] = stored, reader
    return Store(tensors, lambda name: readers[name](name), tuple(file for file, _ in files), files[0][1])


def _open_safe(file: Path) -> dict[str, tuple[Stored, Any]]:
    try:
        opened: Any = safe_open(file, framework="pt")
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 (not a dict)
        # shapes and types come from the header; only requested tensors are mapped into memory
        return {
            name: (Stored(tuple(part.get_shape()), _dtype_name(part.get_dtype())), opened.get_tensor)
            for name, part in slices.items()
        }
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError("corrupt-file", f"{file} cannot be read: {error}") from None


def _dtype_name(code: str) -> str:
    return {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64"}.get(code, code)


def _open_pickle(file: Path) -> dict[str, tuple[Stored, Any]]:
    _check_checksums(file)
    loaded = _load_pickle(file)
    if isinstance(loaded, Mapping):  # a training state keeps its weights under one of these names
        loaded = next((loaded[key] for key in STATE_KEYS if isinstance(loaded.get(key), Mapping)), loaded)
    if not isinstance(loaded, Mapping) or not all(isinstance(tensor, Tensor) for tensor in loaded.values()):
        raise DataError("not-weights", f"{file} contains more than named tensors; is it a training state?")
    for name, tensor in loaded.items():
        _check_plain(tensor, f"{file}: {name}")
    return {
        str(name): (Stored(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")), lambda _, t=tensor: t)
        for name, tensor in loaded.items()
    }


def _check_plain(tensor: Tensor, where: str) -> None:
    """Raise unless a tensor stores each value once: a view could claim far more values than the file has."""
    is_dense = tensor.layout == torch.strided and not tensor.is_nested
    if not is_dense or tensor.is_quantized or tensor.device.type != "cpu":
        raise DataError(
            "not-weights", f"{where} is sparse, nested, quantized or on the meta device: save it as a plain tensor"
        )
    if tensor.numel() * tensor.itemsize > tensor.untyped_storage().nbytes():
        raise DataError("corrupt-file", f"{where} is {list(tensor.shape)}, but the file has fewer values")


def _load_pickle(file: Path) -> Any:
    try:
        try:
            return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # the format before torch 1.6 cannot be memory-mapped
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises arbitrary errors on corrupt bytes, and suggests unsafe loading
        found = re.search(r"Unsupported global: GLOBAL ([\w.]+)", str(error))
        what = f"contains more than tensors ({found[1]})" if found else "is corrupt or contains more than tensors"
        raise DataError(
            "unsafe-pickle",
            f"{file} {what}, which could run code, so it was not loaded; use {SAFE}, or save the plain "
            "tensors where you trust the file",
        ) from None


def _check_checksums(file: Path) -> None:
    """Verify the CRCs of a zip file written by torch, which torch itself does not check."""
    if not zipfile.is_zipfile(file):  # the format before torch 1.6 has no checksums
        return
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                # torch can be configured to omit checksums, which are then 0; it never compresses
                if entry.CRC and entry.compress_type == zipfile.ZIP_STORED:
                    with archive.open(entry) as stream:
                        while stream.read(_PART):
                            pass
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise DataError("corrupt-file", f"{file} is corrupt ({error}): copy or download it again") from None
