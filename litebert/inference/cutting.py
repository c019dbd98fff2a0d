"""Report how many texts were truncated because they are longer than the model reads, and by how much."""

from collections.abc import Callable, Sequence

from litebert.core.errors import TextsCutWarning, warn
from litebert.tasks.groups import Group

ReportCut = Callable[[Sequence[int]], object]  # called with the number of dropped tokens of each text


def describe_cut(num_cut: Sequence[int], max_length: int) -> str:
    """A sentence about truncated texts, or "" if there are none. `num_cut`: the dropped tokens of each text."""
    cut = [count for count in num_cut if count]
    if not cut:
        return ""
    texts = f"{len(cut):,} of {len(num_cut):,} texts were truncated"
    return f"{texts} to the model's {max_length:,} tokens (special tokens included); {sum(cut):,} tokens were dropped"


def tell_cut(groups: Sequence[Group], max_length: int, report: ReportCut | None) -> None:
    """Report how much of each group was truncated, by `report` or else by a Python warning."""
    num_cut = [group.num_cut for group in groups]
    if report is not None:
        report(num_cut)
    elif message := describe_cut(num_cut, max_length):
        warn(message, TextsCutWarning)
