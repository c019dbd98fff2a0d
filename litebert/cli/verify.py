"""`litebert verify`: verify files against their recorded hashes."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from litebert.cli.printing import print_json
from litebert.cli.words import AsJson
from litebert.core.errors import DataError


def verify_directories(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDERS",
            help="Corpora, tokenizers, runs, checkpoints, exports, search indexes, studies, or folders with these.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Verify every file of models, runs and corpora against its recorded hash.

    Exit code 2 if one is corrupt.

    Examples:
      litebert verify runs/nano
      litebert verify corpora runs
    """
    from litebert.verify import verify

    found = [one for path in paths for one in verify(path)]
    if as_json:
        print_json([{**asdict(one), "path": str(one.path)} for one in found])
    for one in () if as_json else found:
        print(f"{one.kind} {one.path}: {'CORRUPT' if one.problems else 'verified'}")
        for note in one.notes:
            print(f"note: {note}")
        for problem in one.problems:
            print(f"corrupt: {problem}", file=sys.stderr)
    num_corrupt = sum(bool(one.problems) for one in found)
    if num_corrupt:
        raise DataError("corrupt-file", f"{num_corrupt} of {len(found)} are corrupt: restore the files named above")
