"""Runs many arms, sequentially or in parallel, each in its own process, so that they do not affect each other.

Several commands, on one or many machines, may run arms of the same folder: each takes arms that no other is running. A
finished arm is a file, so it is not lost if all processes are killed.
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
from litebert.study.estimate import Cost, threads_of_one
from litebert.study.place import RUNS, Place
from litebert.study.view import GridStatus, GridView
from litebert.tasks.report import REPORT_FILE
from litebert.training.launcher import LAUNCHER_PIPE

_POLL_SECONDS = 0.5
_SURE_SECONDS = 60.0  # after this, the measured speed replaces the estimate

Command = Callable[[ArmRun], Sequence[str]]
IsDone = Callable[[ArmRun], bool]


@dataclass
class Grid:
    """The state of a study's arms while they run."""

    place: Place
    costs: Mapping[str, Cost]
    command: Command
    is_done: IsDone
    waiting: list[ArmRun]
    running: dict[str, tuple[ArmRun, subprocess.Popen[bytes]]] = field(default_factory=dict)
    elsewhere: dict[str, ArmRun] = field(default_factory=dict)  # run by other processes
    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stranded: dict[str, str] = field(default_factory=dict)  # arms that cannot start -> the failed arm they start from
    lifeline: int = -1  # a pipe that closes when this process ends, even if killed


def run_grid(grid: Grid, *, jobs: int, view: GridView) -> list[str]:
    """Run the unfinished arms, `jobs` at a time; returns the arms that other processes are still running."""
    clock = _Clock(grid, list(grid.waiting), jobs)
    with _lifeline(grid), _stopping(grid), view:
        _start_some(grid, jobs)
        while grid.running or grid.waiting:
            time.sleep(_POLL_SECONDS)
            _collect(grid, view)
            _look_elsewhere(grid)
            _start_some(grid, jobs)
            view.show(clock.status())
    _check_all_ended(grid)
    return list(grid.elsewhere)


def _check_all_ended(grid: Grid) -> None:
    """Raise if arms failed or could not start."""
    problems = []
    if grid.failed:
        logs = ", ".join(str(log_file(grid.place, name)) for name in grid.failed)
        problems.append(f"{len(grid.failed)} arms failed; see {logs}")
    if grid.stranded:
        names = ", ".join(f"{name} (from {start})" for name, start in grid.stranded.items())
        problems.append(
            f"{len(grid.stranded)} arms were not started, because the arm they start from is not finished: {names}"
        )
    if problems:
        raise TrainingError("arms-failed", "; ".join(problems))


def log_file(place: Place, name: str) -> Path:
    """The log file of an arm that runs in parallel with others."""
    return place.folder / RUNS / f"{name}.log"


def _start_some(grid: Grid, jobs: int) -> None:
    """Start as many arms as may run."""
    for run in list(grid.waiting):
        if len(grid.running) >= jobs:
            return
        if grid.is_done(run):  # earlier, or meanwhile by another process
            grid.waiting.remove(run)
            grid.finished.append(run.name)
            continue
        if run.starts_from and not (grid.place.folder / f"{run.starts_from}.json").is_file():
            if not _is_coming(run.starts_from, grid):
                grid.waiting.remove(run)
                grid.stranded[run.name] = run.starts_from
            continue  # starts later, when the arm that it starts from is finished
        grid.waiting.remove(run)
        if _is_busy(grid.place.lock_folder(run.name)):
            grid.elsewhere[run.name] = run
        else:
            grid.running[run.name] = run, _start(run, grid, jobs)


def _is_coming(name: str, grid: Grid) -> bool:
    """Whether an unfinished run will be finished by this process or another."""
    mine = {run.name for run in grid.waiting} | grid.running.keys() | grid.elsewhere.keys()
    return name in mine or (name not in grid.failed and _is_busy(grid.place.lock_folder(name)))


def _look_elsewhere(grid: Grid) -> None:
    """Check arms run by other processes: count those that are finished, and take over those left unfinished."""
    for name, run in list(grid.elsewhere.items()):
        if grid.is_done(run):
            grid.finished.append(name)
        elif not _is_busy(grid.place.lock_folder(name)):
            grid.waiting.append(run)
        else:
            continue
        del grid.elsewhere[name]


def _is_busy(folder: Path) -> bool:
    try:
        with exclusive_lock(folder, purpose="running this arm"):
            return False
    except BusyError:
        return True


def _start(run: ArmRun, grid: Grid, jobs: int) -> subprocess.Popen[bytes]:
    log = log_file(grid.place, run.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": str(threads_of_one(jobs))} if jobs > 1 else {}
    environment = {**threads, **os.environ, LAUNCHER_PIPE: str(grid.lifeline)}
    with log.open("ab") as file:
        words = [sys.executable, "-m", *grid.command(run)]
        return subprocess.Popen(
            words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment, pass_fds=(grid.lifeline,)
        )


def _collect(grid: Grid, view: GridView) -> None:
    """Handle the arms that have ended."""
    for name, (run, process) in list(grid.running.items()):
        if process.poll() is None:
            continue
        del grid.running[name]
        if process.returncode == 0 and grid.is_done(run):
            grid.finished.append(name)
            view.say(f"{name}: finished")
        elif process.returncode == BusyError.exit_code:
            grid.elsewhere[name] = run  # another process started it first
            view.say(f"{name}: left to another process")
        else:
            grid.failed.append(name)
            view.say(f"{name}: stopped ({last_line(log_file(grid.place, name))})")


def last_line(log: Path) -> str:
    """The last line that a process printed."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return lines[-1] if lines else "no output"


@contextmanager
def _lifeline(grid: Grid) -> Iterator[None]:
    """End the arms with this process even if it is killed; otherwise they would train on for hours as orphans."""
    grid.lifeline, mine = os.pipe()
    try:
        yield
    finally:
        os.close(mine)
        os.close(grid.lifeline)


@contextmanager
def _stopping(grid: Grid) -> Iterator[None]:
    """On a signal, let arms save before they end with this process."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would leave arms running
        for _, process in grid.running.values():
            process.terminate()
        for _, process in grid.running.values():
            process.wait()
        signal.signal(signal.SIGTERM, before)


class _Clock:
    """The progress of the whole grid, and the estimated time left."""

    def __init__(self, grid: Grid, runs: Sequence[ArmRun], jobs: int, clock: Callable[[], float] = time.monotonic):
        self.grid, self.runs, self.jobs, self.clock = grid, runs, jobs, clock
        self.started_at = clock()
        # excludes work of earlier runs from the speed
        self.before = {run.name: 1.0 if grid.is_done(run) else self._share(run) for run in runs}

    def _share(self, run: ArmRun) -> float:
        return share_done(run, self.grid.place, self.grid.costs[run.name])

    def status(self) -> GridStatus:
        costs = {run.name: self.grid.costs[run.name].hours for run in self.runs}
        running = {name: self._share(run) for name, (run, _) in self.grid.running.items()}
        shares = self.before | running | dict.fromkeys(self.grid.finished, 1.0)
        done = sum(costs[name] * share for name, share in shares.items())
        gained = sum(costs[name] * (shares[name] - self.before[name]) for name in shares)
        mine = [*running, *(run.name for run in self.grid.waiting)]
        left = sum(costs[name] * (1 - shares[name]) for name in mine)  # hours of work
        elapsed = self.clock() - self.started_at
        seconds = left * elapsed / gained if elapsed > _SURE_SECONDS and gained > 0 else left * 3600 / self.jobs
        total = sum(costs.values())
        return GridStatus(len(self.grid.finished), len(self.runs), running, done / total if total else 0.0, seconds)


def share_done(run: ArmRun, place: Place, cost: Cost) -> float:
    """The share of an unfinished arm that is done, by its logs: 0 to 1."""
    tasks = run.at_scale.tasks
    folders = [place.task_folder(run, task, seed) for task in tasks for seed in range(1, task.seeds + 1)]
    tuned = sum((folder / REPORT_FILE).is_file() for folder in folders) / len(folders) if folders else 0.0
    trained = 1.0 if tuned else share_trained(run, place)
    if not cost.hours or cost.train_hours is None:
        return trained
    return (trained * cost.train_hours + tuned * cost.task_hours) / cost.hours


def share_trained(run: ArmRun, place: Place) -> float:
    """The share of an arm's pre-training that is done: 0 to 1."""
    folder, options = place.run_folder(run.name), run.recipe.train
    try:
        if options.hours:
            seconds: float = sum(record["seconds"] for record in read_log(folder / TIMING_FILE)) * options.log_every
            return min(1.0, seconds / (3600 * options.hours))
        records = read_log(folder / METRICS_FILE)
    except DataError:  # nothing has been written yet
        return 0.0
    if not records:
        return 0.0
    last = records[-1]
    if options.tokens:
        return min(1.0, float(last["tokens"] / options.tokens))
    return min(1.0, float((last["step"] - run.starts_at) / (options.steps - run.starts_at)))
