"""The processors of this process."""

import os


def list_processors() -> set[int]:
    """Those that it may run on: a container, `taskset` or a cluster often leaves it fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))  # macOS
