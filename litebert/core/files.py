"""Files that are either complete or not there: written under a temporary name, renamed when done."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litebert.core.errors import BusyError, ConfigError, DataError

LOCK_FILE = ".lock"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary file path beside `path`; what is written there becomes `path` when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp's 0600 would hide the result from other users
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """A temporary directory beside `path`; it becomes `path` when the block ends without error.

    A `path` that is there already is an error, or is replaced if so wished: a kill loses neither the old nor the new.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        for file in (*sorted(temporary.rglob("*")), temporary):
            _sync(file)
        if replaces and path.exists():
            _replace_directory(path, temporary)
        else:
            temporary.rename(path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def exclusive_lock(directory: Path, *, purpose: str) -> Iterator[None]:
    """Hold a directory for this process; a second one is refused, and a killed one holds nothing.

    A directory that is made for the lock goes again where an error comes before anything else was written.
    """
    file = directory / LOCK_FILE
    try:
        is_new = _make_directory(directory)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ConfigError(f"cannot write to {directory}: {error.strerror}; choose another folder") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another process is {purpose} in {directory}; wait for it, or stop it") from None
        except OSError as error:  # some file systems of clusters cannot lock
            raise ConfigError(
                f"{directory} cannot be locked ({error.strerror}), so two processes would not know of each other: "
                "choose a folder on another file system"
            ) from None
        yield
    except BusyError:  # the folder is the other process's by now, whoever made it
        raise
    except Exception:
        if is_new and directory.exists() and list(directory.iterdir()) == [file]:
            shutil.rmtree(directory)
        raise
    finally:
        os.close(handle)  # the lock goes with it


def _make_directory(directory: Path) -> bool:
    """Make a directory; False if it was there. Of several processes at once, one alone hears that it is new."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir()
    except FileExistsError:
        return False
    return True


def remove_leftovers(directory: Path) -> None:
    """Delete what a killed `atomic_path` or `atomic_directory` left in a directory that this process holds."""
    for path in directory.glob(".*.tmp"):
        _remove(path)
    for aside in directory.glob(".*.old"):  # a directory that was replaced: the only whole one until the new is there
        name = aside.name.removeprefix(".").rsplit(".", 2)[0]
        if (directory / name).exists():
            _remove(aside)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check_keys(path: Path, value: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Refuse an object that lacks what it must have, or has it of another kind."""
    for key, kind in kinds.items():
        if key not in value or not isinstance(value[key], kind):
            raise DataError(f"{path} is damaged: it says nothing fit of '{key}'")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; anything else is refused, nested ever so deeply or not.

    A file that cannot be read is the system's error: nothing says that it is damaged.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise DataError(f"{path} is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON, or is damaged: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no object of JSON; is it the right file?")
    return value


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_directory() -> Path:
    """Where costly results are kept for the next time: $LITEBERT_CACHE, else `litebert` in the user's cache folder."""
    chosen = os.environ.get("LITEBERT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "litebert"


def _replace_directory(path: Path, new: Path) -> None:
    # no system call everywhere swaps two directories: between the renames both are there, whole, under hidden names
    aside = new.with_suffix(".old")  # not .tmp: no leftover, until the new one is in its place
    path.rename(aside)
    try:
        new.rename(path)
    except OSError:
        aside.rename(path)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    """Delete a file, a directory, or a link but not what it points to."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
