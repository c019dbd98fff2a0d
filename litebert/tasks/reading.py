"""What a person may say about their data, and where its splits are found."""

from dataclasses import asdict, dataclass
from pathlib import Path

from litebert.core.errors import ConfigError, DataError
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


@dataclass(frozen=True, kw_only=True)
class PassageOptions:
    """Lengths, in tokens, of questions about a text: read by SQuAD's tasks and by multiple choice; official values."""

    max_question_length: int = 64  # SQuAD: a longer question loses its end
    stride: int = 128  # SQuAD: from the beginning of a window to that of the next
    max_answer_length: int = 30  # SQuAD
    num_best: int = 20  # SQuAD: answers that are listed, and starts and ends that the simple head looks at
    max_choice_length: int = 128  # multiple choice: of question and choice together the last ones are kept

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            if value < 1:
                raise ConfigError(f"passage.{key} = {value} must be at least 1")


@dataclass(frozen=True, kw_only=True)
class ExitOptions:
    """Whether a classifier or a regression learns to answer before its last layer."""

    enabled: bool = False


def find_split(folder: Path, split: str, suffixes: tuple[str, ...] = SUFFIXES) -> Path | None:
    """The file of a split in a folder; None where there is none, and two that could be meant are refused."""
    found = [path for stem in SPLITS[split] for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: which is the {split} file, {' or '.join(path.name for path in found)}? Name it")
    return found[0] if found else None
