"""How one file of a format is read, which the campaign's tables of readers list."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reader:
    """How one file of a folder is read; what `read` gives is compared by equality."""

    name: str
    folder: str
    file: str
    read: Callable[[Path], object]
    is_hashed: bool = False  # no mutant may be read as something else
    share: float = 1.0  # of the mutants; what reads slowly gets fewer

    def is_named(self, message: str, folder: Path) -> bool:
        """Whether a refusal says where the fault is: the file, its folder, or the key of a recipe that was named."""
        return self.folder == "recipes" or Path(self.file).name in message or str(folder) in message
