"""Processes of one run: dead ones are restarted; an error that a restart cannot fix ends all of them with one line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from litebert.core.errors import BusyError, ConfigError, describe_refusal
from litebert.training.launcher import launch, report_to_launcher

pytestmark = [pytest.mark.slow, pytest.mark.ranks]

NOTE = """
import os, signal, sys, time
from pathlib import Path
folder, rank = Path(sys.argv[1]), os.environ["RANK"]
(folder / f"{rank}-{len(list(folder.glob(f'{rank}-*')))}").write_text(os.environ["MASTER_PORT"])
num_starts = len(list(folder.glob(f"{rank}-*")))
"""
KILLED_TWICE = f"""{NOTE}
while len(list(folder.glob("0-*"))) < num_starts: time.sleep(0.01)  # the other has noted its start, too
if num_starts < 3 and rank == "1": os.kill(os.getpid(), signal.SIGKILL)
if num_starts < 3: time.sleep(60)
"""
FAILED = f"""{NOTE}
if rank == "1": raise ValueError("a fault of ours")
time.sleep(60)
"""
BUSY = f"""{NOTE}
from litebert.core.errors import BusyError
from litebert.training.launcher import report_to_launcher
if rank == "0": time.sleep(60)
report_to_launcher(BusyError("busy", "another process is training in\\nhere"))
sys.exit("nobody may hear this")
"""
LAUNCH = """
import signal, sys
from litebert.training.launcher import launch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what nohup starts, this
sys.exit(launch({words!r}, 2, 3))
"""


def command(code: str, folder: Path) -> list[str]:
    return [sys.executable, "-c", code, str(folder)]


def test_workers_meet_at_one_place_and_all_start_again_when_one_is_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert launch(command(KILLED_TWICE, tmp_path), 2, num_restarts=2) == 0
    starts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(starts) == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    assert all(starts[f"0-{number}"] == starts[f"1-{number}"] for number in range(3))
    said = capfd.readouterr().err.splitlines()
    assert said == [f"process 1 was killed by SIGKILL: restarting all processes ({n} restarts left)" for n in (2, 1)]


def test_a_worker_that_dies_more_often_than_it_is_replaced_ends_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert launch(command(KILLED_TWICE, tmp_path), 2, num_restarts=0) == 128 + signal.SIGKILL
    assert capfd.readouterr().err == "process 1 was killed by SIGKILL: run the same command again to resume\n"
    assert launch(command(FAILED, tmp_path), 2, num_restarts=0) == 1
    assert "a fault of ours" in capfd.readouterr().err


def test_what_does_not_heal_ends_all_at_once_with_one_line_and_its_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    started_at = time.monotonic()
    assert launch(command(BUSY, tmp_path), 3, num_restarts=5) == os.EX_TEMPFAIL
    assert time.monotonic() - started_at < 30
    assert capfd.readouterr().err == "error[busy]: another process is training in\\nhere\n"
    assert {path.name for path in tmp_path.iterdir()} <= {"0-0", "1-0", "2-0"}  # once each


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_terminated_launcher_leaves_no_worker_behind(sent: signal.Signals, tmp_path: Path) -> None:
    words = command(NOTE + "time.sleep(60)", tmp_path)
    process = subprocess.Popen([sys.executable, "-c", LAUNCH.format(words=words)], stderr=subprocess.PIPE)
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children()
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode in (128 + sent, -sent)  # Python ends by SIGINT itself
    assert len(workers) == 2
    assert not any(worker.is_running() for worker in workers)


def test_a_launcher_that_is_killed_takes_its_workers_with_it(tmp_path: Path) -> None:
    follow = "from litebert.training.launcher import exit_with_launcher\nexit_with_launcher()\n"
    words = command(follow + NOTE + "time.sleep(60)", tmp_path)
    process = subprocess.Popen([sys.executable, "-c", LAUNCH.format(words=words)])
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(workers, timeout=10)
    assert (len(gone), alive) == (2, [])


def test_workers_may_finish_their_step_after_a_stop_signal(tmp_path: Path) -> None:
    save = "signal.signal(signal.SIGTERM, lambda *_: ((folder / f'saved-{rank}').touch(), sys.exit(143)))\n"
    words = command(NOTE.replace("(folder / f", save + "(folder / f", 1) + "time.sleep(60)", tmp_path)
    process = subprocess.Popen([sys.executable, "-c", LAUNCH.format(words=words)])
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert {"saved-0", "saved-1"} <= {path.name for path in tmp_path.iterdir()}


def test_without_a_launcher_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    report_to_launcher(ConfigError("x", "y"))
    hearing, telling = os.pipe()
    os.close(hearing)  # the launcher was killed
    monkeypatch.setenv("LITEBERT_ERROR_PIPE", str(telling))
    report_to_launcher(ConfigError("x", "y"))
    os.close(telling)


def test_what_is_refused_has_a_line_and_a_code() -> None:
    assert describe_refusal(BusyError("busy", "wait")) == ("error[busy]: wait", 75)
    assert describe_refusal(FileNotFoundError(2, "No such file", "x.txt")) == ("error: x.txt: No such file", 2)
    assert describe_refusal(OSError(28, "No space left")) == (
        "error: No space left; free space on the disk of the output and run the same command again",
        2,
    )
    assert describe_refusal(OSError(1, "odd")) is None
    assert describe_refusal(ValueError("x")) is None
