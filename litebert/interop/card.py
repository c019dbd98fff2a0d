"""What a model card says that has to travel with the model."""

from pathlib import Path

from litebert.interop.own_files import checked_file

CARD = "README.md"
LICENCE_PATTERNS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
_MAX_BYTES = 1 << 20  # a longer file is no licence
_MAX_LINES = 60  # the front matter is at the top


def read_licence(folder: Path) -> str | None:
    """The licence that a folder's card states, or that lies beside it; None where none is."""
    if (folder / CARD).is_file():
        for line in checked_file(folder, CARD).read_text("utf-8", errors="replace").splitlines()[:_MAX_LINES]:
            if line.startswith("license:"):
                return line.partition(":")[2].strip() or None
    names = list_licence_files(folder)
    return f"see {names[0]}" if names else None


def list_licence_files(folder: Path) -> list[str]:
    """The names of the files that have to go wherever the weights go."""
    found = {file.name for pattern in LICENCE_PATTERNS for file in folder.glob(pattern) if file.is_file()}
    return sorted(name for name in found if (folder / name).stat().st_size <= _MAX_BYTES)


def read_licence_files(folder: Path) -> dict[str, bytes]:
    """These files by name."""
    return {name: checked_file(folder, name).read_bytes() for name in list_licence_files(folder)}


def read_card(folder: Path) -> str:
    """The model's card as it was written; empty where there is none."""
    return checked_file(folder, CARD).read_text("utf-8", errors="replace") if (folder / CARD).is_file() else ""
