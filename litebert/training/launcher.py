"""Several processes of one run on this machine: started together, and all of them anew when one dies.

torchrun, which does this over many machines, starts again whatever ended. What a person has to mend does not heal by
that: here a worker says why it cannot go on, and the run ends with its one line and its exit code.
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
from litebert.core.processors import list_processors
from litebert.core.stopping import Stop, end_by, leaving_on_signals, noting_stops

_TELLING = "LITEBERT_TELLING"  # in a worker's environment: the number of the pipe to its launcher
_LIFELINE = "LITEBERT_LIFELINE"  # the number of a pipe that ends when the launcher does, however it ends
_LOOK_SECONDS = 0.1
_SAVED_WITHIN_SECONDS = 120.0  # after being told to stop; whoever is in more of a hurry kills the launcher
_ENDED_WITHIN_SECONDS = 30.0
_SHOW_CURSOR = "\x1b[?25h"


class Death(NamedTuple):
    """A worker that ended without having said why: by a signal (its number, negative) or with a traceback (1)."""

    code: int
    rank: int

    @property
    def exit_code(self) -> int:
        """As a shell would tell it."""
        return self.code if self.code > 0 else 128 - self.code

    def __str__(self) -> str:
        how = f"was killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"ended with {self.code}"
        return f"process {self.rank} {how}"


def launch(command: Sequence[str], num_processes: int, num_restarts: int) -> int:
    """Run a command as several processes that meet, all anew when one of them dies; gives the exit code of the run."""
    with leaving_on_signals(), noting_stops() as stop:
        while True:
            ending = _run_together(command, num_processes, stop)
            if stop.asked_by:
                end_by(stop.asked_by)
            if ending is None:
                return 0
            if isinstance(ending, Refusal):
                print(ending.line, file=sys.stderr)
                return ending.exit_code
            if not num_restarts:
                print(f"{ending}: start the same command again to go on", file=sys.stderr)
                return ending.exit_code
            print(f"{ending}: all start again ({num_restarts} restarts left)", file=sys.stderr, flush=True)
            num_restarts -= 1


def tell_launcher(error: BaseException) -> None:
    """Tell the launcher what does not heal; it ends all processes. Does nothing where none of ours has started this."""
    refusal, pipe = describe_refusal(error), os.environ.get(_TELLING)
    if refusal is None or pipe is None:
        return
    with suppress(OSError):  # the launcher is gone
        os.write(int(pipe), f"{refusal.exit_code} {refusal.line}\0".encode())
        time.sleep(_ENDED_WITHIN_SECONDS)  # if this process left now, the others would fail, and say so at length


def end_with_launcher() -> None:
    """Let this process end at once when its launcher has; does nothing where none of ours has started this.

    A launcher that is killed cannot end its workers: they would go on for hours, and hold the run's folder.
    """
    lifeline = os.environ.get(_LIFELINE)
    if lifeline is None:
        return

    def wait_for_end() -> None:
        with suppress(OSError):
            os.read(int(lifeline), 1)  # nothing is ever written
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=wait_for_end, daemon=True).start()


def _run_together(command: Sequence[str], num_processes: int, stop: Stop) -> Refusal | Death | None:
    """Start the processes and end them all: when all are done (None), when one cannot go on, or when one has died.

    Told to stop, it lets them save first.
    """
    hearing, telling = os.pipe()
    following, lifeline = os.pipe()
    meeting = {
        "OMP_NUM_THREADS": str(max(1, len(list_processors()) // num_processes)),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_find_free_port()),
        "WORLD_SIZE": str(num_processes),
        _TELLING: str(telling),
        _LIFELINE: str(following),
    }
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(num_processes):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            # a session of its own: Ctrl-C is for the launcher, which ends the workers
            workers.append(
                subprocess.Popen(
                    command, env={**meeting, **ranks}, pass_fds=(telling, following), start_new_session=True
                )
            )
        while not stop.asked_by:
            codes = [worker.poll() for worker in workers]
            if select.select([hearing], [], [], _LOOK_SECONDS)[0]:
                return _read_refusal(hearing)
            deaths = [Death(code, rank) for rank, code in enumerate(codes) if code]
            if deaths:
                return min(deaths)  # a kill before the failures of those who waited for the killed one
            if not any(code is None for code in codes):
                return None
        _stop(workers)
        return None
    finally:
        _end(workers)
        for pipe in (hearing, telling, following, lifeline):
            os.close(pipe)


def _stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Tell the workers to save and end; return when they have, when one has failed, or when it takes too long."""
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
    deadline = time.monotonic() + _SAVED_WITHIN_SECONDS
    while time.monotonic() < deadline:
        codes = [worker.poll() for worker in workers]
        if None not in codes or not {None, 0, 128 + signal.SIGTERM}.issuperset(codes):
            return
        time.sleep(_LOOK_SECONDS)


def _end(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill those that still run: nothing is lost by it but the steps since the last checkpoint."""
    for worker in workers:
        if worker.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
    for worker in workers:
        worker.wait()
    if sys.stdout.isatty():
        print(_SHOW_CURSOR, end="", flush=True)  # a live view that was killed has left it hidden


def _read_refusal(pipe: int) -> Refusal:
    first = os.read(pipe, 1 << 16).split(b"\0")[0].decode(errors="replace")
    code, _, line = first.partition(" ")
    return Refusal(line, int(code))


def _find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
