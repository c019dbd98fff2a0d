"""What an installed wheel contains, and that a clean environment can use it."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("litebert-*.whl"))


@pytest.mark.slow
def test_a_wheel_holds_the_package_data_and_gives_a_command(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "litebert").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT).as_posix() in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)

    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True, system_site_packages=False)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    # what litebert needs is borrowed from this environment: installing torch again would take minutes
    borrowed = environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (borrowed / "borrowed.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    done = subprocess.run(
        [environment / "bin" / "litebert", "models", "nano"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "512,128" in done.stdout, done.stderr
