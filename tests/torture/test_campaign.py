"""The campaign, in short: `make torture` runs it at length."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.kills]

SHORT = {"kills": 24, "power": 24, "mutants": 7000, "training": 1}


@pytest.mark.parametrize("fault", SHORT)
def test_nothing_is_lost_to(fault: str, tmp_path: Path) -> None:
    limits = ["--count", str(SHORT[fault]), "--seconds", "30" if fault == "training" else "240", "--seed", "2"]
    words = [sys.executable, "-m", "tests.torture", fault, *limits, "--folder", str(tmp_path)]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"| {fault} |" in done.stdout
