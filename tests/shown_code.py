"""What the pages of the documentation tell their reader to type, and a folder in which it can be typed."""

import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
HUB_NAME = "albert/albert-base-v2"  # no network in tests: a folder of this name, in the same format, stands in for it
_BLOCK = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = ("", "sh", "shell", "bash")


class Block(NamedTuple):
    """A fenced block: its mark (the comment right above it), its language and its content."""

    mark: str
    language: str
    content: str

    @property
    def is_shell(self) -> bool:
        return self.language in _SHELL

    @property
    def lines(self) -> list[str]:
        """Its lines without comments; those that a backslash continues are one."""
        joined = self.content.replace("\\\n", " ").splitlines()
        return [line for line in (re.sub(r"\s+#.*|^#.*", "", line).strip() for line in joined) if line]


class Shown(NamedTuple):
    """A command, or a piece of Python."""

    is_python: bool
    code: str


def read_blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text("utf-8"))]


def read_shown(page: Path) -> list[Shown]:
    """Everything to type on a page, in order: blocks of Python, and `litebert ...` in blocks without a language."""
    found = []
    for block in read_blocks(page):
        if block.language == "python":
            found.append(Shown(True, block.content))
        elif not block.language:
            found += [Shown(False, line) for line in block.lines if line.startswith("litebert ")]
    return found


def run_command(command: str, folder: Path) -> str:
    """Run `litebert ...` as a reader in that folder would; it must succeed and print something, which is returned."""
    words = [sys.executable, "-m", "litebert", *shlex.split(command)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert done.stdout, command
    return done.stdout


def make_readers_folder(folder: Path) -> None:
    """Text in an invented language of several thousand words in my/texts/, labelled reviews, and lines to predict."""
    rng = random.Random(5)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(6000)]

    def sentence() -> str:
        return " ".join(rng.choices(words, k=rng.randint(4, 20))).capitalize() + "."

    (folder / "my" / "texts").mkdir(parents=True)
    for number in range(4):
        documents = ("\n".join(sentence() for _ in range(rng.randint(2, 12))) for _ in range(150))
        (folder / "my" / "texts" / f"{number}.txt").write_text("\n\n".join(documents), "utf-8")
    rows = [f"{sentence()},{rng.choice(['good', 'bad'])}" for _ in range(60)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]), "utf-8")
    (folder / "more.txt").write_text(f"{sentence()}\n{sentence()}\n", "utf-8")
