"""A record of verified files: a large file is hashed once, and again only after it changed.

A line of the record is a hash of the file's state (device, inode, size, modification and change times) and of the claim
that was verified. The record is in the cache folder; if that is not writable, it lasts as long as this process. Bits
that flip on the disk do not change a file's state: to find those, `litebert verify` reads everything again.
"""

import hashlib
from pathlib import Path

from litebert.core.caches import cache_directory

_FILE = "verified"
_MAX_BYTES = 1 << 20  # some 16,000 files; then the record is emptied
_remembered: set[str] = set()


def describe_state(file: Path, claim: str) -> str:
    """A key for `claim` about a file in its present state; compute it before reading the file."""
    facts = file.stat()
    state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return hashlib.sha256(f"{state} {claim}".encode()).hexdigest()


def is_verified(entry: str) -> bool:
    """Whether the claim of a key from `describe_state` was verified before."""
    if entry not in _remembered:
        try:
            _remembered.update((cache_directory() / _FILE).read_text("ascii", errors="replace").split())
        except (OSError, RuntimeError):  # no such file, or no home
            return False
    return entry in _remembered


def remember_verified(entry: str) -> None:
    """Record that the claim of a key from `describe_state` was verified."""
    _remembered.add(entry)
    try:
        store = cache_directory() / _FILE
        store.parent.mkdir(parents=True, exist_ok=True)
        if store.exists() and store.stat().st_size > _MAX_BYTES:
            store.unlink(missing_ok=True)
        with store.open("a", encoding="ascii") as lines:
            lines.write(f"\n{entry}\n")  # the previous line may be incomplete
    except (OSError, RuntimeError):
        return
