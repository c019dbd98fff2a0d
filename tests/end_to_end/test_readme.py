"""Each command and each piece of Python in the README runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for language, block in BLOCKS
    if not language
    for line in block.splitlines()
    if line.startswith("litebert ")
]
SNIPPETS = [block for language, block in BLOCKS if language == "python"]


def test_the_readme_shows_commands_and_code() -> None:
    assert COMMANDS
    assert SNIPPETS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command: str) -> None:
    words = shlex.split(command)[1:]
    done = subprocess.run([sys.executable, "-m", "litebert", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_of_the_readme_runs(snippet: str) -> None:
    exec(compile(snippet, "README.md", "exec"), {})
