"""What a contender may use up, and what the machine did meanwhile.

Budgets are processor time, summed over processes: 120 CPU minutes are an hour on two free cores, two hours on one, and
still the same work where other programs want the cores, too. Building batches counts; measuring and saving do not.
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
    """The processes of a contender, and the cores they are held to (none named: any)."""

    processes: int
    threads: int  # of each process
    cores: tuple[int, ...] = ()


def claim(machine: Machine) -> None:
    """Hold this process to its cores and threads; if there should be several, become torchrun, which starts them."""
    if machine.cores:
        os.sched_setaffinity(0, machine.cores)
    os.environ |= {"OMP_NUM_THREADS": str(machine.threads), "OMP_WAIT_POLICY": "PASSIVE", "PYTHONWARNINGS": "ignore"}
    if machine.processes > 1 and "RANK" not in os.environ:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        os.execv(sys.executable, [*command, f"--nproc-per-node={machine.processes}", *sys.argv])


def is_first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"  # by hand: torch must not be imported before threads are settled


@dataclass
class Watch:
    """Keeps a contender's record on disk, killed or not: what it is, and each of its sittings."""

    folder: Path
    facts: dict[str, Any]
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        if is_first_process():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".lock").touch()  # says to our trainer that the folder is meant for a run
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
        from litebert.core.runtime import describe_processor  # it imports torch: not before threads are settled

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
    """What a contender left about itself; None before it began."""
    file = folder / RECORD
    return json.loads(file.read_text("utf-8")) if file.exists() else None
