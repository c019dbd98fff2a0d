"""The model of a power loss: it finds what was not synced, and our own writes survive it."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from litebert.core.files import atomic_directory, atomic_path
from litebert.training.kept_checkpoints import checkpoint_path, delete_old_checkpoints
from tests.torture.faults import watch
from tests.torture.power import WAYS, Recording, build_loss, replay, write_journal


def write_without_syncing(folder: Path) -> None:
    (folder / "file.tmp").write_bytes(b"new")
    (folder / "file.tmp").replace(folder / "file")


def write_without_syncing_the_directory(folder: Path) -> None:
    with (folder / "file.tmp").open("wb") as file:
        file.write(b"new")
        file.flush()
        os.fsync(file.fileno())
    (folder / "file.tmp").replace(folder / "file")


def write_ours(folder: Path) -> None:
    with atomic_path(folder / "file") as temporary:
        temporary.write_bytes(b"new")


def write_our_directory(folder: Path) -> None:
    for content in (b"old", b"new"):
        with atomic_directory(folder / "directory", replaces=True) as temporary:
            (temporary / "inside").mkdir()
            (temporary / "inside" / "file").write_bytes(content)


def forget(folder: Path) -> None:
    for step in (1, 2):
        with atomic_directory(checkpoint_path(folder, step)) as temporary:
            (temporary / "model").write_bytes(b"weights")
    delete_old_checkpoints(folder, [], keep_last=1)


def record(write: Callable[[Path], None], place: Path) -> Recording:
    folder, journal = place / "recorded", place / "journal"
    folder.mkdir()
    process = os.fork()
    if process == 0:  # what is watched stays watched to the end of a process
        watch(folder, write_journal(journal, folder))
        write(folder)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    write_journal(journal, folder)("the end", ())
    return replay(journal, folder)


def list_losses(recording: Recording, place: Path, name: str) -> list[set[bytes | None]]:
    """For each moment, what a file may hold after a power loss; None: it is not there."""
    found = []
    for number, moment in enumerate(recording.moments):
        outcomes: set[bytes | None] = set()
        for attempt in range(30):
            folder = place / f"{number}-{attempt}"
            build_loss(recording, moment, WAYS[attempt % len(WAYS)], Random(attempt), folder)
            outcomes.add((folder / name).read_bytes() if (folder / name).is_file() else None)
        found.append(outcomes)
    return found


def test_a_file_that_was_not_synced_may_be_empty_after_its_name_has_arrived(tmp_path: Path) -> None:
    losses = list_losses(record(write_without_syncing, tmp_path), tmp_path, "file")
    assert {None, b"", b"new"} <= set.union(*losses)


def test_a_name_whose_directory_was_not_synced_may_be_gone(tmp_path: Path) -> None:
    losses = list_losses(record(write_without_syncing_the_directory, tmp_path), tmp_path, "file")
    assert losses[-1] == {None, b"new"}


def test_our_files_are_complete_or_absent_and_stay_once_written(tmp_path: Path) -> None:
    losses = list_losses(record(write_ours, tmp_path), tmp_path, "file")
    assert set.union(*losses) == {None, b"new"}
    assert losses[-1] == {b"new"}


@pytest.mark.parametrize("name", ["directory/inside/file"])
def test_a_directory_that_is_replaced_holds_the_old_or_the_new_files(name: str, tmp_path: Path) -> None:
    losses = list_losses(record(write_our_directory, tmp_path), tmp_path, name)
    assert set.union(*losses) == {None, b"old", b"new"}
    assert losses[-1] == {b"new"}


def test_a_checkpoint_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    losses = list_losses(record(forget, tmp_path), tmp_path, "checkpoints/step-00000001/model")
    assert losses[-1] == {None}
