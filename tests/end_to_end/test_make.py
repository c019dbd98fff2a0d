"""`make` repairs what an interrupted run left, and does nothing when nothing changed."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose litebert is a stand-in with no dependencies, under the real Makefile."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "constraints.txt").touch()
    (tmp_path / "litebert").mkdir()
    (tmp_path / "litebert" / "__init__.py").touch()
    (tmp_path / "litebert" / "__main__.py").write_text("print('the demo ran')\n")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "litebert"\nversion = "0"\noptional-dependencies = {plots = []}\n'
    )
    return tmp_path


def make_demo(project: Path) -> str:
    done = subprocess.run(["make", "demo"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the demo ran" in done.stdout
    return done.stdout


def test_a_second_make_installs_nothing_and_half_an_environment_is_made_again(project: Path) -> None:
    assert "Making .venv" in make_demo(project)
    assert "Installing" not in make_demo(project)

    (project / ".venv" / ".installing").touch()  # an install was cut off
    (project / ".venv" / ".demo").unlink()
    assert "Making .venv" in make_demo(project)

    shutil.rmtree(project / ".venv")
    (project / ".venv" / "bin").mkdir(parents=True)  # creating the environment itself was cut off
    assert "Making .venv" in make_demo(project)

    (project / ".venv" / "bin" / "python").unlink()  # its Python was removed
    assert "Making .venv" in make_demo(project)

    (project / "constraints.txt").write_text("\n")  # a new pin: installed again, in place
    output = make_demo(project)
    assert "Installing" in output
    assert "Making" not in output


def test_an_old_python_is_refused_with_the_remedy(project: Path) -> None:
    fake = project / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    done = subprocess.run(["make", "demo", f"PYTHON={fake}"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs Python 3.11 or newer: make demo PYTHON=" in done.stderr
