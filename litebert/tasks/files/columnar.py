"""Reads Parquet and Arrow tables as the `datasets` library stores them: one file, numbered shards, a folder per split.

`Dataset.save_to_disk` writes folders of Arrow files, the hub has Parquet shards; the schema of both has the names of
numbered labels.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litebert.core.errors import ConfigError, DataError, in_one_line

if TYPE_CHECKING:
    import pyarrow

_SHARD = re.compile(r"(?P<stem>.+)-00000-of-\d{5}\.parquet")


def find_columnar(folder: Path, stem: str) -> list[Path]:
    """The first shard of the split of this name, or its folder of Arrow files."""
    arrow = [folder / stem] if any((folder / stem).glob("*.arrow")) else []
    return [*sorted(folder.glob(f"{stem}-00000-of-*.parquet")), *arrow]


def is_columnar(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".arrow") or (path.is_dir() and any(path.glob("*.arrow")))


def read_columns(path: Path) -> tuple[list[dict[str, Any]], dict[str, tuple[str, ...]]]:
    """The rows, and the label names of columns with numbered labels."""
    try:
        import pyarrow
    except ImportError:
        raise ConfigError(
            "missing-package", f"{path}: reading Parquet needs pyarrow; run pip install 'litebert[parquet]'"
        ) from None
    parts = [_read_file(file) for file in _list_files(path)]
    try:
        table = pyarrow.concat_tables(parts)
    except pyarrow.ArrowInvalid as error:
        raise DataError("columns-mismatch", f"{path}: its shards have different columns ({error})") from None
    try:
        return table.to_pylist(), _read_names(table.schema)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise DataError("corrupt-file", f"{path}: cannot read its values or label names ({error})") from None


def _list_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.arrow"))
    shard = _SHARD.fullmatch(path.name)
    if not shard:
        return [path]
    total = int(path.stem[-5:])
    files = [path.with_name(f"{shard['stem']}-{number:05d}-of-{total:05d}.parquet") for number in range(total)]
    for file in files:
        if not file.is_file():
            raise DataError("missing-file", f"{file}: this shard of {path.name} is missing; download it again")
    return files


def _read_file(file: Path) -> "pyarrow.Table":
    from pyarrow import ArrowException, ipc, memory_map, parquet

    if not file.is_file():
        raise DataError("missing-file", f"{file}: no such file")
    try:
        if file.suffix.lower() != ".arrow":
            table = parquet.read_table(file)
        else:
            with memory_map(str(file)) as source:
                table = ipc.open_stream(source).read_all()
        table.validate(full=True)  # checks offsets and UTF-8; no later code does
        return table
    except (OSError, ArrowException, UnicodeDecodeError) as error:  # column names are decoded, too
        raise DataError(
            "corrupt-file",
            f"{file}: not a valid {'Arrow' if file.suffix == '.arrow' else 'Parquet'} file ({in_one_line(error)})",
        ) from None


def _read_names(schema: "pyarrow.Schema") -> dict[str, tuple[str, ...]]:
    """The names that `datasets` stores for numbered labels, by column."""
    kept = (schema.metadata or {}).get(b"huggingface")
    features = json.loads(kept).get("info", {}).get("features", {}) if kept else {}
    return {column: tuple(names) for column, feature in features.items() for names in _iter_names(feature)}


def _iter_names(feature: Any) -> Iterator[list[str]]:
    """The names of a label, or of the labels of a list."""
    if isinstance(feature, list):  # lists as written by older versions
        feature = {"feature": feature[0]}
    inner = feature.get("feature", feature)
    if inner.get("_type") == "ClassLabel":
        yield inner["names"]
