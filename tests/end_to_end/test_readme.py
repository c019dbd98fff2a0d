"""Each command and each piece of Python in the README runs, in the order in which it stands there."""

import random
from pathlib import Path

import pytest
from shown_code import read_shown, run_command

README = Path(__file__).parents[2] / "README.md"
COMMANDS = [code for is_python, code in read_shown(README) if not is_python]
SNIPPETS = [code for is_python, code in read_shown(README) if is_python]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader sits: with prose in some invented language of several thousand words, and some labelled texts."""
    folder = tmp_path_factory.mktemp("reader")
    rng = random.Random(5)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(6000)]
    (folder / "my" / "texts").mkdir(parents=True)
    for number in range(4):
        documents = ("\n".join(_sentence(rng, words) for _ in range(rng.randint(2, 12))) for _ in range(150))
        (folder / "my" / "texts" / f"{number}.txt").write_text("\n\n".join(documents), "utf-8")
    reviews = [f"{_sentence(rng, words)},{rng.choice(['good', 'bad'])}" for _ in range(60)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *reviews]), "utf-8")
    (folder / "more.txt").write_text(_sentence(rng, words) + "\n" + _sentence(rng, words) + "\n", "utf-8")
    return folder


def _sentence(rng: random.Random, words: list[str]) -> str:
    return " ".join(rng.choices(words, k=rng.randint(4, 20))).capitalize() + "."


def test_the_readme_shows_commands_and_code() -> None:
    assert COMMANDS
    assert SNIPPETS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command: str, folder: Path) -> None:
    run_command(command, folder)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_of_the_readme_runs(snippet: str) -> None:
    exec(compile(snippet, "README.md", "exec"), {})
