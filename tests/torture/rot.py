"""Mutants of every format: read alike, refused by an exception of ours, or, without a hash, legitimately different.

A forked process reads mutants one after another and reports each. If it dies or falls silent, the mutant it was at has
killed it or hung it, and another process continues with the next.
"""

import os
import resource
import select
import shutil
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from litebert.core.errors import LitebertError
from tests.torture.ledger import Ledger
from tests.torture.mutants import mutate_for
from tests.torture.readers import Reader, list_readers

BATCH = 100  # mutants per line of the ledger
SILENT_AFTER_SECONDS = 60.0
EXTRA_MEMORY = 2 << 30  # what reading a file of a few kilobytes may take: a reader that asks for more fails


class Outcome(NamedTuple):
    """What became of one mutant."""

    number: int
    kind: str  # alike, refused, otherwise; unnamed: refused without naming the file; else a foreign exception
    detail: str = ""


def torture(formats: Path, folder: Path, ledger: Ledger, num_mutants: int, deadline: float, names: str = "") -> None:
    """Read so many mutants in all, format by format in turn, or until the deadline."""
    readers = [reader for reader in list_readers() if not names or any(n in reader.name for n in names.split(","))]
    total = sum(reader.share for reader in readers)
    left = {reader: round(num_mutants * reader.share / total / BATCH + 0.5) for reader in readers}
    for turn in range(max(left.values())):
        for reader in (one for one in readers if turn < left[one]):
            trial = f"{reader.name} {turn}"
            if ledger.is_tried(trial):
                continue
            if time.monotonic() > deadline:
                return
            _try_batch(reader, formats, folder / "trial", ledger, trial, turn)


def _try_batch(reader: Reader, formats: Path, folder: Path, ledger: Ledger, trial: str, turn: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(formats / reader.folder, folder)
    counts: Counter[str] = Counter()
    problems = []
    for outcome in iter_outcomes(reader, folder, ledger.seed, range(turn * BATCH, (turn + 1) * BATCH)):
        counts[outcome.kind] += 1
        is_silent = outcome.kind == "otherwise" and reader.is_hashed
        if is_silent or outcome.kind not in ("alike", "refused", "otherwise"):
            problems.append(f"mutant {outcome.number}: {outcome.kind} {outcome.detail}")
    ledger.write(trial, count=sum(counts.values()), problem="; ".join(problems), failures=len(problems), **counts)


def iter_outcomes(reader: Reader, folder: Path, seed: int, numbers: range) -> Iterator[Outcome]:
    """Read the mutants of these numbers in processes of their own."""
    at = numbers.start
    original = (folder / reader.file).read_bytes()
    while at < numbers.stop:
        hearing, telling = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(hearing)
            try:
                _read_mutants(reader, folder, original, seed, range(at, numbers.stop), telling)
            finally:  # whatever happens, there is one campaign only
                os._exit(0)
        os.close(telling)
        for line in _iter_lines(hearing):
            number, kind, detail = line.split("\t", 2)
            at = int(number) + 1
            yield Outcome(int(number), kind, detail)
        os.close(hearing)
        is_hung = os.waitpid(process, os.WNOHANG)[0] == 0 and not _ends_soon(process)
        if is_hung:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        if at < numbers.stop:
            yield Outcome(at, "hangs" if is_hung else "kills the process")
            at += 1


def _ends_soon(process: int) -> bool:
    for _ in range(100):
        with suppress(ChildProcessError):
            if os.waitpid(process, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
                continue
        return True
    return False


def _iter_lines(pipe: int) -> Iterator[str]:
    """The lines of a process, until it ends or says nothing for too long."""
    data = b""
    while select.select([pipe], [], [], SILENT_AFTER_SECONDS)[0]:
        read = os.read(pipe, 1 << 16)
        if not read:
            return
        *lines, data = (data + read).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def _read_mutants(reader: Reader, folder: Path, original: bytes, seed: int, numbers: range, telling: int) -> None:
    file = folder / reader.file
    file.write_bytes(original)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    expected = reader.read(folder)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_MEMORY, resource.RLIM_INFINITY))
    for number in numbers:
        file.write_bytes(mutate_for(file, original, seed, number))
        kind, detail = "alike", ""
        try:
            if reader.read(folder) != expected:
                kind = "otherwise"
        except LitebertError as error:
            kind = "refused"
            if "\n" in str(error) or not reader.is_named(str(error), folder):
                kind, detail = "unnamed", str(error)[:200]
        except BaseException as error:
            kind, detail = type(error).__name__, str(error)[:200]
        line = f"{number}\t{kind}\t{detail}".replace("\n", " ")
        os.write(telling, line.encode(errors="replace") + b"\n")
