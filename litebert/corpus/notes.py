"""What was wrong or left out while reading: always counted, and reported with file and line or fatal, as chosen."""

from collections import Counter
from typing import Literal, NamedTuple

from litebert.core.errors import DataError

OnError = Literal["fail", "skip"]
MAX_EXAMPLES = 100


class Problem(NamedTuple):
    """A bad place in the input."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Notes:
    """What a reader reports in addition to its documents."""

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []

    def report(self, problem: Problem) -> None:
        """A bad place: stop here, or count it and continue without it."""
        if self.on_error == "fail":
            raise DataError("bad-text", f"{problem}; fix it, or skip bad text", option="on_error")
        self.counts[problem.kind] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(str(problem))

    def count(self, kind: str, number: int = 1) -> None:
        """Something left out by rule (a heading, a licence): not an error, but not silent either."""
        if number:
            self.counts[kind] += number
