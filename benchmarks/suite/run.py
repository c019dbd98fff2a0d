"""Run every benchmark of the suite in turn, each in its own process.

    python benchmarks/suite/run.py [--full] [--only NAME ...] [--out build/benchmarks] [--compare [FILE]]

Without --full: fewer rounds and cases, under ten minutes on two quiet cores. A benchmark whose peers or data are not
installed is skipped with a message that says what is missing; one that fails does not stop the others. All results go
into one JSON file with a description of the machine. --compare prints the ratios that changed since the last file from
the same machine, or since FILE.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite.machine import describe_in_line, describe_machine

BENCHMARKS = Path(__file__).parents[1]
NOISE = 1.1  # ratios within 10 % are considered equal, given the few rounds


class Benchmark(NamedTuple):
    """A script in benchmarks/, and its requirements."""

    script: str
    quick: str = ""  # arguments without --full
    full: str = ""
    needs: tuple[str, ...] = ()  # packages
    needs_data: bool = False  # $LITEBERT_DATA
    has_json: bool = False
    is_quick: bool = True  # False: only with --full


SUITE = {
    "data": Benchmark("data.py", quick="--rounds 1"),
    "encoding": Benchmark("encoding.py", needs=("tokenizers",), is_quick=False),
    "sentences": Benchmark("sentences.py", needs=("pysbd",), needs_data=True, is_quick=False),
    "features": Benchmark("features.py", quick="0.1", needs_data=True),
    "batches": Benchmark("batches.py", needs=("transformers",)),
    "optimizer": Benchmark("lamb.py", quick="--rounds 2"),
    "training": Benchmark(
        "train.py", quick="--quick --only base-128 small-128", needs=("transformers",), has_json=True
    ),
    "finetuning": Benchmark("finetune.py", needs=("transformers", "accelerate"), has_json=True, is_quick=False),
    "inference": Benchmark(
        "infer.py", quick="--rounds 2 --tokens 1024 --lengths 32,128", needs=("transformers",), has_json=True
    ),
    "serving": Benchmark("serve.py", needs=("fastapi",), is_quick=False),
    "conversion": Benchmark("convert.py", needs=("transformers",)),
    "planning": Benchmark("plan.py", has_json=True, is_quick=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all benchmarks with all cases: an hour or two")
    parser.add_argument("--only", nargs="+", choices=SUITE, metavar="NAME", help=", ".join(SUITE))
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--compare", nargs="?", const="last", metavar="FILE")
    options = parser.parse_args()
    machine = describe_machine()
    print(describe_in_line(machine), flush=True)
    before = find_before(options.compare, options.out, machine)
    results = {name: run(name, is_full=options.full) for name in options.only or list_names(is_full=options.full)}
    report = {"machine": machine, "is_full": options.full, "results": results}
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(f"\n{summarize(results)}\n{file}")
    if options.compare:
        print(compare(before, report))
    sys.exit(any(result["outcome"] == "failed" for result in results.values()))


def list_names(*, is_full: bool) -> list[str]:
    return [name for name, benchmark in SUITE.items() if is_full or benchmark.is_quick]


def run(name: str, *, is_full: bool) -> dict[str, Any]:
    """A benchmark's outcome, seconds, numbers and output."""
    benchmark = SUITE[name]
    print(f"\n== {name} ({benchmark.script})", flush=True)
    if missing := find_missing(benchmark):
        print(f"skipped: {missing}", flush=True)
        return {"outcome": "skipped", "reason": missing}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "numbers.json"
        words = [*(benchmark.full if is_full else benchmark.quick).split()]
        words += ["--json", str(file)] if benchmark.has_json else []
        started_at = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, str(BENCHMARKS / benchmark.script), *words],
            env={"OMP_WAIT_POLICY": "passive"} | os.environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
        code = process.wait()
        numbers = json.loads(file.read_text("utf-8")) if file.is_file() else None
    outcome = "failed" if code else "measured"
    if code:
        print(f"failed with exit code {code}", flush=True)
    seconds = round(time.perf_counter() - started_at, 1)
    return {"outcome": outcome, "seconds": seconds, "numbers": numbers, "printed": "".join(printed)}


def find_missing(benchmark: Benchmark) -> str:
    """The requirements of a benchmark that this machine lacks; empty if it can run."""
    packages = [package for package in benchmark.needs if find_spec(package) is None]
    reasons = [f"{', '.join(packages)} not installed (make bench installs the peers)"] if packages else []
    if benchmark.needs_data and not os.environ.get("LITEBERT_DATA"):
        reasons.append("LITEBERT_DATA is not set to a folder of text and tasks")
    return "; ".join(reasons)


def summarize(results: dict[str, dict[str, Any]]) -> str:
    """One line per benchmark."""
    return "\n".join(
        f"{name:12} {result['outcome']:9} {result.get('reason') or format(result['seconds'], '.0f') + ' s'}"
        for name, result in results.items()
    )


def find_before(wanted: str | None, folder: Path, machine: dict[str, Any]) -> dict[str, Any] | None:
    """The report to compare with: the named one, or the last one from such a machine."""
    if wanted not in (None, "last"):
        return json.loads(Path(wanted).read_text("utf-8"))  # type: ignore[no-any-return]
    for file in sorted(folder.glob("*.json"), reverse=True):
        report: dict[str, Any] = json.loads(file.read_text("utf-8"))
        if all(report["machine"][key] == machine[key] for key in ("processor", "instructions", "cores")):
            return report
    return None


def compare(before: dict[str, Any] | None, now: dict[str, Any]) -> str:
    """The ratios that clearly changed."""
    if before is None:
        return "no earlier report of such a machine to compare with"
    old, new = (dict(iter_ratios(report["results"])) for report in (before, now))
    moved = [
        f"  {name}: {old[name]:.2f} -> {value:.2f}"
        for name, value in new.items()
        if name in old and old[name] > 0 and not 1 / NOISE <= value / old[name] <= NOISE
    ]
    shared = len(old.keys() & new.keys())
    return "\n".join([f"{len(moved)} of {shared} ratios moved by more than {NOISE - 1:.0%}", *moved])


def iter_ratios(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number whose key contains "ratio" or "share", with the path to it."""
    if isinstance(value, dict):
        title = str(value.get("who", ""))
        for key, inner in value.items():
            yield from iter_ratios(inner, "/".join(filter(None, (name, title, key))))
    elif isinstance(value, list):
        for inner in value:
            yield from iter_ratios(inner, name)
    elif isinstance(value, int | float) and ("ratio" in name or "share" in name):
        yield name, float(value)


if __name__ == "__main__":
    main()
