"""A study killed at random moments, everything at once, ends with the reports of one that never was."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.study.miniatures import make_task_data

pytestmark = pytest.mark.slow

STUDY = """
title = "Masking rate"
source = "ours"
about = "Whether it can be killed."
columns = ["mlm", "sop", "sst-2"]
[grid]
"masking.rate" = [0.15, 0.4]
[laptop]
recipe = "laptop"
seeds = [1]
measures = ["parameters", "intrinsic", "distances", "curves"]
pairs = 48
length = 32
[laptop.change]
model = { vocab_size = 100, hidden_size = 16, embedding_size = 16, ffn_size = 32, num_layers = 2, max_positions = 32 }
segments = { max_length = 32 }
batch = { sequences = 8 }
schedule = { warmup_steps = 2 }
train = { steps = 40, save_every = 4, evaluate_every = 4, evaluate_batches = 2, log_every = 1 }
[[laptop.tasks]]
task = "sst-2"
data = "glue"
change = ["train.steps=20", "train.evaluations=5", "train.batch_size=8", "train.max_length=24"]
"""


def start(folder: Path, study: Path, corpus: Path, data: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "litebert", "study", "run", str(study), "--corpus", str(corpus)]
    command += ["--data", str(data), "--out", str(folder), "--jobs", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    # a session of its own: the arms' processes are killed with it
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    )


def finish(*words: Path) -> None:
    process = start(*words)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def count_lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs/*/metrics.jsonl"))


def kill_at_a_random_moment(rng: random.Random, folder: Path, *words: Path) -> bool:
    """Let the study make a little progress, then kill it and its arms wherever they are; False: it was done before."""
    process = start(folder, *words)
    lines_before, deadline = count_lines(folder), time.monotonic() + 60
    while process.poll() is None and count_lines(folder) <= lines_before and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(rng.random() * 2)
    is_at_work = process.poll() is None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return is_at_work


def read_reports(folder: Path) -> dict[str, Any]:
    reports = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    return {
        name: {k: v for k, v in report.items() if k not in ("timed", "machine")} for name, report in reports.items()
    }


def moments_of_reports(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}


def test_kills_at_random_moments_change_no_report(tiny_corpus: Path, tmp_path: Path) -> None:
    study = tmp_path / "rates.toml"
    study.write_text(STUDY)
    data = make_task_data(tmp_path / "data")
    finish(tmp_path / "a", study, tiny_corpus, data)
    rng, kills, finished = random.Random(11), 0, dict[str, int]()
    for _ in range(4):
        kills += kill_at_a_random_moment(rng, tmp_path / "b", study, tiny_corpus, data)
        finished = moments_of_reports(tmp_path / "b") | finished
    finish(tmp_path / "b", study, tiny_corpus, data)
    assert kills
    assert finished.items() <= moments_of_reports(tmp_path / "b").items()  # what is finished is not run again
    expected = read_reports(tmp_path / "a")
    assert expected.keys() == {"rate=0.15-seed-1.json", "rate=0.4-seed-1.json"}
    assert read_reports(tmp_path / "b") == expected
    assert not list((tmp_path / "b").glob(".*.tmp"))


def test_two_processes_of_torchrun_make_one_report(tiny_corpus: Path, tmp_path: Path) -> None:
    study = tmp_path / "rates.toml"
    study.write_text(STUDY)
    data = make_task_data(tmp_path / "data")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "litebert"]
    command += ["study", "run", str(study), "--arms", "rate=0.4", "--corpus", str(tiny_corpus), "--data", str(data)]
    command += ["--out", str(tmp_path / "out"), "train.micro_batch=4"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    (report,) = read_reports(tmp_path / "out").values()
    assert {"mlm", "sop", "sst-2"} <= report["values"].keys()
    assert done.stdout.count("1 arms\n") == 1
