"""The memory of this process."""

import ctypes
import sys


def return_freed_memory() -> None:
    """Give back to the system what was freed: glibc keeps much of it, and the process looks several times its size."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none, and keep less
        if trim is not None:
            trim(0)
