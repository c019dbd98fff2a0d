"""The processors that this process may use, and child processes that do not run the caller's script again.

With Python's "spawn", every child imports the script of its parent, so a script or notebook that calls litebert without
`if __name__ == "__main__"` would start itself again and again. Our children need nothing from it.
"""

import os
import sys
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any


class _Process(SpawnProcess):  # a subclass, because `multiprocessing` has no other hook for starting a child
    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # without a file, there is nothing to run in the child
        try:
            return SpawnProcess._Popen(process_obj)  # `start` calls it to prepare the child
        finally:
            sys.modules["__main__"] = script


class _Context(SpawnContext):
    Process = _Process


def spawn_context() -> SpawnContext:
    """A context for `ProcessPoolExecutor`. It spawns, because forking a process with threads can deadlock."""
    return _Context()


def list_processors() -> set[int]:
    """The processors that this process may use: a container, `taskset` or a cluster often allows fewer than all."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))  # macOS
