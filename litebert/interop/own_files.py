"""Checks that files really are in the model folder: a link to another place could expose unrelated files."""

from pathlib import Path

from litebert.core.errors import DataError
from litebert.core.files import read_json

TOKENIZER_FILES = ("*.model", "tokenizer*.json", "vocab*.json", "*vocab*.txt", "merges.txt", "manifest.json")


def checked_file(folder: Path, name: str) -> Path:
    """The path of a file in a folder; raises an error if it is missing or outside."""
    if name != Path(name).name or name in (".", ".."):
        raise DataError(
            "unsafe-path",
            f"{folder}: the file name '{name}' points outside the folder; shards must be next to their index",
        )
    file = folder / name
    try:
        real, is_there = file.resolve(), file.is_file()
    except (ValueError, OSError, RuntimeError):  # a NUL in the name, a name that is too long, circular links
        raise DataError("unsafe-path", f"{folder}: {repr(name)[:80]} is not a valid file name") from None
    if not real.is_relative_to(_root(folder)):
        raise DataError("unsafe-path", f"{file} links outside the folder, to {real}; copy the file instead")
    if not is_there:
        raise DataError("missing-file", f"{file} is missing; was the model copied completely?")
    return file


def check_tokenizer_files(path: Path) -> None:
    """Raise if a tokenizer file in this folder, or next to this file, links elsewhere or is not readable JSON."""
    folder = path if path.is_dir() else path.parent
    for pattern in TOKENIZER_FILES:
        for found in sorted(folder.glob(pattern)):
            file = checked_file(folder, found.name)
            if file.suffix == ".json":
                read_json(file)


def _root(folder: Path) -> Path:
    """The folder that files must be in: this one, or in the hub's cache the repository that a snapshot links into."""
    real = folder.resolve()
    for snapshot in (real, *real.parents):
        if snapshot.parent.name == "snapshots" and (snapshot.parent.parent / "blobs").is_dir():
            return snapshot.parent.parent
    return real
