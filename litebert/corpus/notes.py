"""Bad or omitted input: always counted, and either reported with file and line, or fatal."""

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
        """Raise for a bad place, or count it and continue without it."""
        if self.on_error == "fail":
            raise DataError("bad-text", f"{problem}; fix it, or skip bad text", option="on_error")
        self.counts[problem.kind] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(str(problem))

    def count(self, kind: str, number: int = 1) -> None:
        """Count text that is left out by rule (headings, licences), which is not an error."""
        if number:
            self.counts[kind] += number
