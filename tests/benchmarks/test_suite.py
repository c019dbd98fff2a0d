"""The suite of benchmarks skips what is not installed, and compares ratios of one machine only."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from suite import run as suite
from suite.machine import describe_machine, list_instructions


def a_report(machine: dict[str, Any], ratio: float) -> dict[str, Any]:
    rates = [{"who": "ours", "ratio": ratio, "tokens_per_second": 100 * ratio}]
    return {"machine": machine, "results": {"training": {"numbers": {"base": {"rates": rates}}}}}


def test_every_benchmark_of_the_suite_exists() -> None:
    assert all((suite.BENCHMARKS / benchmark.script).is_file() for benchmark in suite.SUITE.values())


def test_what_is_not_installed_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITEBERT_DATA", raising=False)
    monkeypatch.setitem(suite.SUITE, "x", suite.Benchmark("x.py", needs=("no_such_peer",), needs_data=True))
    result = suite.run("x", is_full=False)
    assert result["outcome"] == "skipped"
    assert "no_such_peer" in result["reason"]
    assert "LITEBERT_DATA" in result["reason"]


def test_a_ratio_that_moved_is_shown_and_noise_is_not() -> None:
    machine = describe_machine()
    assert "2.00 -> 1.50" in suite.compare(a_report(machine, 2.0), a_report(machine, 1.5))
    assert suite.compare(a_report(machine, 2.0), a_report(machine, 1.95)).startswith("0 of 1 ratios")


def test_only_reports_of_such_a_machine_are_compared(tmp_path: Path) -> None:
    machine = describe_machine()
    other = machine | {"instructions": ["none"]}
    (tmp_path / "1.json").write_text(json.dumps(a_report(machine, 1.0)))
    (tmp_path / "2.json").write_text(json.dumps(a_report(other, 2.0)))
    assert suite.find_before("last", tmp_path, machine) == a_report(machine, 1.0)
    (tmp_path / "1.json").unlink()
    assert "no earlier report" in suite.compare(suite.find_before("last", tmp_path, machine), a_report(machine, 1.0))


def test_instruction_sets_are_those_the_system_lists(tmp_path: Path) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text("processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_bf16 sse\n")
    assert list_instructions(facts) == ["avx2", "avx512f", "avx512_bf16"]
    assert list_instructions(tmp_path / "none") == []
