"""Many arms, one after another or side by side, each in a process of its own: nothing of one is left in another.

Whoever runs arms of the same folder at the same time, here or on another machine, takes those that nobody has. A
finished arm is a file; so nothing is lost when everything is killed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from litebert.core.errors import BusyError, DataError, TrainingError
from litebert.core.files import exclusive_lock
from litebert.core.runlog import METRICS_FILE, TIMING_FILE, read_log
from litebert.study.arms import ArmRun
from litebert.study.estimate import Cost
from litebert.study.place import RUNS, Place
from litebert.study.view import GridStatus, GridView
from litebert.tasks.report import REPORT_FILE

_POLL_SECONDS = 0.5
_SURE_SECONDS = 60.0  # after which the speed that was seen counts instead of the estimate

Command = Callable[[ArmRun], Sequence[str]]
IsDone = Callable[[ArmRun], bool]


@dataclass
class Grid:
    """The arms of a study on their way."""

    place: Place
    costs: Mapping[str, Cost]
    command: Command
    is_done: IsDone
    waiting: list[ArmRun]
    running: dict[str, tuple[ArmRun, subprocess.Popen[bytes]]] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


def run_grid(grid: Grid, *, jobs: int, view: GridView) -> list[str]:
    """Run what is not finished, `jobs` at a time; gives the arms that other processes are still at work on."""
    clock = _Clock(grid, list(grid.waiting))
    with _stopping(grid), view:
        while grid.running or _start_some(grid, jobs):
            time.sleep(_POLL_SECONDS)
            _collect(grid, view)
            _start_some(grid, jobs)
            view.show(clock.status())
    if grid.failed:
        logs = ", ".join(str(log_file(grid.place, name)) for name in grid.failed)
        raise TrainingError(f"{len(grid.failed)} arms did not finish; their last words are in {logs}")
    return grid.elsewhere


def log_file(place: Place, name: str) -> Path:
    """Where an arm that runs beside others says what it would say to a terminal."""
    return place.folder / RUNS / f"{name}.log"


def _start_some(grid: Grid, jobs: int) -> bool:
    """Start as many arms as may run; whether there was one."""
    started = False
    for run in list(grid.waiting):
        if len(grid.running) >= jobs:
            break
        if run.starts_from and not (grid.place.folder / f"{run.starts_from}.json").is_file():
            continue  # its turn comes when the arm it starts from is finished
        grid.waiting.remove(run)
        if grid.is_done(run):
            grid.finished.append(run.name)  # before, or by somebody else meanwhile
        elif _is_busy(grid.place.lock_folder(run)):
            grid.elsewhere.append(run.name)
        else:
            grid.running[run.name] = run, _start(run, grid, jobs)
            started = True
    return started


def _is_busy(folder: Path) -> bool:
    try:
        with exclusive_lock(folder, purpose="running this arm"):
            return False
    except BusyError:
        return True


def _start(run: ArmRun, grid: Grid, jobs: int) -> subprocess.Popen[bytes]:
    log = log_file(grid.place, run.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // jobs))} if jobs > 1 else {}
    with log.open("ab") as file:
        words = [sys.executable, "-m", *grid.command(run)]
        return subprocess.Popen(
            words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env={**threads, **os.environ}
        )


def _collect(grid: Grid, view: GridView) -> None:
    """Look which arms have ended, and how."""
    for name, (run, process) in list(grid.running.items()):
        if process.poll() is None:
            continue
        del grid.running[name]
        if process.returncode == 0 and grid.is_done(run):
            grid.finished.append(name)
            view.say(f"{name}: finished")
        else:
            grid.failed.append(name)
            view.say(f"{name}: stopped ({last_line(log_file(grid.place, name))})")


def last_line(log: Path) -> str:
    """What a process said last."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return lines[-1] if lines else "without a word"


@contextmanager
def _stopping(grid: Grid) -> Iterator[None]:
    """Leave no process behind, however this one ends short of SIGKILL."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        _stop_all(grid)
        signal.signal(signal.SIGTERM, before)


def _stop_all(grid: Grid) -> None:
    for _, process in grid.running.values():
        process.terminate()
    for _, process in grid.running.values():
        process.wait()


class _Clock:
    """How far the whole grid has come, and how long it will take at the speed seen so far."""

    def __init__(self, grid: Grid, runs: Sequence[ArmRun]) -> None:
        self.grid, self.runs = grid, runs
        self.started_at = time.monotonic()
        self.done_before = self._done_hours()

    def _shares(self) -> dict[str, float]:
        finished = set(self.grid.finished)
        return {
            run.name: 1.0 if run.name in finished else share_done(run, self.grid.place, self.grid.costs[run.name])
            for run in self.runs
            if run.name in finished or run.name in self.grid.running
        }

    def _done_hours(self) -> float:
        return sum(self.grid.costs[name].hours * share for name, share in self._shares().items())

    def status(self) -> GridStatus:
        shares = self._shares()
        total = sum(self.grid.costs[run.name].hours for run in self.runs)
        done = sum(self.grid.costs[name].hours * share for name, share in shares.items())
        elapsed = time.monotonic() - self.started_at
        gained = done - self.done_before
        left = (total - done) * 3600
        if elapsed > _SURE_SECONDS and gained > 0:
            left = (total - done) * elapsed / gained
        running = {name: shares[name] for name in self.grid.running}
        return GridStatus(len(self.grid.finished), len(self.runs), running, done / total if total else 0.0, left)


def share_done(run: ArmRun, place: Place, cost: Cost) -> float:
    """How much of an unfinished arm is done, by its logs: 0 to 1."""
    tasks = run.at_scale.tasks
    folders = [place.task_folder(run, task, seed) for task in tasks for seed in range(1, task.seeds + 1)]
    tuned = sum((folder / REPORT_FILE).is_file() for folder in folders) / len(folders) if folders else 0.0
    trained = 1.0 if tuned else share_trained(run, place)
    if not cost.hours or cost.train_hours is None:
        return trained
    return (trained * cost.train_hours + tuned * cost.task_hours) / cost.hours


def share_trained(run: ArmRun, place: Place) -> float:
    """How much of an arm's pre-training is done: 0 to 1."""
    folder, options = place.run_folder(run.name), run.recipe.train
    try:
        if options.hours:
            seconds: float = sum(record["seconds"] for record in read_log(folder / TIMING_FILE)) * options.log_every
            return min(1.0, seconds / (3600 * options.hours))
        records = read_log(folder / METRICS_FILE)
    except DataError:  # nothing is written yet
        return 0.0
    if not records:
        return 0.0
    last = records[-1]
    return min(1.0, float(last["tokens"] / options.tokens if options.tokens else last["step"] / options.steps))
