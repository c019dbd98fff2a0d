"""Compiling a hot integer loop with numba: cached on disk where it can be, free of Python's lock, typed for mypy."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code. Loader threads run side by side, since it holds no lock of Python's."""
    try:
        return cast(Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither the package nor the user's cache folder can be written: compile in every process
        return cast(Function, numba.njit(nogil=True)(function))
