"""The number of compute threads: one per physical core that this process may use."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from litebert.core.processes import list_processors
from litebert.core.ranges import read_whole_number

CPUS = Path("/sys/devices/system/cpu")
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def choose_threads(wanted: int, environment: Mapping[str, str] = os.environ) -> int:
    """The requested number of threads; for 0, OMP_NUM_THREADS if set, else one per core."""
    return wanted or read_whole_number(environment.get("OMP_NUM_THREADS", "")) or count_cores()


def count_cores(cpus: Path = CPUS, quota: Path = QUOTA, affinity: Callable[[], set[int]] | None = None) -> int:
    """The physical cores that this process may use; hyperthreads of one core share its arithmetic units."""
    mine = affinity() if affinity else list_processors()
    cores = {_siblings(cpus, number) for number in mine}
    return max(1, min(len(cores), _read_quota(quota)))


def _siblings(cpus: Path, number: int) -> str:
    """A key shared by the hyperthreads of one core; without Linux's sysfs each counts as a core."""
    file = cpus / f"cpu{number}" / "topology" / "thread_siblings_list"
    return file.read_text().strip() if file.is_file() else str(number)


def _read_quota(file: Path) -> int:
    """The container's CPU quota, rounded up."""
    words = file.read_text().split() if file.is_file() else []
    return -(-int(words[0]) // int(words[1])) if len(words) == 2 and words[0] != "max" else 2**16
