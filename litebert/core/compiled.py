"""Compiling loops with numba: cached on disk if possible, releasing the GIL, typed for mypy."""

# mypy: disable-error-code="no-untyped-call"

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, install_listener

from litebert.core.caches import cache_directory
from litebert.core.progress import ProgressBar

Function = TypeVar("Function", bound=Callable[..., Any])
_functions: set[str] = set()  # the names of all that may have to be compiled
_PACKAGE = Path(__file__).parents[1]
_SETTINGS: Any = numba.config


class _OptionalCache(FunctionCache):
    """numba's cache on disk, for which a full disk or a corrupt file means compiling again and not an exception."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling may raise: numba does not sync its files, so a power loss leaves holes
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Function) -> Function:
    """Compile a function lazily with numba; `show_compiling` counts it in its total."""
    _functions.add(function.__qualname__)
    return compiled_with()(function)


def compiled_with(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba's options. It releases the GIL, so threads run in parallel."""

    def compile_lazily(function: Function) -> Function:
        dispatcher = numba.njit(nogil=True, **options)(function)
        chosen = _SETTINGS.CACHE_DIR
        _SETTINGS.CACHE_DIR = _cache_directory(chosen)
        try:
            dispatcher._cache = _OptionalCache(function)  # as njit(cache=True) does with numba's own class
        except RuntimeError:  # no folder can be written to: every process compiles for itself
            pass
        finally:
            _SETTINGS.CACHE_DIR = chosen
        return cast(Function, dispatcher)

    return compile_lazily


@contextmanager
def show_compiling() -> Iterator[None]:
    """Show a progress bar while the block compiles functions. Nothing is shown for functions loaded from the cache."""
    is_quiet = os.environ.get("RANK", "0") != "0"  # only the first process of a run prints
    title = "compiling for this machine (only once)"
    with (
        ProgressBar(title, total=len(_functions), unit="functions", scale=1, is_quiet=is_quiet) as progress,
        install_listener("numba:compile", _Counter(progress)),
    ):
        yield


class _Counter(Listener):
    """Updates the progress bar with the number of compiled functions."""

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
    sources = [path for path in sorted(_PACKAGE.rglob("*.py")) if b"@compiled" in path.read_bytes()]
    root = Path(chosen) if chosen else cache_directory()
    return str(root / f"machine-code-{name_sources(sources)}")
