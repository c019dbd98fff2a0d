"""Compiling a hot integer loop with numba: cached on disk where it can be, free of Python's lock, typed for mypy."""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
_ROOM = Path(__file__).parent
_SETTINGS: Any = numba.config


def compiled(function: Function) -> Function:
    """The function as machine code. Loader threads run side by side, since it holds no lock of Python's."""
    chosen = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = _cache_directory(chosen)
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither the package nor the user's cache folder can be written: compile in every process
        return cast(Function, numba.njit(nogil=True)(function))
    finally:
        _SETTINGS.CACHE_DIR = chosen


def name_sources(sources: Iterable[Path]) -> str:
    """A name that changes with the content of any of the files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


@cache
def _cache_directory(chosen: str) -> str:
    # numba compiles a function anew when its own file changes, but not when a function that it calls does: machine code
    # of an old generator would live on. A folder named after all of them cannot be stale.
    sources = [path for path in sorted(_ROOM.glob("*.py")) if b"@compiled" in path.read_bytes()]
    return str(Path(chosen or _ROOM / "__pycache__") / f"machine-code-{name_sources(sources)}")
