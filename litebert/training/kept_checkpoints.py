"""The checkpoints in a run's folder: the newest complete one to resume from, and which of the others are kept."""

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.core.files import LOCK_FILE, sync

CHECKPOINTS = "checkpoints"
RECIPE_FILE = "recipe.toml"


def check_is_ours(folder: Path) -> None:
    """Raise if a folder has files of something else than a run."""
    is_ours = any((folder / name).exists() for name in (LOCK_FILE, RECIPE_FILE))
    if folder.is_dir() and not is_ours and any(folder.iterdir()):
        raise ConfigError("folder-not-empty", f"{folder} is not empty and is not a run folder; choose another folder")


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where a run keeps the checkpoint of a step."""
    return folder / CHECKPOINTS / f"step-{step:08d}"


def find_last_checkpoint(folder: Path) -> tuple[Checkpoint | None, dict[Path, DataError]]:
    """The newest complete checkpoint of a run (None: it has none yet), and the corrupt ones that are newer.

    If all of them are corrupt, this raises: they may still be restored from a backup, and a run that begins again would
    overwrite them.
    """
    damaged: dict[Path, DataError] = {}
    for path in reversed(list_checkpoints(folder / CHECKPOINTS)):
        try:
            return load_checkpoint(path), damaged
        except DataError as error:
            damaged[path] = error
    if damaged:
        raise DataError(
            "no-complete-checkpoint",
            f"all checkpoints in {folder / CHECKPOINTS} are corrupt ({'; '.join(map(str, damaged.values()))}): restore "
            f"one, or move {folder} away to start over",
        )
    return None, {}


def rename_damaged(path: Path) -> Path:
    """Rename a corrupt checkpoint to `damaged-...`, so that its step can be saved again; returns the new path."""
    names = (f"damaged-{path.name}{f'-{number}' if number > 1 else ''}" for number in count(1))
    return path.rename(next(free for free in map(path.with_name, names) if not free.exists()))


def delete_old_checkpoints(
    folder: Path,
    records: Sequence[Mapping[str, Any]],
    *,
    keep_last: int,
    best_by: str = "valid_loss",
    branch_steps: Collection[int] = (),
    is_scheduled: Callable[[int], bool] = lambda _: True,
) -> None:
    """Keep the last checkpoints, those that other runs start from, and the best: lowest loss or highest score.

    A checkpoint that is not scheduled was saved because the run was stopped. It is kept in addition to the others until
    there is a later one, so that a resumed run ends with the same checkpoints as an uninterrupted one.
    """
    paths = list_checkpoints(folder / CHECKPOINTS)
    scheduled = [path for path in paths if is_scheduled(int(path.name.removeprefix("step-")))]
    last = {*scheduled[-keep_last:], *paths[-1:]}
    saved = [record for record in records if checkpoint_path(folder, record["step"]) in paths]
    kept = {checkpoint_path(folder, step) for step in (best_step(saved, best_by), *branch_steps)}
    deleted = [path for path in paths if path not in last | kept]
    for path in deleted:
        temporary = path.with_name(f".{path.name}.tmp")  # if deleting is interrupted, this is not a checkpoint
        path.rename(temporary)
        shutil.rmtree(temporary)
    if deleted:  # a power loss must not bring them back after the report of the run was written
        sync(folder / CHECKPOINTS)


def best_step(records: Sequence[Mapping[str, Any]], key: str) -> int:
    """The first step with the best value of a metric: the lowest loss, or the highest of any other; 0 without one."""
    sign = 1 if key.endswith("loss") else -1
    return min(((sign * r[key], int(r["step"])) for r in records if key in r), default=(0.0, 0))[1]
