"""Records the texts that a run was trained on, and those that selected its model, as hashes in the run's folder.

They recognize a file wherever it is, so that scores on training texts are not mistaken for
scores on new ones.
"""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from litebert.core.sealed import build_record, read_sealed, write_sealed
from litebert.tasks.ensemble import is_ensemble, list_members
from litebert.tasks.files.splitting import text_of
from litebert.tasks.finetuning import Dataset

SEEN_FILE = "data.json"
_HASH_SIZE = 8  # base64 characters, or six bytes: collisions are unlikely among a million texts
_FIX = "restore it, or delete it to evaluate without knowing the training texts"

AnyExample = TypeVar("AnyExample")


@dataclass(frozen=True)
class SeenTexts:
    """The hashes of the texts that a model was trained on, and of those that selected it."""

    trained: frozenset[str]
    dev: frozenset[str]

    def is_trained(self, example: Any) -> bool:
        return hash_text(example) in self.trained

    def split(self, examples: Sequence[AnyExample]) -> tuple[list[AnyExample], list[AnyExample]] | None:
        """(trained, held out) if the examples include the run's whole training file; otherwise None."""
        hashes = [hash_text(example) for example in examples]
        held = self.dev - self.trained
        if not held or not set(hashes) >= self.trained | held:
            return None
        both = list(zip(examples, hashes, strict=True))
        return [e for e, one in both if one in self.trained], [e for e, one in both if one not in self.trained]


@dataclass(frozen=True)
class _Hashes:
    """The file format: the concatenated hashes of each split's distinct texts."""

    train: str
    dev: str


def hash_text(example: Any) -> str:
    """A short hash of everything that a model reads of an example."""
    digest = hashlib.sha256(text_of(example).encode("utf-8", "surrogatepass")).digest()
    return b64encode(digest).decode()[:_HASH_SIZE]


def write_seen_texts(folder: Path, dataset: Dataset) -> None:
    """Record in a run's folder which texts its model was trained on and selected by."""
    dev = [example for examples in dataset.dev.values() for example in examples]
    splits = {"train": dataset.train, "dev": dev}
    hashes = {name: "".join(sorted(set(map(hash_text, rows)))) for name, rows in splits.items()}
    write_sealed(folder / SEEN_FILE, hashes)


def find_seen_texts(checkpoint: Path) -> SeenTexts | None:
    """The texts that a checkpoint's run was trained on; None if they were not recorded.

    An ensemble was trained on the texts of any member, and selected by the texts that selected all of them.
    """
    if is_ensemble(checkpoint):
        members = [find_seen_texts(member) for member in list_members(checkpoint)]
        known = [member for member in members if member is not None]
        if not known or len(known) < len(members):
            return None
        trained = frozenset().union(*(member.trained for member in known))
        return SeenTexts(trained, known[0].dev.intersection(*(member.dev for member in known)) - trained)
    places = [folder / SEEN_FILE for folder in (checkpoint, *checkpoint.resolve().parents[:2])]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return None
    hashes = build_record(_Hashes, read_sealed(file, fix=_FIX), where=str(file), fix=_FIX)
    return SeenTexts(_cut(hashes.train), _cut(hashes.dev))


def _cut(text: str) -> frozenset[str]:
    return frozenset(text[start : start + _HASH_SIZE] for start in range(0, len(text), _HASH_SIZE))
