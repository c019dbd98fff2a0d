"""Kills and stops at random instants, kills at file operations, full and broken disks: the result is as if undisturbed.

A trial is a chain: one folder, in which the job is disturbed a few times in a row and then runs to its end. What it has
written by then must be that of an undisturbed run, byte by byte, and no temporary file may be left.
"""

import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from tests.torture import jobs
from tests.torture.faults import KINDS, FaultPlan, watch
from tests.torture.jobs import Ending, Job
from tests.torture.ledger import Ledger

CHAIN = 8  # disturbances before the job may run to its end
GONE_WITHIN_SECONDS = 20.0
STOPPED = (128 + signal.SIGTERM, -signal.SIGTERM)  # by a SIGTERM, after saving or at once


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: what it wrote, how long it took, how many file operations it made."""

    digest: dict[str, str]
    seconds: float
    num_operations: int


def measure(job: Job, materials: Path, folder: Path) -> Reference:
    """Run a job undisturbed, twice: once by the clock and once counting its file operations."""
    started_at = time.monotonic()
    for name in ("undisturbed", "counting"):
        _forget(folder / name)
        (folder / name).mkdir()
    ending = jobs.run(job, materials, folder / "undisturbed" / "out")
    seconds = time.monotonic() - started_at
    assert ending.code == 0, ending.output
    counted = folder / "counted"
    counted.write_bytes(b"")
    if job.is_forked:
        handle = os.open(counted, os.O_WRONLY)
        count_one = lambda operation, _: operation != "wrote" and os.write(handle, b".")  # noqa: E731
        ending = jobs.run(job, materials, folder / "counting" / "out", lambda: watch(folder, count_one))
        os.close(handle)
        assert ending.code == 0, ending.output
    return Reference(jobs.digest(job, folder / "undisturbed" / "out"), seconds, counted.stat().st_size)


def torture(
    chosen: Sequence[Job], materials: Path, folder: Path, ledger: Ledger, num_faults: int, deadline: float
) -> None:
    """Disturb the jobs so many times in all, each in turn, or until the deadline."""
    total = sum(job.share for job in chosen)
    num_chains = {job: round(num_faults * job.share / total / CHAIN + 0.5) for job in chosen}
    references: dict[Job, Reference] = {}
    for turn in range(max(num_chains.values())):
        for job in (one for one in chosen if turn < num_chains[one]):
            trial = f"{job.name} chain {turn}"
            if ledger.is_tried(trial):
                continue
            if time.monotonic() > deadline:
                return
            _forget(folder / job.name / "chain")
            (folder / job.name / "chain").mkdir(parents=True)
            if job not in references:
                references[job] = measure(job, materials, folder / job.name)
            out = folder / job.name / "chain" / "out"
            try:
                count, problem = _try_chain(job, materials, out, references[job], ledger.random(trial))
            except AssertionError as error:  # it hangs, or leaves workers behind
                count, problem = 1, str(error)
            ledger.write(trial, count=count, problem=problem)
            if problem:
                shutil.copytree(out.parent, folder / f"failed {trial}", dirs_exist_ok=True)


def _try_chain(job: Job, materials: Path, out: Path, reference: Reference, rng: Random) -> tuple[int, str]:
    """Disturb, then finish and compare; gives the number of faults that struck and what went wrong."""
    num_struck = 0
    for _ in range(CHAIN):
        ending, fault = _disturb(job, materials, out, reference, rng)
        num_struck += ending.code != 0
        if ending.code not in (0, -signal.SIGKILL, *STOPPED) and not ending.is_refusal:
            return num_struck, f"{fault} ended with {ending.code}: {ending.output[-500:]}"
        found = jobs.digest(job, out)
        if ending.code == 0:  # the disk may have refused to remove what an earlier fault left
            found = {name: value for name, value in found.items() if not name.endswith(".tmp")}
        if ending.code == 0 and found != reference.digest:
            return num_struck, f"{fault} went unnoticed, and the result differs"
        if found == reference.digest:  # the fault came too late, or never: begin anew
            _forget(out)
    ending = jobs.run(job, materials, out)
    if ending.code:
        return num_struck, f"after the faults it ends with {ending.code}: {ending.output[-500:]}"
    return num_struck, compare(job, out, reference.digest)


def _disturb(job: Job, materials: Path, out: Path, reference: Reference, rng: Random) -> tuple[Ending, str]:
    # the log is outside of what is watched: a disk that fails there would take the error message with it
    log, words = out.parent.with_suffix(".log"), job.words(materials, out)
    if job.is_forked and rng.random() < 0.75:
        kind, number = rng.choice(KINDS), rng.randint(1, reference.num_operations)
        prepare = lambda: watch(out.parent, FaultPlan(number, kind))  # noqa: E731
        return jobs.wait(jobs.start(words, log, prepare), log), f"{kind} at operation {number}"
    process = jobs.start(words, log) if job.is_forked else jobs.start_interpreter(words, log)
    instant = rng.uniform(0, reference.seconds)
    with suppress(psutil.Error):
        _wait_while_running(psutil.Process(process), instant)
    if rng.random() < 0.2:
        with suppress(psutil.Error):
            psutil.Process(process).terminate()
        return jobs.wait(process, log), f"SIGTERM after {instant:.2f} s"
    victim = _kill_some(process, rng)
    return jobs.wait(process, log), f"SIGKILL of {victim} after {instant:.2f} s"


def _wait_while_running(process: psutil.Process, seconds: float) -> None:
    """Wait for an instant, or until the process has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))


def _kill_some(process: int, rng: Random) -> str:
    """Kill the job: the process that was started, one of those that it started, or all at once."""
    family = []
    with suppress(psutil.Error):
        family = psutil.Process(process).children(recursive=True)
    victim = rng.choice(["the first process", "a worker", "all"]) if family else "the first process"
    with suppress(psutil.Error):
        if victim == "a worker":
            rng.choice(family).kill()
        else:
            psutil.Process(process).kill()
        if victim == "all":
            for member in family:
                with suppress(psutil.Error):
                    member.kill()
    if victim != "a worker":
        alive, deadline = family, time.monotonic() + GONE_WITHIN_SECONDS
        while alive and time.monotonic() < deadline + sum(jobs.measure_starvation(member.pid) for member in alive):
            _, alive = psutil.wait_procs(alive, timeout=0.2)
        assert not alive, f"workers outlive {victim} by {GONE_WITHIN_SECONDS:g} s"
    return victim


def compare(job: Job, out: Path, expected: dict[str, str]) -> str:
    """How a folder differs from what an undisturbed run writes; empty if it does not."""
    found = jobs.digest(job, out)
    leftovers = [path.name for path in (*out.rglob(".*.tmp"), *out.parent.glob(".*.tmp"))]
    differing = [name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)]
    if differing:
        return f"differs in {', '.join(sorted(differing)[:5])}"
    return f"leaves {', '.join(leftovers[:5])}" if leftovers else ""


def _forget(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
