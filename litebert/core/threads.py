"""Threads for compiled loops, which release Python's lock."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_threads(kernel: Callable[..., None], calls: Sequence[tuple[Any, ...]], num_threads: int) -> None:
    """Call the kernel with each of these arguments, in at most so many threads."""
    num_threads = min(num_threads, len(calls))

    def run_share(first: int) -> None:
        for call in calls[first::num_threads]:
            kernel(*call)

    if num_threads <= 1:
        run_share(0)
    else:
        with ThreadPoolExecutor(num_threads) as pool:
            list(pool.map(run_share, range(num_threads)))  # a list, so that a thread's exception is raised here
