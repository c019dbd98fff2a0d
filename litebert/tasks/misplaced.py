"""Answers and names that are not where a file says: whether to fail, to skip them or to fix them, and how many."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from litebert.core.errors import ConfigError, DataError

OnError = Literal["fail", "skip", "fix"]


@dataclass
class Misplaced:
    """What was found wrong in one file so far."""

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
        """Note that an example is left out; where nothing may be wrong, raise the error."""
        if self.on_error == "fail":
            raise error
        self.skipped.append(str(error))

    def fix(self) -> bool:
        """Whether something wrong is to be fixed, which is then counted."""
        self.num_fixed += self.on_error == "fix"
        return self.on_error == "fix"

    def find_nearest(self, text: str, surface: str, start: int) -> int | None:
        """The place of `surface` that is nearest to where it was said to be; None if it is not to be looked for."""
        places, place = [], text.find(surface) if self.on_error == "fix" and surface.strip() else -1
        while place >= 0:
            places.append(place)
            place = text.find(surface, place + 1)
        self.num_fixed += bool(places)
        return min(places, key=lambda one: abs(one - start), default=None)

    def tell(self, name: str) -> list[str]:
        """What was done in the file of this name, for a person to see."""
        notes = [f"{name}: {self.num_fixed:,} wrong positions were fixed"] if self.num_fixed else []
        if self.skipped:
            notes.append(f"{name}: {len(self.skipped):,} were skipped; the first: {self.skipped[0]}")
        return notes
