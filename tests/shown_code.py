"""What a page of the documentation tells its reader to type."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Shown(NamedTuple):
    """A command, or a piece of Python."""

    is_python: bool
    code: str


def read_shown(page: Path) -> list[Shown]:
    """Everything to type that stands on a page, in its order; blocks of another language are output."""
    found = []
    for language, block in re.findall(r"```(\w*)\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
        if language == "python":
            found.append(Shown(True, block))
        elif not language:
            found += [
                Shown(False, line.split("#")[0].strip()) for line in block.splitlines() if line.startswith("litebert ")
            ]
    return found


def run_command(command: str, folder: Path) -> None:
    """Run `litebert ...` as a reader in that folder would; it must end well, and say something."""
    words = [sys.executable, "-m", "litebert", *shlex.split(command)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert done.stdout, command
