"""Many processes end where one does, under DDP and FSDP2, and go on in another number."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.runlog import read_log

pytestmark = [pytest.mark.slow, pytest.mark.ranks]

RECIPE = """
seed = 3
[model]
vocab_size = 100
embedding_size = {embedding_size}
hidden_size = 16
ffn_size = 24
num_layers = 2
num_heads = 2
max_positions = 32
sharing = "{sharing}"
[data]
corpora = ["{corpus}"]
[segments]
max_length = 32
{segments}
[batch]
sequences = 16
[train]
steps = {steps}
save_every = {save_every}
evaluate_batches = 2
micro_batch = 2
parallel = "{parallel}"
[schedule]
warmup_steps = 2
[optim]
name = "{optimizer}"
learning_rate = 0.01
"""


NO_TASK = """format = "doc-sentences"
task = "none"
"""


def write_recipe(path: Path, corpus: Path, **changes: object) -> Path:
    values: dict[str, object] = {
        "embedding_size": 8,
        "sharing": "all",
        "segments": "",
        "steps": 6,
        "save_every": 3,
        "parallel": "ddp",
        "optimizer": "lamb",
    }
    path.write_text(RECIPE.format(corpus=corpus, **(values | changes)))
    return path


def start(recipe: Path, out: Path, processes: int) -> subprocess.Popen[str]:
    return start_by(["-m", "litebert"], recipe, out, ["--processes", str(processes), "--restarts", "20"])


def start_by(how: list[str], recipe: Path, out: Path, more: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, *how, "pretrain", str(recipe), "--out", str(out), *more]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def run(recipe: Path, out: Path, processes: int) -> Path:
    process = start(recipe, out, processes)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return out


def assert_same_end(one: Path, other: Path) -> None:
    ends = [load_checkpoint(list_checkpoints(path / "checkpoints")[-1]) for path in (one, other)]
    assert ends[0].step == ends[1].step
    tensors = [end.load_weights() | end.load_optimizer() for end in ends]
    assert tensors[0].keys() == tensors[1].keys()
    for name, tensor in tensors[0].items():
        torch.testing.assert_close(tensor, tensors[1][name], atol=1e-5, rtol=1e-4, msg=name)
    records = [read_log(path / "metrics.jsonl") for path in (one, other)]
    for first, second in zip(*records, strict=True):
        assert first == pytest.approx(second, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"sharing": "none", "embedding_size": 16, "optimizer": "adamw"}, {"segments": NO_TASK}],
    ids=["shared", "unshared", "no-task"],
)
def test_one_two_and_four_processes_end_alike_under_ddp_and_fsdp(
    changes: dict[str, object], tiny_corpus: Path, tmp_path: Path
) -> None:
    alone = run(write_recipe(tmp_path / "alone.toml", tiny_corpus, **changes), tmp_path / "alone", 1)
    for parallel in ("ddp", "fsdp"):
        recipe = write_recipe(tmp_path / f"{parallel}.toml", tiny_corpus, **changes, parallel=parallel)
        for processes in (2, 4):
            assert_same_end(alone, run(recipe, tmp_path / f"{parallel}-{processes}", processes))


def test_a_run_resumes_with_another_number_of_processes(tiny_corpus: Path, tmp_path: Path) -> None:
    # so many steps between checkpoints that there is time to be killed
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_corpus, steps=60, save_every=15, parallel="fsdp")
    alone = run(recipe, tmp_path / "alone", 1)
    for processes, step in ((2, 15), (1, 30), (4, 45)):
        stop_after(recipe, tmp_path / "moved", processes, step)
    assert_same_end(alone, run(recipe, tmp_path / "moved", 2))


def stop_after(recipe: Path, out: Path, processes: int, step: int) -> None:
    """Kill everything once the checkpoint of a step is there, and before there is another."""
    process = start(recipe, out, processes)
    while process.poll() is None and not (out / "checkpoints" / f"step-{step:08d}").exists():
        time.sleep(0.01)
    family = [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
    process.kill()
    for member in family:
        member.kill()
    process.communicate()
    assert list_checkpoints(out / "checkpoints")[-1].name == f"step-{step:08d}"


@pytest.mark.timeout(900)
def test_two_processes_that_are_stopped_save_their_step(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_corpus, steps=60, save_every=1000)
    undisturbed = run(recipe, tmp_path / "undisturbed", 2)
    process = start(recipe, tmp_path / "stopped", 2)
    while process.poll() is None and last_step(tmp_path / "stopped") < 5:
        time.sleep(0.01)
    process.terminate()
    output, _ = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, output
    (saved,) = list_checkpoints(tmp_path / "stopped" / "checkpoints")
    assert f"stopped after step {int(saved.name.removeprefix('step-'))}, which is saved" in output
    assert_same_end(undisturbed, run(recipe, tmp_path / "stopped", 2))


NUM_KILLS = 10


@pytest.mark.timeout(900)  # two minutes of a free machine, most of them spent starting
def test_workers_that_die_are_replaced_and_change_nothing(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_corpus, steps=150)
    undisturbed = run(recipe, tmp_path / "undisturbed", 2)
    process = start(recipe, tmp_path / "disturbed", 2)
    rng = random.Random(4)
    num_kills = sum(kill_after(rng.randint(1, 9), process, tmp_path / "disturbed", rng) for _ in range(NUM_KILLS))
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert num_kills == NUM_KILLS, output
    assert output.count("was killed by SIGKILL: restarting all processes") == NUM_KILLS, output
    assert_same_end(undisturbed, tmp_path / "disturbed")


def test_torchrun_replaces_a_worker_that_dies(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_corpus, steps=60)
    alone = run(recipe, tmp_path / "alone", 1)
    how = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=2", "-m", "litebert"]
    process = start_by(how, recipe, tmp_path / "disturbed", [])
    is_killed = kill_after(5, process, tmp_path / "disturbed", random.Random(4))
    output, _ = process.communicate()
    assert (process.returncode, is_killed) == (0, True), output
    assert_same_end(alone, tmp_path / "disturbed")


def kill_after(num_steps: int, process: subprocess.Popen[str], out: Path, rng: random.Random) -> bool:
    """Kill one of the workers once they have made so many steps; False where the run has ended before."""
    first = last_step(out)
    while process.poll() is None:
        time.sleep(0.005)
        first = min(first, last_step(out))  # those who go on cut the log after their checkpoint
        if last_step(out) >= first + num_steps:
            workers = psutil.Process(process.pid).children()
            rng.choice(workers).send_signal(signal.SIGKILL)
            psutil.wait_procs(workers)  # what the dead have still written is not progress
            return True
    return False


def last_step(out: Path) -> int:
    file = out / "metrics.jsonl"
    records = read_log(file) if file.is_file() else []
    return int(records[-1]["step"]) if records else 0


def test_a_process_whose_partner_falls_silent_stops_with_a_message(tiny_corpus: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", tiny_corpus, steps=100_000)
    command = [sys.executable, "-m", "litebert", "pretrain", str(recipe), "--out", str(tmp_path / "run")]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LITEBERT_PROCESS_TIMEOUT": "30"}
    environments = [os.environ | meeting | {"RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": "1"} for rank in "01"]
    first, second = (
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for environment in environments
    )
    while last_step(tmp_path / "run") < 5:
        assert first.poll() is None
        time.sleep(0.05)
    second.send_signal(signal.SIGSTOP)
    try:
        _, said = first.communicate(timeout=120)
    finally:
        second.kill()
        second.communicate()
    assert first.returncode == 2, said
    (line,) = [line for line in said.splitlines() if line.startswith("error")]
    assert line.startswith("error[process-lost]: another process of this run ended or cannot be reached (")
    assert "Traceback" not in said
