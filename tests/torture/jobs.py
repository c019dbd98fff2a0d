"""The jobs of the campaign, in one table: a command line, and what must be the same however often it was disturbed."""

import hashlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

PASSING = {"timing.jsonl", ".lock"}  # seconds and locks differ between two runs
HANGS_AFTER_SECONDS = 600.0
UNREPRODUCIBLE = ("timed", "machine", "state", "checksum")  # in JSON: seconds, and what is a hash of them


@dataclass(frozen=True)
class Job:
    """A command that writes a folder; `{m}` is the folder of materials and `{out}` the one to write."""

    name: str
    command: str
    is_forked: bool = True  # False: it starts processes of its own, and needs an interpreter of its own
    compared: tuple[str, ...] = ("**/*",)
    share: float = 1.0  # of the faults; what needs new interpreters costs ten times as much

    def words(self, materials: Path, out: Path) -> list[str]:
        return self.command.format(m=materials, out=out).split()


TUNING = "train.steps=12 train.evaluations=3 train.batch_size=8 train.log_every=1 train.max_length=32"
JOBS = [
    Job("build", "corpus build {m}/text --tokenizer {m}/tokenizer --valid-share 0.1 --processes 1 --out {out}"),
    Job("tokenizer", "tokenizer train {m}/text --kind wordpiece --vocab-size 100 --out {out}"),
    Job("pretrain", "pretrain {m}/recipe.toml --out {out}"),
    Job("finetune", f"finetune {{m}}/checkpoint --task classification --data {{m}}/rows --out {{out}} {TUNING}"),
    Job("export", "export {m}/checkpoint {out} --task-head mlm"),
    Job("convert", "convert {m}/checkpoint {out} --to huggingface"),
    Job("search", "search index {m}/text --model {m}/checkpoint --passage-tokens 16 --out {out}"),
    Job(
        "study",
        "study run {m}/study.toml --corpus {m}/corpus --data {m}/tasks --jobs 1 --out {out}",
        is_forked=False,
        compared=("*.json", "runs/*/metrics.jsonl"),
        share=0.15,
    ),
    Job(
        "build-2",
        "corpus build {m}/text --tokenizer {m}/tokenizer --valid-share 0.1 --processes 2 --out {out}",
        is_forked=False,
        share=0.3,
    ),
    Job("pretrain-2", "pretrain {m}/recipe.toml --processes 2 --out {out}", is_forked=False, share=0.3),
]


class HangError(AssertionError):
    """A job that does not end."""


class Ending(NamedTuple):
    """How a run of a job ended, and what it wrote to standard output and standard error."""

    code: int  # negative: the signal that killed it
    output: str

    @property
    def is_refusal(self) -> bool:
        """Refused in the promised form: exit code 2, an error in one line, no traceback."""
        is_in_a_line = re.search(r"error(\[[a-z0-9-]+\])?: ", self.output) is not None
        return self.code == 2 and is_in_a_line and "Traceback" not in self.output


def start(words: Sequence[str], log: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Fork a process of its own group that runs a command of litebert; gives its number.

    A fork of an interpreter that has imported everything starts in milliseconds, which is what makes thousands
    of kills affordable.
    """
    number = os.fork()
    if number:
        return number
    code = 70
    try:
        os.setpgid(0, 0)
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]
        from litebert.cli.main import _run

        prepare()
        code = _run(list(words), debug=False)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def start_interpreter(words: Sequence[str], log: Path) -> int:
    """Start litebert as a user would, in a new interpreter and a process group of its own."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
    command = [sys.executable, "-m", "litebert", *words]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setpgroup=0)


def wait(number: int, log: Path) -> Ending:
    """Wait for a process that was started here; one that hangs is killed, and fails the trial."""
    deadline = time.monotonic() + HANGS_AFTER_SECONDS
    while (ended := os.waitpid(number, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline and time.monotonic() > deadline + measure_starvation(number):
            kill_group(number)
            os.waitpid(number, 0)
            raise HangError(f"still running after {HANGS_AFTER_SECONDS:g} s")
        time.sleep(0.01)
    return Ending(os.waitstatus_to_exitcode(ended[1]), log.read_text("utf-8", errors="replace"))


def measure_starvation(number: int) -> float:
    """The seconds for which a process and those that it started were ready to run, and a busy machine did not let them.

    A campaign that yields to everything else may wait for hours without any process hanging.
    """
    delays = [0]
    with suppress(psutil.Error):
        process = psutil.Process(number)
        for member in (process, *process.children(recursive=True)):
            with suppress(OSError):
                delays.append(int(Path(f"/proc/{member.pid}/schedstat").read_text().split()[1]))
    return sum(delays) / 1e9


def kill_group(number: int) -> None:
    """Kill a process that was started here, and those that it has started in its group."""
    with suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


def run(job: Job, materials: Path, out: Path, prepare: Callable[[], None] = lambda: None) -> Ending:
    """Run a job to its end."""
    log = out.with_suffix(".log")
    words = job.words(materials, out)
    return wait(start(words, log, prepare) if job.is_forked else start_interpreter(words, log), log)


def digest(job: Job, out: Path) -> dict[str, str]:
    """The hashes of all that must be the same after any fault; seconds and the machine's name are left out."""
    files = sorted({file for pattern in job.compared for file in out.glob(pattern) if file.is_file()})
    return {
        str(file.relative_to(out)): hashlib.sha256(_content(job, file)).hexdigest()
        for file in files
        if file.name not in PASSING
    }


def _content(job: Job, file: Path) -> bytes:
    is_timed = file.name == "litebert.json" or (job.name == "study" and file.suffix == ".json")
    if not is_timed:
        return file.read_bytes()
    value = json.loads(file.read_text("utf-8"))
    return json.dumps({key: item for key, item in value.items() if key not in UNREPRODUCIBLE}).encode()


def import_everything() -> None:
    """Import what the forked jobs need, once."""
    import litebert.cli.main
    import litebert.exporters.onnx_folder
    import litebert.finetuning.finetune
    import litebert.interop.convert
    import litebert.pretraining.pretrain
    import litebert.search.build  # noqa: F401
