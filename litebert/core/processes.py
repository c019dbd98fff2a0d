"""Processes for a pool that do not run the caller's script again.

Python's "spawn" imports the script that started it in every child, so that a script (or notebook) that calls us without
`if __name__ == "__main__"` would start itself over and over. Our children need nothing from it.
"""

import sys
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any


class _Process(SpawnProcess):  # inherits, for `multiprocessing` offers no other way to say how a child begins
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
    """For `ProcessPoolExecutor`: forking a process that has threads can deadlock, so children begin afresh."""
    return _Context()
