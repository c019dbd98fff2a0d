"""The commands and code of both READMEs run, and so do the commands of version 0.1.0's."""

import re
from pathlib import Path

import pytest
from shown_code import HUB_NAME, ROOT, make_readers_folder, read_shown, run_command

from litebert import load

README = ROOT / "README.md"
COMMANDS = [code for is_python, code in read_shown(README) if not is_python]
SNIPPETS = [code for is_python, code in read_shown(README) if is_python]
EARLIER = (Path(__file__).parent / "commands_0.1.0.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    make_readers_folder(folder)
    return folder


@pytest.mark.parametrize("command", dict.fromkeys([*EARLIER, *COMMANDS]))
def test_a_command_of_the_readme_runs(command: str, folder: Path) -> None:
    if HUB_NAME in command:
        if not (folder / HUB_NAME).is_dir():  # no network here: a folder of the same name, in the same format
            run_command(f"litebert convert runs/nano --out {HUB_NAME} --to huggingface", folder)
        command += " train.steps=20" if command.startswith("litebert finetune") else ""
    run_command(command, folder)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_of_the_readme_runs(
    snippet: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, target in {"models": ROOT / "models", "my": folder / "my", "reviews.csv": folder / "reviews.csv"}.items():
        (tmp_path / name).symlink_to(target)
    if HUB_NAME in snippet:
        (tmp_path / HUB_NAME).parent.mkdir()
        run_command(f"litebert convert {folder / 'runs/nano'} --out {HUB_NAME} --to huggingface", tmp_path)
        snippet = snippet.replace('"reviews.csv",', '"reviews.csv", {"train.steps": 4},')
    quick = snippet.replace('"train.steps": 100', '"train.steps": 2, "schedule.warmup_steps": 1, "stages": []')
    exec(compile(quick, "README.md", "exec"), {})


def test_the_answers_that_the_readme_shows_are_those_of_the_shipped_model() -> None:
    text = README.read_text("utf-8")
    model = load(ROOT / "models/cpu-small-en")
    masked, shown = re.findall(r'fill_mask\("(.*?)"\)  # (.*?) \.\.\.', text)[0]
    (guesses,) = model.fill_mask(masked, top_k=3)
    assert shown == ", ".join(f"{guess.piece.lstrip('▁')} {guess.probability:.2f}" for guess in guesses)
    first, second, probability = re.findall(r'order\("(.*?)", "(.*?)"\)  # ([\d.]+):', text)[0]
    assert probability == f"{model.order(first, second):.3f}"


def test_the_chinese_readme_shows_the_same_commands_and_code() -> None:
    chinese = ROOT / "README.zh-CN.md"
    assert len(COMMANDS) >= 10
    assert [_drop_comments(code) for _, code in read_shown(chinese)] == [
        _drop_comments(c) for _, c in read_shown(README)
    ]
    assert re.findall(r"\]\((docs/[^)]*)\)", chinese.read_text("utf-8")) == re.findall(
        r"\]\((docs/[^)]*)\)", README.read_text("utf-8")
    )


def _drop_comments(code: str) -> str:
    return re.sub(r" +#.*", "", code)
