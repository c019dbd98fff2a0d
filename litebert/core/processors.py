"""The processors that this process may use."""

import os


def list_processors() -> set[int]:
    """The numbers of these processors; a container, `taskset` or a cluster often allows fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))  # macOS
