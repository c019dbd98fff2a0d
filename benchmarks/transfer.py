"""The value of pre-training: the same fine-tuning from a checkpoint and from random weights of its shape.

    python benchmarks/transfer.py run CHECKPOINT --out runs/transfer [--data $LITEBERT_DATA] [--only sst-2 squad]
    python benchmarks/transfer.py report runs/transfer --page docs/results.md

Each task is trained with `litebert finetune`'s two-core recipe for the number of epochs in the table of cases, from
both initializations with the same examples, steps, learning rate and seeds; the best of five evaluations on dev counts.
Random weights are drawn as for the checkpoint's own training; on CoLA, they also get a run of three times the epochs.
The same command resumes a killed run; two processes with different `--only` share the work; `--scale 0.1` uses a tenth
of the examples, for a trial. Each task and initialization writes a small file with its scores, TASK-BEGINNING.json:
`report` reads these files, and docs/transfer keeps them; copied into `--out`, they are not computed again. SQuAD's dev
set is split by article: the last tenth is the test set, the rest is for training. (XQuAD cannot be the test
set: it is part of SQuAD's dev set.)
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from transferring.cases import CASES, scale_dataset
from transferring.lessons import Lesson, learn
from transferring.report import write_report


def main() -> None:
    parser = build_parser()
    arguments = parser.parse_args()
    if arguments.command is None:  # `make bench` starts every benchmark; this one needs a checkpoint
        parser.print_help()
    elif arguments.command == "run":
        run(arguments)
    else:
        write_report(arguments.out, arguments.page)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    running = commands.add_parser("run", help="fine-tune, or go on")
    running.add_argument("checkpoint", type=Path)
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--data", type=Path, default=Path(os.environ.get("LITEBERT_DATA", "data")))
    running.add_argument("--only", nargs="+", choices=[case.name for case in CASES], default=[])
    running.add_argument("--seeds", type=int, default=3)
    running.add_argument("--scale", type=float, default=1.0, help="the share of the examples that is used")
    reporting = commands.add_parser("report", help="tables and figure of what is finished")
    reporting.add_argument("out", type=Path)
    reporting.add_argument("--page", type=Path, default=Path("docs/results.md"))
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Run every task from both initializations, then the control; finished runs are not repeated."""
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.source import FOR_TRAINING
    from litebert.tasks.catalog import read_dataset

    source = load_checkpoint(arguments.checkpoint, FOR_TRAINING)
    lessons: list[Lesson] = []
    for case in (case for case in CASES if case.name in arguments.only or not arguments.only):
        dataset = scale_dataset(read_dataset(case.task, arguments.data / case.data), arguments.scale)
        scaled = replace(case, share=arguments.scale)
        lessons += [Lesson(source, scaled, dataset, one, arguments.seeds) for one in case.beginnings]
    for lesson in sorted(lessons, key=lambda lesson: lesson.is_control):
        learn(lesson, arguments.out)
    print(f"now: report {arguments.out}")


if __name__ == "__main__":
    main()
