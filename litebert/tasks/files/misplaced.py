"""Handles answers and entity spans with wrong offsets: raise, skip or fix, and count them."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from litebert.core.errors import ConfigError, DataError

OnError = Literal["fail", "skip", "fix"]


@dataclass
class Misplaced:
    """The wrong offsets found so far in one file."""

    on_error: OnError = "fail"
    num_fixed: int = 0
    skipped: list[str] = field(default_factory=list)  # the message of each

    def __post_init__(self) -> None:
        if self.on_error not in get_args(OnError):
            raise ConfigError(
                "unknown-value",
                f"on_error = {self.on_error!r} must be one of {', '.join(get_args(OnError))}",
                option="on_error",
            )

    def skip(self, error: DataError) -> None:
        """Record a skipped example, or raise the error if errors are not to be skipped."""
        if self.on_error == "fail":
            raise error
        self.skipped.append(str(error))

    def fix(self) -> bool:
        """Whether to fix an error; if so, it is counted."""
        self.num_fixed += self.on_error == "fix"
        return self.on_error == "fix"

    def find_nearest(self, text: str, surface: str, start: int) -> int | None:
        """The occurrence of `surface` nearest to `start`; None if there is none or errors are not to be fixed."""
        places, place = [], text.find(surface) if self.on_error == "fix" and surface.strip() else -1
        while place >= 0:
            places.append(place)
            place = text.find(surface, place + 1)
        self.num_fixed += bool(places)
        return min(places, key=lambda one: abs(one - start), default=None)

    def tell(self, name: str) -> list[str]:
        """Notes for the user on what was fixed and skipped in the file of this name."""
        notes = [f"{name}: {self.num_fixed:,} wrong positions were fixed"] if self.num_fixed else []
        if self.skipped:
            notes.append(f"{name}: {len(self.skipped):,} were skipped; the first: {self.skipped[0]}")
        return notes
