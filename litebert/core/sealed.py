"""The JSON files that describe our directories: sealed with a checksum of their own content, read strictly.

A file that contains the hashes of others must not change unnoticed either, so it has a checksum of its own: the key
`checksum` is the SHA-256 of all other content, independent of the layout. Files of earlier versions have none and are
still read; their keys and types are checked, but their content cannot be verified.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from litebert.core.errors import DataError
from litebert.core.files import hash_file, parse_json, read_json, write_json

CHECKSUM = "checksum"
T = TypeVar("T")


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object with its checksum, atomically."""
    write_json(path, seal(value))


def read_sealed(path: Path, *, fix: str = "restore the original") -> dict[str, Any]:
    """The object in a file, after comparing its checksum; `fix` is the advice if that differs."""
    return parse_sealed(path.read_bytes(), where=str(path), fix=fix)


def parse_sealed(text: str | bytes, *, where: str, fix: str = "restore the original") -> dict[str, Any]:
    """`read_sealed` for a text, such as a line of a file."""
    try:
        value = parse_json(text, where)
    except DataError as error:
        raise DataError(error.code, f"{error}; {fix}") from None
    stated = value.pop(CHECKSUM, None)
    if stated is not None and stated != compute_checksum(value):
        raise DataError("corrupt-file", f"{where} is corrupt: its content does not match its checksum; {fix}")
    return value


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its checksum as the first key, so that a file cut off at the end still has it."""
    return {CHECKSUM: compute_checksum(value), **value}


def is_sealed(path: Path) -> bool:
    """Whether a file has a checksum of its own content; those of earlier versions do not."""
    return CHECKSUM in read_json(path)


def compute_checksum(value: Mapping[str, Any]) -> str:
    """The SHA-256 of an object's content, the same for every layout and order of keys."""
    plain = json.loads(json.dumps(value))  # as it will be read: tuples become lists, keys become strings
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def build_record(kind: type[T], value: Mapping[str, Any], *, where: str, fix: str = "restore the original") -> T:
    """The dataclass `kind` from a JSON object; a missing, unknown or wrongly typed key is an error that names it."""
    unknown = value.keys() - {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown:
        raise DataError("corrupt-file", f'{where} is corrupt: unknown key "{min(unknown)[:80]}"; {fix}')
    try:
        # through JSON: strict about types, but an array may become a tuple and a string a path
        record: T = _adapter(kind).validate_json(json.dumps(value), strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise DataError("corrupt-file", f'{where} is corrupt: "{key[:80]}": {first["msg"]}; {fix}') from None
    return record


def hash_files(folder: Path, *, without: Collection[str] = ()) -> dict[str, str]:
    """The SHA-256 of every file in a folder by relative path, as the folder's manifest records them."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: hash_file(path) for name, path in files.items() if name not in without}


def stays_inside(name: str) -> bool:
    """Whether a path in a root file is one inside its folder: a stranger's file must not make us read elsewhere."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def find_changed(folder: Path, files: Mapping[str, str]) -> list[str]:
    """A message for each recorded file that is missing, has changed, or is outside of the folder."""
    problems = []
    for name, expected in files.items():
        if not stays_inside(name):
            problems.append(f"{folder} lists a file outside of it, {name[:80]!r}")
        elif not (folder / name).is_file():
            problems.append(f"{folder / name} is missing")
        elif hash_file(folder / name) != expected:
            problems.append(f"{folder / name} is corrupt: its SHA-256 differs from the recorded one")
    return problems


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
