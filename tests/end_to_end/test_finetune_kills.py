"""SIGKILL at random moments of a fine-tuning run: its report is that of a run that never stopped."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_tasks import invent_rows, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.kills]
OPTIONS = ["train.steps=40", "train.evaluations=20", "train.batch_size=8", "train.log_every=1", "train.patience=18"]


def start(checkpoint: Path, data: Path, out: Path) -> subprocess.Popen[bytes]:
    words = ["finetune", checkpoint, "--task", "classification", "--data", data, "--out", out, *OPTIONS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "litebert", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def finish(checkpoint: Path, data: Path, out: Path) -> None:
    process = start(checkpoint, data, out)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def test_four_kills_change_nothing(tiny_checkpoint: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data", invent_rows())
    finish(tiny_checkpoint, data, tmp_path / "a" / "run")
    rng = random.Random(5)
    metrics = tmp_path / "b" / "run" / "metrics.jsonl"
    for _ in range(4):
        process = start(tiny_checkpoint, data, tmp_path / "b" / "run")
        before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
        while process.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") <= before):
            time.sleep(0.05)
        time.sleep(rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finish(tiny_checkpoint, data, tmp_path / "b" / "run")
    for file in ("report.json", "metrics.jsonl", "predictions/dev.jsonl", "model/model.safetensors"):
        assert (tmp_path / "a" / "run" / file).read_bytes() == (tmp_path / "b" / "run" / file).read_bytes(), file
