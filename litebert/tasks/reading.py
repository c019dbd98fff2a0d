"""The options for reading a user's data, and where its splits are found."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from litebert.core.errors import ConfigError, DataError
from litebert.core.ranges import PositiveInt, check_values
from litebert.tasks.columnar import find_columnar, is_columnar
from litebert.tasks.misplaced import OnError
from litebert.tasks.tables import SUFFIXES

# the names under which a split's file is looked for in a folder
SPLITS = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}


@dataclass(frozen=True)
class TableOptions:
    """How to read the user's data; options left out are guessed, and the guess is shown."""

    dev: Path | None = None  # other splits, if the data is a training file and not a folder
    test: Path | None = None
    text: str | None = None  # the columns
    text_b: str | None = None
    label: str | None = None
    encoding: str = "utf-8"
    dev_share: float = 0.1  # of the training rows held out, where there is no dev file
    labels: tuple[str, ...] = ()  # the labels of a finished model; empty: those of the training rows
    is_learned: bool = True  # False: for a finished model, which has its own labels and scale
    is_balanced: bool | None = None  # every label weighs alike in the loss, however rare; None: if macro-F1 chooses
    group: str | None = None  # the column whose equal values are held out together
    metric: str | None = None  # the score that chooses the model; None: the task's usual one
    positive: str | None = None  # the label that F1 is of
    on_error: OnError = "fail"  # what to do about answers and entity spans with wrong offsets
    choices: str | None = None  # the field of the choices, or the fields of each with commas between them
    max_labels: int = 500  # more different ones are usually not labels
    has_header: bool | None = None  # whether tables begin with column names; None: unless columns are named by number

    def __post_init__(self) -> None:
        if not 0 <= self.dev_share < 1:
            raise ConfigError(
                "out-of-range", f"dev_share must be at least 0 and below 1, got {self.dev_share}", option="dev_share"
            )


@dataclass(frozen=True, kw_only=True)
class PassageOptions:
    """Lengths, in tokens, of questions about a text: read by SQuAD's tasks and by multiple choice; official values."""

    max_question_length: PositiveInt = 64  # SQuAD: a longer question loses its end
    stride: PositiveInt = 128  # SQuAD: from the beginning of a window to that of the next
    max_answer_length: PositiveInt = 30  # SQuAD
    num_best: PositiveInt = 20  # SQuAD: answers that are listed, and starts and ends that the simple head looks at
    max_choice_length: PositiveInt = 128  # multiple choice: of question and choice together the last ones are kept

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True)
class ExitOptions:
    """Whether a classifier or a regression learns to answer before its last layer."""

    enabled: bool = False


def find_files(
    path: Path, options: TableOptions, find: Callable[[Path, str], Path | None], *, usual: str
) -> dict[str, Path]:
    """The file of each split: of a folder what `find` finds there, else `path` itself for training.

    Files named by the user take precedence. With dev_share = 0 the data is read for scoring and needs no training file.
    """
    is_folder = path.is_dir() and not is_columnar(path)
    found = {split: find(path, split) for split in SPLITS} if is_folder else {"train": path}
    found |= {split: file for split, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    files = {split: file for split, file in found.items() if file is not None}
    if not files or ("train" not in files and options.dev_share):
        raise DataError("missing-file", f"{path}: no training file found (such as {usual}); name the file itself")
    return files


def find_split(folder: Path, split: str, suffixes: tuple[str, ...] = SUFFIXES) -> Path | None:
    """The file of a split in a folder, or the folder or first shard in which `datasets` keeps it; None without one.

    Raises if several files match.
    """
    stems = SPLITS[split]
    found = [path for stem in stems for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    found += [path for stem in stems if ".parquet" in suffixes for path in find_columnar(folder, stem)]
    if len(found) > 1:
        raise DataError(
            "ambiguous-files",
            f"{folder}: several {split} files ({', '.join(path.name for path in found)}); name the one to use",
        )
    return found[0] if found else None
