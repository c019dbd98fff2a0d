"""A file or directory is complete or does not exist."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.core.errors import BusyError, ConfigError, DataError
from litebert.core.files import (
    LOCK_FILE,
    atomic_directory,
    atomic_path,
    exclusive_lock,
    hash_file,
    read_json,
    remove_leftovers,
    write_json,
)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    with atomic_path(target) as temporary:
        temporary.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(target) as temporary:
        temporary.write_text("new")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_directory_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "out") as temporary:
        (temporary / "part").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_finished_directory_is_there_and_readable_by_others(tmp_path: Path) -> None:
    with atomic_directory(tmp_path / "out") as temporary:
        (temporary / "part").write_text("x")
    assert (tmp_path / "out" / "part").read_text() == "x"
    assert (tmp_path / "out").stat().st_mode & 0o777 != 0o700


def test_an_existing_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(OSError, match="not empty"), atomic_directory(tmp_path / "out") as temporary:
        (temporary / "part").write_text("y")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "precious"]


def write_version(path: Path, text: str) -> None:
    with atomic_directory(path, replaces=True) as temporary:
        (temporary / "part").write_text(text)


def test_a_directory_is_replaced_on_request(tmp_path: Path) -> None:
    for text in ("old", "new"):
        write_version(tmp_path / "out", text)
    assert (tmp_path / "out" / "part").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_replacing_a_link_leaves_what_it_pointed_to(tmp_path: Path) -> None:
    write_version(tmp_path / "target", "old")
    (tmp_path / "out").symlink_to(tmp_path / "target")
    write_version(tmp_path / "out", "new")
    assert (tmp_path / "out" / "part").read_text() == "new"
    assert (tmp_path / "target" / "part").read_text() == "old"


@pytest.mark.parametrize("step", range(4))
def test_a_kill_while_replacing_leaves_a_complete_directory_and_removable_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    write_version(tmp_path / "out", "old")
    steps = iter(range(9))

    def dies_first(action: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *words, **options: os._exit(9) if next(steps) == step else action(*words, **options)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(Path, "rename", dies_first(Path.rename))
        monkeypatch.setattr(shutil, "rmtree", dies_first(shutil.rmtree))
        write_version(tmp_path / "out", "new")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert {path.read_text() for path in tmp_path.glob("*/part")} & {"old", "new"}
    remove_leftovers(tmp_path)
    (left,) = tmp_path.iterdir()
    assert (left / "part").read_text() in ("old", "new")
    assert left.name == "out" or (left.name.startswith(".out.") and left.suffix == ".old"), "else the only whole one"


def test_a_replacement_that_fails_leaves_the_old_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_version(tmp_path / "out", "old")
    rename = Path.rename

    def refuses_the_new(path: Path, target: Path) -> Path:
        if path.suffix == ".tmp":
            raise PermissionError
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuses_the_new)
    with pytest.raises(PermissionError):
        write_version(tmp_path / "out", "new")
    assert [path.read_text() for path in tmp_path.glob("*/part")] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_json_is_written_for_people_and_hashed_by_content(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"中": 1})
    write_json(tmp_path / "b.json", {"中": 1})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"中": 1}
    assert "中" in (tmp_path / "a.json").read_text("utf-8")
    assert hash_file(tmp_path / "a.json") == hash_file(tmp_path / "b.json")


def test_json_that_cannot_be_read_does_not_count_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with refuses(DataError, "bad-json"):
        read_json(tmp_path / "a.json")
    with pytest.raises(IsADirectoryError):  # one of the system's errors that a test can cause
        read_json(tmp_path)


def test_a_folder_made_for_a_lock_goes_with_an_error_unless_something_was_written(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive_lock(tmp_path / "a", purpose="testing"):
        raise ZeroDivisionError
    assert not (tmp_path / "a").exists()
    with pytest.raises(ZeroDivisionError), exclusive_lock(tmp_path / "b", purpose="testing"):
        (tmp_path / "b" / "result").touch()
        raise ZeroDivisionError
    assert (tmp_path / "b" / "result").exists()
    (tmp_path / "c").mkdir()
    with pytest.raises(ZeroDivisionError), exclusive_lock(tmp_path / "c", purpose="testing"):
        raise ZeroDivisionError
    assert (tmp_path / "c").exists()


def test_of_two_processes_that_saw_no_folder_the_refused_one_leaves_the_others_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, flock = tmp_path / "a", fcntl.flock
    first = ExitStack()

    def lock_after_another(handle: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        first.enter_context(exclusive_lock(folder, purpose="testing"))
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", lock_after_another)
    with pytest.raises(BusyError), exclusive_lock(folder, purpose="testing"):
        pass
    with first:
        assert (folder / LOCK_FILE).exists()


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    reason = r"cannot be locked \(No locks available\).*another file system"
    with pytest.raises(ConfigError, match=reason), exclusive_lock(tmp_path / "a", purpose="testing"):
        pass


def test_the_next_write_removes_what_a_killed_one_left_and_spares_one_that_is_being_written(tmp_path: Path) -> None:
    (tmp_path / ".out.dead.tmp").mkdir()
    (tmp_path / ".out.dead.tmp" / "weights").write_text("half")
    (tmp_path / ".file.dead.tmp").write_text("half")
    with atomic_directory(tmp_path / "out") as first:
        with atomic_directory(tmp_path / "out") as second:
            assert first.exists()
            (second / "weights").touch()
        shutil.rmtree(tmp_path / "out")
    with atomic_path(tmp_path / "file") as temporary:
        temporary.write_text("all")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_the_directory_that_was_being_replaced_is_kept_until_there_is_another(tmp_path: Path) -> None:
    (tmp_path / ".out.dead.old").mkdir()
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "out"):
        raise RuntimeError
    assert (tmp_path / ".out.dead.old").exists()
    for _ in range(2):
        with atomic_directory(tmp_path / "out", replaces=True):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_error_of_writing_names_the_file_and_not_its_temporary_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught, atomic_directory(tmp_path / "out") as temporary:
        (temporary / "missing" / "weights").touch()
    assert caught.value.filename == str(tmp_path / "out" / "missing" / "weights")
    with pytest.raises(OSError, match="No space left") as caught, atomic_path(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "file")
