"""Power loss, which no SIGKILL shows: what was not synced may be gone, and directories may remember older names.

A job runs once while its file operations are recorded. Then, for a moment between two of them, a folder is made as the
disk might have it after a power loss, and the job continues from there: it ends with the undisturbed result, or it is
refused in a line. A file's content is safe once the file was synced, its name once its directory was.
"""

import hashlib
import os
import pickle
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.torture import jobs
from tests.torture.faults import Observer, watch
from tests.torture.jobs import Job
from tests.torture.kills import compare
from tests.torture.ledger import Ledger

JOBS = ("tokenizer", "build", "pretrain", "finetune", "export", "convert", "search")
WAYS = ("dropped", "names only", "mixed", "mixed", "mixed")
Identity = tuple[int, int]  # an inode, and which of the files that had this number


@dataclass
class Moment:
    """The folder before one file operation: what programs see, and what is certainly on the disk."""

    operation: str
    seen: dict[Identity, dict[str, Identity]]  # of each directory the names
    contents: dict[Identity, str]  # of each file the hash of its bytes
    safe: dict[Identity, dict[str, Identity]]
    safe_contents: dict[Identity, str]


@dataclass
class Recording:
    """All moments of a job, and the bytes behind the hashes."""

    root: Identity
    moments: list[Moment] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)


def torture(chosen: list[Job], materials: Path, folder: Path, ledger: Ledger, num_losses: int, deadline: float) -> None:
    """Lose power so many times in all, each job in turn, or until the deadline."""
    chosen = [job for job in chosen if job.name in JOBS]
    recordings: dict[str, tuple[Recording, dict[str, str]]] = {}
    for number in range(-(-num_losses // len(chosen))):
        for job in chosen:
            trial = f"{job.name} loss {number}"
            if ledger.is_tried(trial):
                continue
            if time.monotonic() > deadline:
                return
            place = folder / job.name
            if job.name not in recordings:
                shutil.rmtree(place, ignore_errors=True)
                (place / "recorded").mkdir(parents=True)
                recordings[job.name] = record(job, materials, place), jobs.digest(job, place / "recorded" / "out")
            recording, expected = recordings[job.name]
            rng = ledger.random(trial)
            moment, way = rng.choice(recording.moments), rng.choice(WAYS)
            shutil.rmtree(place / "lost", ignore_errors=True)
            build_loss(recording, moment, way, rng, place / "lost")
            ending = jobs.run(job, materials, place / "lost" / "out")
            problem = "" if ending.is_refusal else compare(job, place / "lost" / "out", expected)
            if ending.code != 0 and not ending.is_refusal:
                problem = f"ends with {ending.code}: {ending.output[-300:]}"
            problem = problem and f"{way} before {moment.operation}: {problem}"
            ledger.write(trial, problem=problem, is_refused=ending.is_refusal)
            if problem:
                shutil.copytree(place / "lost", folder / f"failed {trial}", dirs_exist_ok=True)


def record(job: Job, materials: Path, place: Path) -> Recording:
    """Run a job to its end, with a journal of its file operations."""
    journal, folder = place / "journal", place / "recorded"
    journal.unlink(missing_ok=True)
    observe = write_journal(journal, folder)
    ending = jobs.run(job, materials, folder / "out", lambda: watch(folder, observe))
    assert ending.code == 0, ending.output
    write_journal(journal, folder)("the end", ())
    return replay(journal, folder)


def write_journal(journal: Path, folder: Path) -> Observer:
    """An observer that adds to a journal what a folder holds before each operation."""
    known: set[str] = set()

    def observe(operation: str, paths: tuple[str, ...]) -> None:
        if operation != "wrote":
            entries, new = _look(folder, known)
            record = pickle.dumps((operation, paths, entries, new))
            handle = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, record)
            os.close(handle)

    return observe


def _look(folder: Path, known: set[str]) -> tuple[dict[str, tuple[int, str]], dict[str, bytes]]:
    """Every path with its inode and the hash of its content (empty: a directory), and the bytes not known before."""
    entries, new = {}, {}
    for path in (folder, *sorted(folder.rglob("*"))):
        digest = ""
        if path.is_file():
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            if digest not in known:
                new[digest] = content
                known.add(digest)
        entries[str(path)] = path.stat().st_ino, digest
    return entries, new


def replay(journal: Path, folder: Path) -> Recording:
    """What was seen and what was safe at each operation."""
    recording = Recording((folder.stat().st_ino, 0))
    generations: dict[int, int] = {}
    present: set[int] = set()
    safe: dict[Identity, dict[str, Identity]] = {}
    safe_contents: dict[Identity, str] = {}
    with journal.open("rb") as records:
        while records.peek(1):
            operation, paths, entries, new = pickle.load(records)
            recording.data |= new
            numbers = {number for number, _ in entries.values()}
            for number in numbers - present:  # numbers are given again to later files
                generations[number] = generations.get(number, -1) + 1
            present = numbers
            identities = {path: (number, generations[number]) for path, (number, _) in entries.items()}
            directories = {path for path, (_, digest) in entries.items() if not digest}
            seen: dict[Identity, dict[str, Identity]] = {identities[path]: {} for path in directories}
            for path, identity in identities.items():
                if path != str(folder):
                    parent, _, name = path.rpartition("/")
                    seen[identities[parent]][name] = identity
            contents = {identities[path]: digest for path, (_, digest) in entries.items() if digest}
            moment = Moment(f"{operation} {' '.join(map(os.path.basename, paths))}", seen, contents, {}, {})
            moment.safe, moment.safe_contents = dict(safe), dict(safe_contents)
            recording.moments.append(moment)
            if operation == "fsync" and paths[0] in identities:  # done by the next operation
                identity = identities[paths[0]]
                if paths[0] in directories:
                    safe[identity] = dict(seen[identity])
                else:
                    safe_contents[identity] = contents[identity]
    return recording


def build_loss(recording: Recording, moment: Moment, way: str, rng: Random, folder: Path) -> None:
    """Write a folder as the disk might have it."""

    def write(identity: Identity, path: Path) -> None:
        if identity in moment.seen or identity in moment.safe:
            path.mkdir(parents=True)
            names = choose_names(moment.safe.get(identity, {}), moment.seen.get(identity, {}), way, rng)
            for name, inside in names.items():
                write(inside, path / name)
            return
        safe = recording.data[moment.safe_contents[identity]] if identity in moment.safe_contents else b""
        seen = recording.data[moment.contents[identity]] if identity in moment.contents else safe
        path.write_bytes(choose_content(safe, seen, way, rng))

    write(recording.root, folder)


def choose_names(safe: dict[str, Identity], seen: dict[str, Identity], way: str, rng: Random) -> dict[str, Identity]:
    """What a directory may list: a renamed file has its old name or its new one, and a replaced name stays one."""
    if way != "mixed":
        return safe if way == "dropped" else seen
    names: dict[str, Identity] = {}
    for identity in sorted({*safe.values(), *seen.values()}):
        listing = rng.choice((safe, seen))
        names |= {name: one for name, one in listing.items() if one == identity}
    for name in safe.keys() & seen.keys():
        names.setdefault(name, safe[name])
    return names


def choose_content(safe: bytes, seen: bytes, way: str, rng: Random) -> bytes:
    """What a file may hold: what was synced, or any part of what was written since."""
    if way != "mixed" or safe == seen:
        return safe
    return rng.choice((safe, b"", seen, seen[: len(seen) // 2], bytes(len(seen)), safe + bytes(len(seen) - len(safe))))
