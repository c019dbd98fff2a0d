"""Files that are either complete or not there: written under a temporary name, renamed when done."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from litebert.core.errors import BusyError, ConfigError, DataError

LOCK_FILE = ".lock"
_MAX_DEPTH = 100  # of objects in objects: what follows may walk through them by recursion


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary file next to `path`; it is renamed to `path` when the block ends without error."""
    make_directories(path.parent)
    _remove_abandoned(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    _lock(handle)
    temporary = Path(name)
    try:
        with _named(temporary, path):
            yield temporary
            temporary.chmod(0o666 & ~_umask())  # mkstemp's 0600 would hide the result from other users
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """A temporary directory next to `path`; it is renamed to `path` when the block ends without error.

    An existing `path` is an error unless `replaces` is set. A kill at any moment leaves the old or the new directory.
    """
    make_directories(path.parent)
    _remove_abandoned(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    handle = os.open(temporary, os.O_RDONLY)
    _lock(handle)
    try:
        with _named(temporary, path):
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            for file in (*sorted(temporary.rglob("*")), temporary):
                sync(file)
            if replaces and path.exists():
                _replace_directory(path, temporary)
            else:
                temporary.rename(path)
            sync(path.parent)
    finally:
        os.close(handle)
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def directory_to_write(path: Path, *, replaces: bool) -> Iterator[Path]:
    """Where to write a new directory: `path`, or a hidden place from which it replaces an existing `path`.

    For writers that refuse an existing directory. A kill at any moment leaves the old or the new one.
    """
    if not (replaces and path.exists()):
        yield path
        return
    _remove_abandoned(path)
    hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    handle = os.open(hidden, os.O_RDONLY)
    _lock(handle)
    try:
        with _named(hidden / path.name, path):
            yield hidden / path.name
            new = hidden.with_name(f"{hidden.stem}-new.tmp")
            (hidden / path.name).rename(new)
            _replace_directory(path, new)
    finally:
        os.close(handle)
        shutil.rmtree(hidden, ignore_errors=True)


def make_directories(directory: Path) -> None:
    """Make a directory and its parents, and sync them so that they survive a power loss."""
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


@contextmanager
def exclusive_lock(directory: Path, *, purpose: str) -> Iterator[None]:
    """Lock a directory for this process. A second process gets a BusyError; a killed one releases its lock.

    If the block fails before it writes anything, a directory that was created for the lock is removed.
    """
    file = directory / LOCK_FILE
    try:
        is_new = _make_directory(directory)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ConfigError(
            "cannot-write", f"cannot write to {directory}: {error.strerror}; choose another folder"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("busy", f"another process is {purpose} in {directory}; wait for it, or stop it") from None
        except OSError as error:  # some cluster file systems cannot lock
            raise ConfigError(
                "cannot-lock",
                f"{directory} cannot be locked ({error.strerror}), so a second process could overwrite it; choose a "
                "folder on another file system",
            ) from None
        yield
    except BusyError:  # the folder belongs to the other process now, even if this one created it
        raise
    except Exception:
        if is_new and directory.exists() and list(directory.iterdir()) == [file]:
            shutil.rmtree(directory)
        raise
    finally:
        os.close(handle)  # the lock goes with it


def _make_directory(directory: Path) -> bool:
    """Make a directory; False if it already existed. Only one of several concurrent processes gets True."""
    make_directories(directory.parent)
    try:
        directory.mkdir()
    except FileExistsError:
        return False
    sync(directory.parent)
    return True


def remove_leftovers(directory: Path) -> None:
    """Delete what a killed `atomic_path` or `atomic_directory` left in a directory that this process has locked."""
    for path in directory.glob(".*.tmp"):
        _remove(path)
    for aside in directory.glob(
        ".*.old"
    ):  # the replaced directory is the only complete one until the new one is in place
        name = aside.name.removeprefix(".").rsplit(".", 2)[0]
        if (directory / name).exists():
            _remove(aside)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check_keys(path: Path, value: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raise if a required key is missing or its value has the wrong type."""
    for key, kind in kinds.items():
        is_fit = key in value and isinstance(value[key], kind) and (kind is not int or type(value[key]) is int)
        if not is_fit:
            raise DataError("corrupt-file", f'{path} is corrupt: "{key}" is missing or has the wrong type')


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; anything else, or deep nesting, is a DataError.

    If the file cannot be opened, the OSError passes through: that does not mean that the file is corrupt.
    """
    return parse_json(path.read_bytes(), str(path))


def parse_json(text: str | bytes, where: str) -> dict[str, Any]:
    """The JSON object in a text; `where` names it in messages."""
    value = parse_json_value(text, where)
    if not isinstance(value, dict):
        raise DataError("bad-json", f"{where} is not a JSON object; is this the right file?")
    return value


def parse_json_value(text: str | bytes, where: str) -> Any:
    """Any JSON value in a text. Everything that litebert reads as JSON is read here, so that no text raises otherwise.

    Deep nesting is refused even where the parser can read it: what follows may walk through the value by recursion.
    """
    try:
        value = json.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError:
        raise DataError("bad-json", f"{where} is nested too deeply") from None
    except ValueError as error:
        raise DataError("bad-json", f"{where} is not valid JSON: {error}") from None
    if _is_nested_deeper(value, _MAX_DEPTH):
        raise DataError("bad-json", f"{where} is nested too deeply")
    return value


def _is_nested_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace_directory(path: Path, new: Path) -> None:
    # no portable system call swaps two directories: between the renames both are complete, under hidden names
    aside = new.with_suffix(".old")  # not .tmp: it is not a leftover until the new one is in place
    path.rename(aside)
    try:
        new.rename(path)
    except OSError:
        aside.rename(path)
        raise
    sync(path.parent)  # a power loss must not undo the renames after it has emptied the old one
    _remove(aside)


def _remove_abandoned(path: Path) -> None:
    """Delete what killed processes left of earlier attempts to write `path`; an active writer holds a lock."""
    prefix = f".{path.name}."
    for leftover in [item for item in path.parent.iterdir() if item.name.startswith(prefix)]:
        if leftover.suffix not in (".tmp", ".old"):
            continue
        if leftover.suffix == ".old" and not path.exists():  # the only complete copy until it is replaced
            continue
        with suppress(OSError):
            handle = os.open(leftover, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(leftover)
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    with suppress(OSError):  # without locks, nothing that looks abandoned is removed
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _named(temporary: Path, path: Path) -> Iterator[None]:
    """Make write errors name the target file instead of its hidden temporary name."""
    try:
        yield
    except OSError as error:
        for place in ("filename", "filename2"):
            name = getattr(error, place)
            if name is not None and os.fsdecode(name).startswith(str(temporary)):
                setattr(error, place, str(path) + os.fsdecode(name).removeprefix(str(temporary)))
        if error.filename is None and error.errno is not None:  # a write to an open file does not say which
            error.filename = str(path)
        raise


def _remove(path: Path) -> None:
    """Delete a file, a directory, or a link but not what it points to."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def sync(path: Path) -> None:
    """Wait until a file's content, or a directory's names, would survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
