"""Caches are used where they can be written and read, and are never needed."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

import litebert
from litebert.batches.random_kernels import draw_unit
from litebert.core.caches import cache_directory
from litebert.core.compiled import compiled, name_sources

USES_EVERY_KERNEL = """
import numpy as np
from litebert.batches.random_kernels import draw_unit
from litebert.interop.crc32c import crc32c
from litebert.training.lamb_kernels import accumulate
from litebert.tasks.squad import windows
print(crc32c(b"123456789"), draw_unit._cache.cache_path)
"""


def double(value: int) -> int:
    return 2 * value


def choose_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make numba store machine code in this folder; it reads the variable again whenever it compiles."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))


def run_as_reader(code: str, tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code with a package that this user may read but not write, and without a home folder."""
    drop = []
    if os.getuid() == 0:  # root may write everywhere; this user may read the interpreter wherever it is installed
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is needed to run as another user")
        drop = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
        drop += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    environment |= {"PYTHONPATH": str(tree), "HOME": "/nonexistent", "PATH": os.environ["PATH"]}
    command = [*drop, sys.executable, "-c", code]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def read_only_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("installed")
    shutil.copytree(Path(litebert.__file__).parent, tree / "litebert", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a-w,a+rX", tree], check=True)
    return tree


def test_a_read_only_installation_without_a_home_compiles_into_the_temporary_folder(read_only_tree: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:  # not in tmp_path, which belongs to this user alone
        Path(temporary).chmod(0o1777)
        done = run_as_reader(USES_EVERY_KERNEL, read_only_tree, TMPDIR=temporary)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] == str(0xE3069283)
        assert done.stdout.split()[1].startswith(f"{temporary}/litebert-")
        assert list(Path(temporary).glob("litebert-*/machine-code-*/*/*.nbc"))


def test_a_read_only_installation_works_where_nothing_can_be_written(read_only_tree: Path) -> None:
    code = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/nonexistent']\n" + USES_EVERY_KERNEL
    done = run_as_reader(code, read_only_tree)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(0xE3069283), "None"]


def test_a_chosen_cache_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("LITEBERT_CACHE", raising=False)
    assert cache_directory() == tmp_path / "user" / "litebert"
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "chosen"))
    assert cache_directory() == tmp_path / "chosen"


def test_the_temporary_cache_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # root, too, cannot make a folder below a file
    monkeypatch.delenv("LITEBERT_CACHE", raising=False)
    private = cache_directory()
    assert private == tmp_path / f"litebert-{os.getuid()}"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    private.chmod(0o777)  # somebody else could have put machine code there
    assert cache_directory() == tmp_path / "file" / "litebert"


def test_machine_code_is_cached_in_the_cache_folder_even_if_the_package_can_be_written(tmp_path: Path) -> None:
    code = "from litebert.batches.random_kernels import draw_unit; print(draw_unit._cache.cache_path)"
    environment = {**os.environ, "LITEBERT_CACHE": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{tmp_path}/machine-code-")


def test_machine_code_is_cached_in_numbas_folder_if_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "machine-code-" in draw_unit._cache.cache_path  # type: ignore[attr-defined]
    choose_cache(tmp_path, monkeypatch)
    assert compiled(double)._cache.cache_path.startswith(str(tmp_path))  # type: ignore[attr-defined]
    assert str(tmp_path) == numba.config.CACHE_DIR


def test_the_cache_is_another_when_any_source_changes(tmp_path: Path) -> None:
    files = [tmp_path / "caller.py", tmp_path / "called.py"]
    for file in files:
        file.write_text("one")
    before = name_sources(files)
    assert name_sources(files) == before
    files[1].write_text("two")
    assert name_sources(files) != before


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_cached_machine_code_that_a_power_loss_emptied_is_compiled_again(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_cache(tmp_path, monkeypatch)
    assert compiled(double)(21) == 42
    (file,) = tmp_path.glob(f"*/*/*.{suffix}")
    file.write_bytes(b"")
    assert compiled(double)(21) == 42
    assert file.stat().st_size > 0, "the cache is in use again"


def test_a_full_disk_costs_the_cache_and_not_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose_cache(tmp_path, monkeypatch)
    fast = compiled(double)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fast._cache._cache_file, "save", refuse)  # type: ignore[attr-defined]
    assert fast(21) == 42
