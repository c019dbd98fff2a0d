"""What a person may say about their data, and where its splits are found."""

from dataclasses import dataclass
from pathlib import Path

from litebert.core.errors import DataError
from litebert.tasks.tables import SUFFIXES

# the names under which a split's file is looked for in a folder
SPLITS = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True)
class ReadOptions:
    """How --data is to be read; what is not said is guessed, and the guess is shown."""

    dev: Path | None = None  # files beside --data, where it is the training file and not a folder
    test: Path | None = None
    text: str | None = None  # the columns
    text_b: str | None = None
    label: str | None = None
    encoding: str = "utf-8"
    dev_share: float = 0.1  # of the training rows held out, where there is no dev file
    labels: tuple[str, ...] = ()  # those that a model knows already; empty: whatever the training rows have
    is_balanced: bool = False  # weigh every label alike in the loss, however rare


def find_split(folder: Path, split: str, suffixes: tuple[str, ...] = SUFFIXES) -> Path | None:
    """The file of a split in a folder; None where there is none, and two that could be meant are refused."""
    found = [path for stem in SPLITS[split] for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: which is the {split} file, {' or '.join(path.name for path in found)}? Name it")
    return found[0] if found else None
