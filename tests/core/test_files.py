"""A file or directory is complete or not there."""

import json
from pathlib import Path

import pytest

from litebert.core.files import atomic_directory, atomic_path, hash_file, write_json


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


def test_json_is_written_for_people_and_hashed_by_content(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"中": 1})
    write_json(tmp_path / "b.json", {"中": 1})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"中": 1}
    assert "中" in (tmp_path / "a.json").read_text("utf-8")
    assert hash_file(tmp_path / "a.json") == hash_file(tmp_path / "b.json")
