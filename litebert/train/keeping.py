"""The checkpoints of a run's folder: the newest whole one to go on from, and which of the others are kept."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.checkpoint import Checkpoint, list_checkpoints, load_checkpoint
from litebert.core.errors import DataError

CHECKPOINTS = "checkpoints"


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where a run keeps the checkpoint of a step."""
    return folder / CHECKPOINTS / f"step-{step:08d}"


def find_last_whole(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint of a run whose files are whole; damaged ones are named and put aside."""
    for path in reversed(list_checkpoints(folder / CHECKPOINTS)):
        try:
            return load_checkpoint(path)
        except DataError as error:
            aside = path.with_name(f"damaged-{path.name}")
            path.rename(aside)
            say(f"{error}; it is put aside as {aside.name}, and the checkpoint before it taken")
    return None


def forget_old_checkpoints(folder: Path, records: Sequence[Mapping[str, Any]], *, keep_last: int) -> None:
    """Keep the last checkpoints and the one with the lowest held-out loss in the run's records."""
    paths = list_checkpoints(folder / CHECKPOINTS)
    losses = {checkpoint_path(folder, r["step"]): r["valid_loss"] for r in records if "valid_loss" in r}
    best = min((path for path in paths if path in losses), key=lambda path: losses[path], default=None)
    for path in paths[:-keep_last]:
        if path != best:
            doomed = path.with_name(f".{path.name}.tmp")  # half a deleted checkpoint is a leftover, not a checkpoint
            path.rename(doomed)
            shutil.rmtree(doomed)
