"""The cache folder, for results that are slow to compute again. A missing or full cache is never an error."""

import os
import stat
import tempfile
from pathlib import Path


def cache_directory() -> Path:
    """$LITEBERT_CACHE, else `litebert` in the user's cache folder, else a private folder for temporary files.

    In a container, the home folder is often missing or read-only. The folder may not be writable if none is: then
    writing fails, and the caller computes again.
    """
    chosen = os.environ.get("LITEBERT_CACHE")
    if chosen:
        return Path(chosen)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home raises for users unknown to the system
    usual = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "litebert"
    return usual if _is_writable(usual) else _private_temporary() or usual


def _is_writable(directory: Path) -> bool:
    """Whether files can be created in a directory, which is created if it is missing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def _private_temporary() -> Path | None:
    """A folder in the temporary directory that only this user can write to, because cached machine code is executed."""
    try:
        directory = Path(tempfile.gettempdir()) / f"litebert-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        facts = directory.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
    return directory if is_private and _is_writable(directory) else None
