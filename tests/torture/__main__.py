"""The campaign: `python -m tests.torture kills --count 1000`; see docs/reliability.md.

Bounded by --count and --seconds, seeded, and resumable: trials that the ledger lists are not tried again.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads do not survive a fork

from tests.torture.ledger import Ledger, read_records, summarize


def main() -> int:
    """Run one kind of fault, or print what was tried so far."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("fault", choices=["kills", "power", "mutants", "training", "hosts", "report"])
    parser.add_argument("--folder", type=Path, default=Path("runs/torture"), help="materials, trials and the ledger")
    parser.add_argument("--count", type=int, default=100, help="how many faults, over all jobs")
    parser.add_argument("--seconds", type=float, default=600, help="stop after so long; the same command continues")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default="", help="only these jobs or formats, as in: build,pretrain-2")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["LITEBERT_CACHE"] = str(folder / "cache")
    file = folder / "ledger.jsonl"
    if options.fault != "report":
        run_fault(options, folder, Ledger(file, options.fault, options.seed))
    print(summarize(file))
    return int(any(record["outcome"] == "FAILED" for record in read_records(file)))


def run_fault(options: argparse.Namespace, folder: Path, ledger: Ledger) -> None:
    """Try one kind of fault on all chosen jobs."""
    from tests.torture import kills, power
    from tests.torture.jobs import JOBS, import_everything
    from tests.torture.materials import build_materials

    if options.fault == "training":
        from tests.torture import steady

        steady.torture(build_materials(folder / "materials"), folder / "training", ledger, options.seconds)
        return
    if options.fault == "hosts":
        from tests.torture import hosts

        hosts.torture(build_materials(folder / "materials"), folder / "hosts", ledger, options.seconds)
        return
    import_everything()
    materials = build_materials(folder / "materials")
    deadline = time.monotonic() + options.seconds
    chosen = [job for job in JOBS if not options.jobs or job.name in options.jobs.split(",")]
    if options.fault == "mutants":
        from tests.torture import readers, rot

        formats = readers.build_formats(materials, folder / "formats")
        rot.torture(formats, folder / "mutants", ledger, options.count, deadline, options.jobs)
        return
    campaign = power.torture if options.fault == "power" else kills.torture
    campaign(chosen, materials, folder / options.fault, ledger, options.count, deadline)


if __name__ == "__main__":
    sys.exit(main())
