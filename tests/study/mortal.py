"""litebert as a process that keeps a diary and can be told when to die: `python -m tests.study.mortal study run ...`.

$DIARY is a file, which gets a line for each thing that an arm has done, `ARM DEED THING`: a step `trained` or `tuned`,
the files of a checkpoint all but put into place (`saving`), something `measured`, a file that it `wrote`. $DEATH is the
line after which the process is killed, and all others of its session with it.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litebert import checkpoint
from litebert.cli.main import main
from litebert.objectives.masked_lm import MaskedLM
from litebert.study import arm
from litebert.study import run as arms
from litebert.study.arms import ArmRun
from litebert.training import loop


def note(line: str) -> None:
    """Write down what has been done, and die if it was the last."""
    with Path(os.environ["DIARY"]).open("a") as diary:
        diary.write(f"{line}\n")
    if line == os.environ.get("DEATH"):
        os.killpg(0, signal.SIGKILL)


def noting(function: Callable[..., Any], describe: Callable[..., str]) -> Callable[..., Any]:
    """A function that writes down what it has done."""

    def wrapped(*words: Any, **options: Any) -> Any:
        result = function(*words, **options)
        note(describe(*words))
        return result

    return wrapped


def keep_diary_of(name: str) -> None:
    """Let everything that an arm is made of write itself down."""
    loop.update = noting(
        loop.update,
        lambda engine, _, step, __: f"{name} {'trained' if isinstance(engine.task, MaskedLM) else 'tuned'} {step + 1}",
    )
    # a checkpoint's last file lists the others, which are all written
    checkpoint._manifest = noting(checkpoint._manifest, lambda _, __, ___, content: f"{name} saving {content.step}")
    arm.write_sealed = noting(arm.write_sealed, lambda path, _: f"{name} wrote {path.name}")
    for measure, function in arm.FUNCTIONS.items():
        arm.FUNCTIONS[measure] = noting(function, lambda _, measure=measure: f"{name} measured {measure}")


def live() -> None:
    """Be `litebert`; the processes that it starts for arms are mortal too."""
    command, run_arm = arms.StudyRequest.command, arm.run_arm

    def run_mortal(run: ArmRun, *words: Any) -> Any:
        keep_diary_of(run.name)
        return run_arm(run, *words)

    arms.run_arm = run_mortal
    arms.StudyRequest.command = lambda request, run: [__spec__.name, *command(request, run)[1:]]
    arms.main() if sys.argv[1].startswith("{") else main()


if __name__ == "__main__":
    live()
