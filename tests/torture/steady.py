"""Training for a long time: memory and descriptors stay where they are, checkpoints and measurements included."""

import os
import signal
import statistics
import time
from pathlib import Path

import psutil

from tests.torture import jobs
from tests.torture.ledger import Ledger

OVERRIDES = (
    "train.steps=1000000000 train.save_every=100 train.evaluate_every=50 train.log_every=10 train.keep_last=2 "
    "model.hidden_size=64 model.ffn_size=128 model.num_layers=4 batch.sequences=32 train.micro_batch=16"
)
GROWTH_BYTES = 16 << 20  # between the second quarter and the last: caches fill in the first
SAMPLE_SECONDS = 5.0


def torture(materials: Path, folder: Path, ledger: Ledger, seconds: float) -> None:
    """Train for so long, and compare what the process holds early and late."""
    trial = f"pretrain {seconds:g} seconds"
    if ledger.is_tried(trial):
        return
    folder.mkdir(parents=True, exist_ok=True)
    words = ["pretrain", str(materials / "recipe.toml"), *OVERRIDES.split(), "--out"]
    log = folder / "training.log"
    out = folder / f"run-{time.time_ns()}"
    process = jobs.start_interpreter([*words, str(out)], log)
    watched, started_at = psutil.Process(process), time.monotonic()
    memory, descriptors = [], []
    while time.monotonic() < started_at + seconds and watched.status() != psutil.STATUS_ZOMBIE:
        time.sleep(SAMPLE_SECONDS)
        memory.append(watched.memory_info().rss)
        descriptors.append(watched.num_fds())
    os.kill(process, signal.SIGTERM)
    ending = jobs.wait(process, log)
    quarter = len(memory) // 4
    early, late = (int(statistics.median(part)) for part in (memory[quarter : 2 * quarter], memory[-quarter:]))
    fewest, most = min(descriptors[quarter:]), max(descriptors[quarter:])
    problems = [f"ended with {ending.code}: {ending.output[-300:]}"] if ending.code != 128 + signal.SIGTERM else []
    problems += [f"memory grew from {early:,} to {late:,} bytes"] if late - early > GROWTH_BYTES else []
    problems += [f"descriptors: {descriptors[quarter]} early, {descriptors[-1]} late"] if most > fewest + 4 else []
    last = sorted(path.name for path in (out / "checkpoints").iterdir())[-1]
    facts = {"seconds": round(seconds), "memory": [early, late], "descriptors": [fewest, most], "last": last}
    ledger.write(trial, problem="; ".join(problems), **facts)
