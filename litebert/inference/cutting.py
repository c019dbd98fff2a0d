"""Texts that are longer than a model reads lose their ends; whoever asked is told how many, and how much."""

import warnings
from collections.abc import Callable, Sequence

from litebert.core.errors import TextsCutWarning
from litebert.tasks.groups import Group

ReportCut = Callable[[Sequence[int]], object]  # hears of each text how many of its tokens were not read


def describe_cut(num_cut: Sequence[int], max_length: int) -> str:
    """How many texts were cut, and how much; nothing to say where none was. `num_cut`: tokens, for each text."""
    cut = [count for count in num_cut if count]
    if not cut:
        return ""
    texts = f"{len(cut):,} of {len(num_cut):,} texts were truncated"
    return f"{texts} to the model's {max_length:,} tokens (special tokens included); {sum(cut):,} tokens were dropped"


def tell_cut(groups: Sequence[Group], max_length: int, report: ReportCut | None) -> None:
    """Report what was cut of each group; without a listener Python's warnings are told."""
    num_cut = [group.num_cut for group in groups]
    if report is not None:
        report(num_cut)
    elif message := describe_cut(num_cut, max_length):
        warnings.warn(message, TextsCutWarning, stacklevel=3)
