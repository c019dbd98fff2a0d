"""`litebert plot` as a person types it."""

import subprocess
import sys
from pathlib import Path


def run_litebert(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "litebert", *words], capture_output=True, text=True, check=False)


def test_plot_says_what_it_drew(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n')
    done = run_litebert("plot", str(tmp_path), "-o", str(tmp_path / "curves.png"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/curves.png: loss of 1 run\n"


def test_plot_of_nothing_says_that_there_is_nothing() -> None:
    done = run_litebert("plot", "nope")
    assert done.returncode == 2
    assert done.stderr == "error[missing-file]: nope does not exist: pass a run folder, or its metrics.jsonl\n"


def test_plot_of_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    done = run_litebert("plot", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("error[missing-file]: ")
    assert len(done.stderr.splitlines()) == 1
