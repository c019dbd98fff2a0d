"""What a model card says that has to travel with the model."""

from pathlib import Path

from litebert.interop.own_files import checked_file

CARD = "README.md"
LICENCE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md")
_MAX_LINES = 60  # the front matter is at the top


def read_licence(folder: Path) -> str | None:
    """The licence that a folder's card states, or that lies beside it; None where none is."""
    if (folder / CARD).is_file():
        for line in checked_file(folder, CARD).read_text("utf-8", errors="replace").splitlines()[:_MAX_LINES]:
            if line.startswith("license:"):
                return line.partition(":")[2].strip() or None
    for name in LICENCE_FILES:
        if (folder / name).is_file():
            return f"see {name}"
    return None
