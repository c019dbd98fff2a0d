"""The parts of a model card that have to travel with the model: its text and its licence."""

from pathlib import Path

from litebert.interop.own_files import checked_file

CARD = "README.md"
LICENCE_PATTERNS = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
_MAX_BYTES = 1 << 20  # a longer file is not a licence
_MAX_LINES = 60  # the front matter is at the top


def read_licence(folder: Path) -> str | None:
    """The licence stated by the model card, else a pointer to a licence file; None if there is neither."""
    if (folder / CARD).is_file():
        for line in checked_file(folder, CARD).read_text("utf-8", errors="replace").splitlines()[:_MAX_LINES]:
            if line.startswith("license:"):
                return line.partition(":")[2].strip() or None
    names = list_licence_files(folder)
    return f"see {names[0]}" if names else None


def list_licence_files(folder: Path) -> list[str]:
    """The names of the licence and notice files, which must accompany the weights."""
    found = {file.name for pattern in LICENCE_PATTERNS for file in folder.glob(pattern) if file.is_file()}
    return sorted(name for name in found if (folder / name).stat().st_size <= _MAX_BYTES)


def read_licence_files(folder: Path) -> dict[str, bytes]:
    """The content of the licence and notice files, by name."""
    return {name: checked_file(folder, name).read_bytes() for name in list_licence_files(folder)}


def read_card(folder: Path) -> str:
    """The model card as written; empty if there is none."""
    return checked_file(folder, CARD).read_text("utf-8", errors="replace") if (folder / CARD).is_file() else ""
