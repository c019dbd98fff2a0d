"""`litebert verify`: verify files against their recorded hashes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from litebert.core.errors import DataError


def verify_directories(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Corpora, tokenizers, runs, checkpoints, exports, studies, or folders with these."),
    ],
) -> None:
    """Verify every file against its recorded hash; exit code 2 if one is corrupt.

    Example: litebert verify runs/nano
    """
    from litebert.verify import verify

    found = [one for path in paths for one in verify(path)]
    for one in found:
        print(f"{one.kind} {one.path}: {'CORRUPT' if one.problems else 'verified'}")
        for note in one.notes:
            print(f"note: {note}")
        for problem in one.problems:
            print(f"corrupt: {problem}", file=sys.stderr)
    num_corrupt = sum(bool(one.problems) for one in found)
    if num_corrupt:
        raise DataError("corrupt-file", f"{num_corrupt} of {len(found)} are corrupt: restore the files named above")
