"""A contender's processor-time budget, and a record of the machine's load.

Budgets are processor time, summed over processes: 120 CPU minutes are an hour on two free cores or two hours on one,
and the same amount of work if other programs compete for the cores. Building batches counts; measuring and saving
do not.
"""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from litebert.core.files import write_json

RECORD = "contender.json"
_BEAT_SECONDS = 20


@dataclass(frozen=True)
class Machine:
    """The processes of a contender, and the cores they are pinned to (empty: any)."""

    processes: int
    threads: int  # per process
    cores: tuple[int, ...] = ()


def claim(machine: Machine) -> None:
    """Pin this process to its cores and threads; for several processes, exec torchrun, which starts them."""
    if machine.cores:
        os.sched_setaffinity(0, machine.cores)
    os.environ |= {"OMP_NUM_THREADS": str(machine.threads), "OMP_WAIT_POLICY": "PASSIVE", "PYTHONWARNINGS": "ignore"}
    if machine.processes > 1 and "RANK" not in os.environ:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        os.execv(sys.executable, [*command, f"--nproc-per-node={machine.processes}", *sys.argv])


def is_first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"  # torch must not be imported before the threads are set


@dataclass
class Watch:
    """Keeps a contender's record on disk, even if it is killed: its settings, and each session of its run."""

    folder: Path
    facts: dict[str, Any]
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        if is_first_process():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".lock").touch()  # tells our trainer that the folder is meant for a run
            record = read_record(self.folder)
            self._sittings = record.get("sittings", []) if record else []
            if record and {key: record[key] for key in self.facts} != json.loads(json.dumps(self.facts)):
                raise SystemExit(f"{self.folder} was begun as {record}; choose another --out, or delete it")
            self._thread = threading.Thread(target=self._beat, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if is_first_process():
            self._thread.join()

    def _beat(self) -> None:
        from litebert.core.runtime import describe_processor  # imports torch: only after threads are set

        processor = describe_processor()
        started_at, loads, is_over = time.time(), [], False
        while not is_over:
            is_over = self._over.wait(_BEAT_SECONDS if loads else 0)
            loads.append(os.getloadavg()[0])
            sitting = {
                "started_at": started_at,
                "processor": processor,
                "wall_minutes": (time.time() - started_at) / 60,
                "cpu_minutes_of_one_process": time.process_time() / 60,
                "mean_load": sum(loads) / len(loads),
                "most_load": max(loads),
            }
            write_json(self.folder / RECORD, {**self.facts, "sittings": [*self._sittings, sitting]})


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a contender; None if it has not started."""
    file = folder / RECORD
    return json.loads(file.read_text("utf-8")) if file.exists() else None
