"""Which files have been verified: a large file is read once to compare its hash, and again only after it changed.

What is remembered is the file's state (device, inode, size, times of modification and change) and what was found true
of it, as one hash per line of a file in the cache folder. Where that cannot be written, this process alone remembers.
Bits that flip on the disk itself leave a file's state as it was: for those, `litebert verify` reads everything again.
"""

import hashlib
from pathlib import Path

from litebert.core.caches import cache_directory

_FILE = "verified"
_MAX_BYTES = 1 << 20  # some 16,000 files; then it starts anew
_remembered: set[str] = set()


def describe_state(file: Path, claim: str) -> str:
    """A name for `claim` being true of a file as it is now; to be taken before the file is read."""
    facts = file.stat()
    state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return hashlib.sha256(f"{state} {claim}".encode()).hexdigest()


def is_verified(entry: str) -> bool:
    """Whether what `describe_state` named was found true before."""
    if entry not in _remembered:
        try:
            _remembered.update((cache_directory() / _FILE).read_text("ascii", errors="replace").split())
        except (OSError, RuntimeError):  # no such file, or no home
            return False
    return entry in _remembered


def note_verified(entry: str) -> None:
    """Remember that what `describe_state` named is true."""
    _remembered.add(entry)
    try:
        store = cache_directory() / _FILE
        store.parent.mkdir(parents=True, exist_ok=True)
        if store.exists() and store.stat().st_size > _MAX_BYTES:
            store.unlink(missing_ok=True)
        with store.open("a", encoding="ascii") as lines:
            lines.write(f"\n{entry}\n")  # on a line of its own, also after one that was cut short
    except (OSError, RuntimeError):
        return
