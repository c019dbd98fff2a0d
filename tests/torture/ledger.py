"""What the campaign has tried, one line of JSON per trial: an interrupted campaign continues after the last line."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

SURVIVED, FAILED = "survived", "FAILED"


class Ledger:
    """The trials of one kind of fault. A trial is named, seeded by its name, and tried once."""

    def __init__(self, file: Path, fault: str, seed: int) -> None:
        self.file, self.fault, self.seed = file, fault, seed
        self.records = [record for record in read_records(file) if record["fault"] == fault]
        self._tried = {record["trial"] for record in self.records}

    def is_tried(self, trial: str) -> bool:
        return trial in self._tried

    def random(self, trial: str) -> random.Random:
        return random.Random(f"{self.seed} {self.fault} {trial}")

    def write(self, trial: str, *, count: int = 1, problem: str = "", **facts: Any) -> None:
        """Note a trial of `count` faults; a `problem` says what did not survive them."""
        outcome = FAILED if problem else SURVIVED
        record = {"fault": self.fault, "trial": trial, "count": count, "outcome": outcome, "problem": problem, **facts}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        self.records.append(record)
        if problem:
            print(f"FAILED {self.fault}, {trial}: {problem}", flush=True)


def read_records(file: Path) -> list[dict[str, Any]]:
    """The records of a ledger; a last line that was cut short is left out."""
    if not file.is_file():
        return []
    lines = file.read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


def summarize(file: Path) -> str:
    """A table of what was tried and what survived, by fault and job."""
    tried: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for record in read_records(file):
        row = (record["fault"], record["trial"].split()[0])
        tried[row] += record["count"]
        failed[row] += record.get("failures", record["count"]) if record["outcome"] == FAILED else 0
    lines = [f"| {f} | {job} | {tried[f, job]:,} | {tried[f, job] - failed[f, job]:,} |" for f, job in sorted(tried)]
    return "\n".join(["| fault | job | tried | survived |", "|---|---|---:|---:|", *lines])
