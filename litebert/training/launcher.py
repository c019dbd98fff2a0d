"""Launches the processes of one run on this machine, and restarts all of them when one dies.

torchrun, which does this for many machines, restarts after any failure, even one that only the user can fix. Here a
worker reports such an error to the launcher, and the run ends with that line and its exit code.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from litebert.core.errors import Refusal, describe_refusal
from litebert.core.processes import list_processors
from litebert.core.signals import Stop, catch_stop_signals, exit_by_signal, exit_on_signals

_ERROR_PIPE = "LITEBERT_ERROR_PIPE"  # file descriptor of the pipe through which workers report errors
LAUNCHER_PIPE = "LITEBERT_LAUNCHER_PIPE"  # file descriptor of a pipe that closes when the launcher ends or is killed
_POLL_SECONDS = 0.1
_SAVED_WITHIN_SECONDS = 120.0  # after a stop signal; to stop sooner, kill the launcher
_ENDED_WITHIN_SECONDS = 30.0
_SHOW_CURSOR = "\x1b[?25h"


class Death(NamedTuple):
    """A worker that ended without reporting why: by a signal (its number, negative) or with a traceback (1)."""

    code: int
    rank: int

    @property
    def exit_code(self) -> int:
        """The exit code as a shell reports it."""
        return self.code if self.code > 0 else 128 - self.code

    def __str__(self) -> str:
        how = f"was killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"ended with {self.code}"
        return f"process {self.rank} {how}"


def launch(command: Sequence[str], num_processes: int, num_restarts: int) -> int:
    """Run a command as several processes, restarting all of them when one dies; returns the exit code of the run."""
    with exit_on_signals(), catch_stop_signals() as stop:
        while True:
            ending = _run_together(command, num_processes, stop)
            if stop.received:
                exit_by_signal(stop.received)
            if ending is None:
                return 0
            if isinstance(ending, Refusal):
                print(ending.line, file=sys.stderr)
                return ending.exit_code
            if not num_restarts:
                print(f"{ending}: run the same command again to resume", file=sys.stderr)
                return ending.exit_code
            print(f"{ending}: restarting all processes ({num_restarts} restarts left)", file=sys.stderr, flush=True)
            num_restarts -= 1


def report_to_launcher(error: BaseException) -> None:
    """Report an error that a restart cannot fix to the launcher, which ends all processes; no-op without a launcher."""
    refusal, pipe = describe_refusal(error), os.environ.get(_ERROR_PIPE)
    if refusal is None or pipe is None:
        return
    with suppress(OSError):  # the launcher is gone
        os.write(int(pipe), f"{refusal.exit_code} {refusal.line}\0".encode())
        time.sleep(_ENDED_WITHIN_SECONDS)  # if this process ended now, the others would fail with long tracebacks


def exit_with_launcher() -> None:
    """Make this process end as soon as its launcher ends; does nothing without our launcher.

    A killed launcher cannot end its workers: they would continue for hours and keep the run folder locked.
    """
    launcher_out = os.environ.get(LAUNCHER_PIPE)
    if launcher_out is None:
        return

    def wait_for_end() -> None:
        with suppress(OSError):
            os.read(int(launcher_out), 1)  # nothing is ever written
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=wait_for_end, daemon=True).start()


def _run_together(command: Sequence[str], num_processes: int, stop: Stop) -> Refusal | Death | None:
    """Run the processes until all finish (None), one reports an error, or one dies; then end the rest.

    After a stop signal, the processes save a checkpoint first.
    """
    errors_out, errors_in = os.pipe()
    launcher_out, launcher_in = os.pipe()
    environment = {
        "OMP_NUM_THREADS": str(max(1, len(list_processors()) // num_processes)),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_find_free_port()),
        "WORLD_SIZE": str(num_processes),
        _ERROR_PIPE: str(errors_in),
        LAUNCHER_PIPE: str(launcher_out),
    }
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(num_processes):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            # a session of its own: Ctrl-C is for the launcher, which ends the workers
            workers.append(
                subprocess.Popen(
                    command, env={**environment, **ranks}, pass_fds=(errors_in, launcher_out), start_new_session=True
                )
            )
        while not stop.received:
            codes = [worker.poll() for worker in workers]
            if select.select([errors_out], [], [], _POLL_SECONDS)[0]:
                return _read_refusal(errors_out)
            deaths = [Death(code, rank) for rank, code in enumerate(codes) if code]
            if deaths:
                return min(deaths)  # report a kill rather than the failures of processes that waited for the killed one
            if not any(code is None for code in codes):
                return None
        _stop(workers)
        return None
    finally:
        _end(workers)
        for pipe in (errors_out, errors_in, launcher_out, launcher_in):
            os.close(pipe)


def _stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask the workers to save and end; return when they have, when one has failed, or after a timeout."""
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
    deadline = time.monotonic() + _SAVED_WITHIN_SECONDS
    while time.monotonic() < deadline:
        codes = [worker.poll() for worker in workers]
        if None not in codes or not {None, 0, 128 + signal.SIGTERM}.issuperset(codes):
            return
        time.sleep(_POLL_SECONDS)


def _end(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill the workers that still run; only the steps since the last checkpoint are lost."""
    for worker in workers:
        if worker.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
    for worker in workers:
        worker.wait()
    if sys.stdout.isatty():
        print(_SHOW_CURSOR, end="", flush=True)  # a killed live view leaves the cursor hidden


def _read_refusal(pipe: int) -> Refusal:
    first = os.read(pipe, 1 << 16).split(b"\0")[0].decode(errors="replace")
    code, _, line = first.partition(" ")
    return Refusal(line, int(code))


def _find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
