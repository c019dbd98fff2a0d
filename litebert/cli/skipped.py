"""Report the input that `litebert corpus build` and `litebert tokenizer train` skipped."""

import sys
from collections.abc import Mapping, Sequence

_MAX_LISTED = 12


def print_skipped(problems: Sequence[str], counts: Mapping[str, int], *, where_more: str = "") -> None:
    """Print the first problems, where to find the others, and the number of each kind."""
    for problem in problems[:_MAX_LISTED]:
        print(f"skipped: {problem}", file=sys.stderr)
    if len(problems) > _MAX_LISTED:
        print(f"skipped: more{where_more}", file=sys.stderr)
    if counts:
        listed = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in counts.items())
        print(f"skipped or fixed: {listed}")
