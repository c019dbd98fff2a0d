"""Faults at chosen file operations of this process: a kill, a full disk or a broken one at the n-th of them.

`watch` sees what Python code does below a folder: files opened for writing, each write that reaches the system,
renames, removals, syncs. Libraries that write by themselves (safetensors, numpy's `tofile`) are seen when their file is
synced or renamed; kills at random instants hit the middle of their writes.
"""

import builtins
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

KINDS = ("kill", "torn", "ENOSPC", "EIO")  # torn: half of what is written arrives, then the process is killed
_AUDITED = {
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.rmdir": "rmdir",
    "os.mkdir": "mkdir",
    "os.truncate": "truncate",
    "os.chmod": "chmod",
}
Observer = Callable[[str, tuple[str, ...]], None]  # the operation and its paths; before it happens, except for "wrote"


class FaultPlan:
    """An observer that lets one operation fail and counts all of them."""

    def __init__(self, number: int = 0, kind: str = "kill") -> None:
        self.number, self.kind, self.count = number, kind, 0

    def __call__(self, operation: str, paths: tuple[str, ...]) -> None:
        if operation == "wrote":
            return
        self.count += 1
        if self.count != self.number or (self.kind == "torn" and operation == "write"):
            return
        if self.kind in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        code = getattr(errno, self.kind)
        raise OSError(code, os.strerror(code), paths[0] if paths else None)

    def tears(self) -> bool:
        """Whether the write that is about to happen is the one to be torn."""
        return self.kind == "torn" and self.count == self.number


def watch(folder: Path, observe: Observer) -> None:
    """Report every operation below a folder, from now to the end of this process."""
    root = str(folder.resolve())

    def name_of(target: Any) -> str:
        if isinstance(target, int):
            target = Path(f"/proc/self/fd/{target}").readlink() if target >= 0 else ""
        return os.path.abspath(os.fsdecode(target))  # noqa: PTH100  links stay links

    def report(operation: str, *targets: Any) -> None:
        paths = tuple(name_of(target) for target in targets)
        if any(path == root or path.startswith(f"{root}/") for path in paths):  # not the log beside it
            observe(operation, paths)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _AUDITED:
            report(_AUDITED[event], *arguments[: 2 if event == "os.rename" else 1])
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
            report("open", arguments[0])

    sys.addaudithook(audit)
    _replace_open(report, observe)
    sync = os.fsync
    os.fsync = lambda target: (report("fsync", target), sync(target))[1]  # type: ignore[assignment,func-returns-value]


def _replace_open(report: Callable[..., None], observe: Observer) -> None:
    """Let every file that Python opens for writing pass its writes through us, behind its usual buffers."""
    original = io.open

    class WatchedFile(io.FileIO):
        def write(self, data: Any) -> int:
            report("write", self.name)
            if isinstance(observe, FaultPlan) and observe.tears():
                super().write(bytes(data)[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            written = super().write(data)
            report("wrote", self.name)
            return written

    def open_watched(
        file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None, newline: Any = None,
        closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if not set(mode) & set("wax+"):
            return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = WatchedFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffer
        text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text

    builtins.open = io.open = open_watched  # type: ignore[assignment]
