"""The options for reading a user's data, and the search for its splits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from litebert.core.errors import ConfigError, DataError
from litebert.core.ranges import PositiveFloat, PositiveInt, Range, check_values
from litebert.model.config import Pooling
from litebert.tasks.files.columnar import find_columnar, is_columnar
from litebert.tasks.files.misplaced import OnError
from litebert.tasks.files.tables import SUFFIXES

ScoreLoss = Literal["cosent", "cosine"]
# the possible names of a split's file in a folder
SPLITS = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True)
class TableOptions:
    """How to read the user's data; options that are not set are guessed, and the guess is shown."""

    dev: Path | None = None  # other splits, if the data is a training file instead of a folder
    test: Path | None = None
    text: str | None = None  # the columns
    text_b: str | None = None
    label: str | None = None
    encoding: str = "utf-8"
    dev_share: float = 0.1  # share of the training rows to hold out if there is no dev file
    labels: tuple[str, ...] = ()  # the labels of a finished model; empty: those of the training rows
    is_learned: bool = True  # False: data for a finished model, which has its own labels and scale
    is_balanced: bool | None = None  # weight labels equally in the loss; None: if macro-F1 selects the model
    group: str | None = None  # rows with the same value in this column are held out together
    metric: str | None = None  # the score that selects the model; None: the task's default
    positive: str | None = None  # the positive label of F1
    on_error: OnError = "fail"  # what to do about answers and entity spans with wrong offsets
    choices: str | None = None  # the field of all choices, or one field per choice, comma-separated
    max_labels: int = 500  # a column with more distinct values is probably not a label
    has_header: bool | None = None  # whether tables begin with column names; None: unless columns are named by number

    def __post_init__(self) -> None:
        if not 0 <= self.dev_share < 1:
            raise ConfigError(
                "out-of-range", f"dev_share must be at least 0 and below 1, got {self.dev_share}", option="dev_share"
            )


@dataclass(frozen=True, kw_only=True)
class PassageOptions:
    """Lengths in tokens for SQuAD's tasks and for multiple choice; the defaults are the official values."""

    max_question_length: PositiveInt = 64  # SQuAD: longer questions are truncated at the end
    stride: PositiveInt = 128  # SQuAD: between the starts of consecutive windows
    max_answer_length: PositiveInt = 30  # SQuAD
    num_best: PositiveInt = 20  # SQuAD: answers listed, and starts and ends that the simple head considers
    max_choice_length: PositiveInt = 128  # multiple choice: question and choice together, truncated at the beginning

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True)
class ExitOptions:
    """Early exits: whether a classifier or a regression also learns to answer before its last layer."""

    enabled: bool = False


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions:
    """How the task `embedding` makes vectors, and how it compares them while it learns."""

    pooling: Pooling | None = None  # mean, cls or max; None: as the model states, else mean
    normalize: bool | None = None  # to unit length; None: as the model states, else yes
    sizes: Annotated[tuple[int, ...], Range(2)] = ()  # Matryoshka: also train the first so many numbers of each vector
    temperature: PositiveFloat = 0.05  # divides cosines; lower values look at the closest negatives only
    score_loss: ScoreLoss = "cosent"  # of pairs with a score: their order (cosent), or the score itself (cosine)

    def __post_init__(self) -> None:
        check_values(self)


def find_files(
    path: Path, options: TableOptions, find: Callable[[Path, str], Path | None], *, usual: str
) -> dict[str, Path]:
    """The file of each split: for a folder the files that `find` finds, else `path` as the training file.

    Files named by the user take precedence. With dev_share = 0 the data is only scored: no training file is needed.
    """
    is_folder = path.is_dir() and not is_columnar(path)
    found = {split: find(path, split) for split in SPLITS} if is_folder else {"train": path}
    found |= {split: file for split, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    files = {split: file for split, file in found.items() if file is not None}
    if not files or ("train" not in files and options.dev_share):
        raise DataError("missing-file", f"{path}: no training file found (such as {usual}); name the file itself")
    return files


def find_split(
    folder: Path,
    split: str,
    suffixes: tuple[str, ...] = SUFFIXES,
    stems: Mapping[str, tuple[str, ...]] = SPLITS,
) -> Path | None:
    """The file of a split in a folder, or its folder or first shard as written by `datasets`; None if there is none.

    Raises if several files match.
    """
    names = stems[split]
    found = [path for stem in names for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    found += [path for stem in names if ".parquet" in suffixes for path in find_columnar(folder, stem)]
    if len(found) > 1:
        raise DataError(
            "ambiguous-files",
            f"{folder}: several {split} files ({', '.join(path.name for path in found)}); name the one to use",
        )
    return found[0] if found else None
