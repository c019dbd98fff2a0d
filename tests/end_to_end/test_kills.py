"""SIGKILL at random moments, also during a save: the run ends as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.kills]

RECIPE = """
seed = 3
[model]
preset = "nano"
vocab_size = 100
hidden_dropout_rate = 0.1
[data]
corpora = ["{corpus}", "{corpus}"]
weights = [1.0, 2.0]
[segments]
max_length = 64
[batch]
tokens = 1024
is_packed = true
[train]
steps = 40
save_every = 3
evaluate_batches = 1
micro_batch = 4
[schedule]
warmup_steps = 4
[[stages]]
at = 17
segments.max_length = 32
[[stages]]
at = 25
model.hidden_dropout_rate = 0.0
model.num_layers = 3
"""


def start(recipe: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "litebert", "pretrain", str(recipe), "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def finish(recipe: Path, out: Path) -> None:
    process = start(recipe, out)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def kill_at_a_random_moment(recipe: Path, out: Path, rng: random.Random) -> None:
    """Let the run make a little progress, then kill it wherever it is."""
    process = start(recipe, out)
    metrics = out / "metrics.jsonl"
    lines_before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    while process.poll() is None and (metrics.read_bytes().count(b"\n") if metrics.exists() else 0) <= lines_before:
        time.sleep(0.01)  # the resumed run first cuts the lines behind its checkpoint off, and writes them again
    time.sleep(rng.random() * 0.4)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def content_of(checkpoint: Path) -> dict[str, bytes]:
    """The bytes of all files but the manifest, which knows how many seconds the run took."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != "litebert.json")
    return {path.relative_to(checkpoint).as_posix(): path.read_bytes() for path in files}


def test_ten_kills_change_no_weight_no_moment_and_no_metric(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(corpus=tiny_corpus))
    finish(recipe, tmp_path / "a" / "run")
    rng = random.Random(7)
    for _ in range(10):
        kill_at_a_random_moment(recipe, tmp_path / "b" / "run", rng)
    finish(recipe, tmp_path / "b" / "run")
    metrics = [(tmp_path / name / "run" / "metrics.jsonl").read_bytes() for name in "ab"]
    assert metrics[0] == metrics[1]
    ends = [content_of(tmp_path / name / "run" / "checkpoints" / "step-00000040") for name in "ab"]
    assert ends[0].keys() == ends[1].keys()
    for name in ends[0]:
        assert ends[0][name] == ends[1][name], name
