"""A study killed in the middle of everything it does ends with the reports of one that never was."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.study.miniatures import make_task_data

pytestmark = [pytest.mark.slow, pytest.mark.kills]

FIRST, SECOND = "rate=0.15-seed-1", "rate=0.4-seed-1"
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
train = { steps = 12, save_every = 4, evaluate_every = 4, evaluate_batches = 2, log_every = 1 }
[[laptop.tasks]]
task = "sst-2"
data = "glue"
change = ["train.steps=12", "train.evaluations=3", "train.batch_size=8", "train.max_length=24"]
"""


@dataclass(frozen=True)
class Killing:
    """A study in a folder, of which each sitting writes into one diary what it does."""

    folder: Path
    words: tuple[str, ...]

    @property
    def diary(self) -> Path:
        return self.folder.with_suffix(".diary")

    def sit(self, *words: str, death: str = "") -> None:
        """Run the study; with a `death`, until a process has done that, and the whole session is killed with it."""
        command = [sys.executable, "-m", "tests.study.mortal", "study", "run", *self.words, *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "DIARY": str(self.diary), "DEATH": death}
        process = subprocess.Popen(
            [*command, "--out", str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        said, _ = process.communicate()
        assert process.returncode == (-signal.SIGKILL if death else 0), said.decode()
        if death:
            assert [line for line in self.lines() if line.startswith(death.split()[0])][-1] == death

    def lines(self) -> list[str]:
        return self.diary.read_text().splitlines()

    def reports(self) -> dict[str, Any]:
        reports = {path.stem: json.loads(path.read_text()) for path in self.folder.glob("*.json")}
        return {
            name: {key: value for key, value in report.items() if key not in ("timed", "machine", "checksum")}
            for name, report in reports.items()
        }


def count_steps(lines: list[str], deed: str) -> dict[int, int]:
    """How often the second arm has made each step, by the lines of a diary."""
    words = [line.split() for line in lines]
    return Counter(int(thing) for name, done, thing in words if (name, done) == (SECOND, deed))


@pytest.mark.timeout(1200)  # it starts a dozen processes, which takes a busy machine its time
def test_kills_in_the_middle_of_everything_change_no_report_and_cost_no_saved_step(
    tiny_corpus: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rates.toml"
    file.write_text(STUDY)
    words = (str(file), "--corpus", str(tiny_corpus), "--data", str(make_task_data(tmp_path / "data")))
    whole, killed = Killing(tmp_path / "a", words), Killing(tmp_path / "b", words)
    only_first, only_second = ("--arms", "rate=0.15"), ("--arms", "rate=0.4")  # one process less to start than for both
    whole.sit(*only_first)
    whole.sit(*only_second)

    killed.sit("--jobs", "2", death=f"{SECOND} trained 6")  # between two checkpoints; the other arm, wherever it is
    killed.sit(*only_second, death=f"{SECOND} saving 8")
    checkpoints = killed.folder / "runs" / SECOND / "checkpoints"
    assert list(checkpoints.glob(".step-00000008.*.tmp")), "it died in the middle of a save"
    killed.sit(*only_second, death=f"{SECOND} measured intrinsic")
    killed.sit(*only_second, death=f"{SECOND} tuned 7")
    killed.sit(*only_second, death=f"{SECOND} wrote {SECOND}.json")  # between two arms
    written_at = (killed.folder / f"{SECOND}.json").stat().st_mtime_ns
    lines_before = killed.lines()
    killed.sit("--jobs", "2")

    assert not [line for line in killed.lines()[len(lines_before) :] if line.startswith(SECOND)]  # it was finished
    assert (killed.folder / f"{SECOND}.json").stat().st_mtime_ns == written_at
    assert not list(checkpoints.glob(".*")), "what a kill left of a save is cleared away"
    assert killed.reports().keys() == {FIRST, SECOND}
    assert killed.reports() == whole.reports()
    for name in (FIRST, SECOND):
        logs = [study.folder / "runs" / name / "metrics.jsonl" for study in (whole, killed)]
        assert logs[0].read_bytes() == logs[1].read_bytes()
    # Checkpoints are saved after steps 4, 8 and 12, and no step before one is made again: the kill after step 6 costs
    # two steps, the one in the save four, the one in tuning three, all others none.
    once = dict.fromkeys(range(1, 13), 1)
    assert count_steps(whole.lines(), "trained") == count_steps(whole.lines(), "tuned") == once
    assert count_steps(killed.lines(), "trained") == once | {5: 3, 6: 3, 7: 2, 8: 2}
    assert count_steps(killed.lines(), "tuned") == once | {5: 2, 6: 2, 7: 2}


@pytest.mark.timeout(1200)
def test_kills_at_random_moments_change_no_report(tiny_corpus: Path, tmp_path: Path) -> None:
    file = tmp_path / "rates.toml"
    file.write_text(STUDY)
    words = (str(file), "--corpus", str(tiny_corpus), "--data", str(make_task_data(tmp_path / "data")))
    whole, killed = Killing(tmp_path / "a", words), Killing(tmp_path / "b", words)
    whole.sit("--arms", "rate=0.4")
    deeds = whole.lines()
    for moment in sorted(random.Random(9).sample(range(len(deeds)), 4)):
        killed.sit("--arms", "rate=0.4", death=deeds[moment])
    killed.sit("--arms", "rate=0.4")
    assert killed.reports() == whole.reports()


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
    (report,) = (json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json"))
    assert {"mlm", "sop", "sst-2"} <= report["values"].keys()
    assert done.stdout.count("1 arms\n") == 1
