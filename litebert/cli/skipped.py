"""What reading text has left out, as `litebert corpus build` and `litebert tokenizer train` tell it."""

import sys
from collections.abc import Mapping, Sequence

_MAX_LISTED = 12


def print_skipped(problems: Sequence[str], counts: Mapping[str, int], *, where_more: str = "") -> None:
    """The first bad places, where the others are written down if they are, and how many of each kind."""
    for problem in problems[:_MAX_LISTED]:
        print(f"skipped: {problem}", file=sys.stderr)
    if len(problems) > _MAX_LISTED:
        print(f"skipped: more like these{where_more}", file=sys.stderr)
    if counts:
        listed = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in counts.items())
        print(f"left out or mended: {listed}")
