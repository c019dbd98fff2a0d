"""The checkpoints of a run's folder: the newest whole one to go on from, and which of the others are kept."""

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.core.errors import ConfigError, DataError
from litebert.core.files import LOCK_FILE

CHECKPOINTS = "checkpoints"
RECIPE_FILE = "recipe.toml"


def check_is_ours(folder: Path) -> None:
    """Refuse to write a run among somebody's other files."""
    is_ours = any((folder / name).exists() for name in (LOCK_FILE, RECIPE_FILE))
    if folder.is_dir() and not is_ours and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty and no run; choose another --out")


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where a run keeps the checkpoint of a step."""
    return folder / CHECKPOINTS / f"step-{step:08d}"


def find_last_whole(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint of a run whose files are whole, None of a run that has none yet.

    Damaged ones that are newer are named and put aside. Where none is whole nothing is touched: what the run has come
    to may still be mended, from a backup say, and is not to be overwritten by one that begins again.
    """
    damaged: dict[Path, DataError] = {}
    for path in reversed(list_checkpoints(folder / CHECKPOINTS)):
        try:
            whole = load_checkpoint(path)
        except DataError as error:
            damaged[path] = error
            continue
        for other, reason in damaged.items():
            say(f"{reason}; it is put aside as {_put_aside(other).name}, and {whole.path.name} taken")
        return whole
    if damaged:
        raise DataError(
            f"no checkpoint in {folder / CHECKPOINTS} is whole ({'; '.join(map(str, damaged.values()))}): bring one "
            f"back, or move {folder} away to begin again"
        )
    return None


def _put_aside(path: Path) -> Path:
    names = (f"damaged-{path.name}{f'-{number}' if number > 1 else ''}" for number in count(1))
    aside = next(place for place in map(path.with_name, names) if not place.exists())
    return path.rename(aside)


def forget_old_checkpoints(
    folder: Path,
    records: Sequence[Mapping[str, Any]],
    *,
    keep_last: int,
    best_by: str = "valid_loss",
    branch_steps: Collection[int] = (),
) -> None:
    """Keep the last checkpoints, those that others go on from, and the best: of the lowest loss or highest score."""
    paths = list_checkpoints(folder / CHECKPOINTS)
    saved = [record for record in records if checkpoint_path(folder, record["step"]) in paths]
    kept = {checkpoint_path(folder, step) for step in (best_step(saved, best_by), *branch_steps)}
    for path in paths[:-keep_last]:
        if path not in kept:
            doomed = path.with_name(f".{path.name}.tmp")  # half a deleted checkpoint is a leftover, not a checkpoint
            path.rename(doomed)
            shutil.rmtree(doomed)


def best_step(records: Sequence[Mapping[str, Any]], key: str) -> int:
    """The first step with the best value of a metric: the lowest loss, or the highest of any other; 0 without one."""
    sign = 1 if key.endswith("loss") else -1
    return min(((sign * r[key], int(r["step"])) for r in records if key in r), default=(0.0, 0))[1]
