"""Compiling a hot integer loop with numba: cached on disk where it can be, free of Python's lock, typed for mypy."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Event, Listener, install_listener

from litebert.core.progress import ProgressBar

Function = TypeVar("Function", bound=Callable[..., Any])
_functions: set[str] = set()  # the names of all that may have to be compiled
_ROOM = Path(__file__).parent
_SETTINGS: Any = numba.config


def compiled(function: Function) -> Function:
    """The function as machine code. Loader threads run side by side, since it holds no lock of Python's."""
    _functions.add(function.__qualname__)
    chosen = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = _cache_directory(chosen)
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither the package nor the user's cache folder can be written: compile in every process
        return cast(Function, numba.njit(nogil=True)(function))
    finally:
        _SETTINGS.CACHE_DIR = chosen


@contextmanager
def compiling_shown() -> Iterator[None]:
    """Around a first use: show how far compiling has come. Machine code that lies in the cache is loaded in silence."""
    is_quiet = os.environ.get("RANK", "0") != "0"  # of the processes of one run, the first speaks
    title = "compiling for this machine, only this once"
    with (
        ProgressBar(title, total=len(_functions), unit="functions", scale=1, is_quiet=is_quiet) as progress,
        install_listener("numba:compile", _Counter(progress)),
    ):
        yield


class _Counter(Listener):
    """Tells the progress how many functions are compiled."""

    def __init__(self, progress: ProgressBar) -> None:
        self._progress = progress
        self._compiled: set[str] = set()

    def on_start(self, event: Event) -> None:  # noqa: ARG002
        self._progress.move_to(len(self._compiled))

    def on_end(self, event: Event) -> None:
        self._compiled |= {event.data["dispatcher"].py_func.__qualname__} & _functions
        self._progress.move_to(len(self._compiled))


def name_sources(sources: Iterable[Path]) -> str:
    """A name that changes with the content of any of the files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


@cache
def _cache_directory(chosen: str) -> str:
    # numba compiles a function anew when its own file changes, but not when a function that it calls does: machine code
    # of an old generator would live on. A folder named after all of them cannot be stale.
    sources = [path for path in sorted(_ROOM.glob("*.py")) if b"@compiled" in path.read_bytes()]
    return str(Path(chosen or _ROOM / "__pycache__") / f"machine-code-{name_sources(sources)}")
