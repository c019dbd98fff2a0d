"""Does pre-training learn? The recipe cpu-small compared with transformers' ALBERT of the same shape, text and budget.

    python benchmarks/learning.py ours         --corpus C --out O --seed 1 --cpu-minutes 120 [KEY=VALUE ...]
    python benchmarks/learning.py probe        --corpus C --out O/probes --cpu-minutes 15 --compile
    python benchmarks/learning.py transformers --corpus C --out O --seed 1 --cpu-minutes 120 --compile --std 0.02 ...
    python benchmarks/learning.py measure      --corpus C --out O --into docs/learning
    python benchmarks/learning.py report       docs/learning --page docs/results.md

Budgets are processor minutes over all processes: 120 are an hour on two cores. --processes 2 (the default) trains on
two; --processes 1 --cores 0 pins a contender to one core, so that two can run at the same time. A killed run resumes
with the same command. `probe` tries settings of transformers. `measure` evaluates every finished run on held-out text
and writes the results to a small file; `report` turns such files into a table, a figure, and the section of a page.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

from learners.budget import Machine, claim


def main() -> None:
    parser = build_parser()
    arguments, words = parser.parse_known_args()
    if words and arguments.contender != "probe":
        parser.error(f"unknown: {' '.join(words)}")
    if arguments.contender is None:  # `make bench` starts every benchmark; this one takes hours and needs a corpus
        parser.print_help()
    elif arguments.contender == "report":
        from learners.report import report

        report(arguments.kept, arguments.page)
    elif arguments.contender == "measure":
        from learners.measuring import Measuring, measure_runs

        measure_runs(arguments.out, arguments.corpus, Measuring(arguments.length, arguments.pairs), arguments.into)
    elif arguments.contender == "probe":
        run_probes(arguments, words)
    else:
        claim(Machine(arguments.processes, arguments.threads, tuple(arguments.cores)))
        {"ours": run_ours, "transformers": run_theirs}[arguments.contender](arguments)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="contender")
    for name in ("ours", "transformers"):
        command = commands.add_parser(name)
        add_places(command)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--cpu-minutes", type=float, default=120)
        command.add_argument("--processes", type=int, default=2)
        command.add_argument("--threads", type=int, default=1, help="of each process")
        command.add_argument("--cores", type=int, nargs="+", default=(), help="hold all processes to these")
    commands.choices["ours"].add_argument("changes", nargs="*", metavar="KEY=VALUE", help="of the recipe")
    command = commands.choices["transformers"]
    command.add_argument("--learning-rate", type=float, default=1e-3)
    command.add_argument("--std", type=float, default=0.02)
    command.add_argument("--batch", type=int, default=32)
    command.add_argument("--length", type=int, default=64)
    command.add_argument("--shape", default="cpu-small", help="a preset; another one only to try this program")
    command.add_argument("--compile", action="store_true")
    command = commands.add_parser("probe", help="every other word is transformers'")
    command.add_argument("--learning-rate", type=float, nargs="+", default=[3e-4, 1e-3])
    command.add_argument("--std", type=float, nargs="+", default=[0.02, 0.05])
    command.add_argument("--batch", type=int, nargs="+", default=[32])
    command = commands.add_parser("measure")
    add_places(command)
    command.add_argument("--length", type=int, default=64, help="tokens of a pair; both sides have learned 64")
    command.add_argument("--pairs", type=int, default=4096)
    command.add_argument("--into", type=Path, required=True, help="a file for each run will be in it")
    command = commands.add_parser("report")
    command.add_argument("kept", type=Path, help="what measure wrote into")
    command.add_argument("--page", type=Path, help="the Markdown page of which the section is a part")
    return parser


def add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument("--corpus", type=Path, required=True, help="with cpu-small's vocabulary of 8,000")
    command.add_argument("--out", type=Path, required=True, help="a folder for each run will be in it")


def run_ours(arguments: argparse.Namespace) -> None:
    from learners.ours import train_ours

    train_ours(
        arguments.out / f"litebert-{arguments.cpu_minutes:g}-seed{arguments.seed}",
        arguments.corpus,
        seed=arguments.seed,
        cpu_minutes=arguments.cpu_minutes,
        machine=Machine(arguments.processes, arguments.threads, tuple(arguments.cores)),
        changes=tuple(arguments.changes),
    )


def run_theirs(arguments: argparse.Namespace) -> None:
    from learners.theirs import Setting, train_theirs

    setting = Setting(
        learning_rate=arguments.learning_rate,
        initializer_range=arguments.std,
        batch=arguments.batch,
        length=arguments.length,
        shape=arguments.shape,
        is_compiled=arguments.compile,
    )
    train_theirs(
        arguments.out / f"transformers-{arguments.cpu_minutes:g}-{setting.name}-seed{arguments.seed}",
        arguments.corpus,
        seed=arguments.seed,
        cpu_minutes=arguments.cpu_minutes,
        machine=Machine(arguments.processes, arguments.threads, tuple(arguments.cores)),
        setting=setting,
    )


def run_probes(arguments: argparse.Namespace, words: list[str]) -> None:
    """Run each combination of the settings in turn, in its own process; `words` are the arguments common to all."""
    for rate, std, batch in itertools.product(arguments.learning_rate, arguments.std, arguments.batch):
        setting = ["--learning-rate", f"{rate}", "--std", f"{std}", "--batch", f"{batch}"]
        subprocess.run([sys.executable, __file__, "transformers", *words, *setting], check=True)


if __name__ == "__main__":
    main()
