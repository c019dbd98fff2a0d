"""The spellings of version 0.1.0 keep working, with a hint; every command and option of 0.1.0 is understood."""

import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from litebert.cli.main import _run, app
from litebert.cli.spellings import modernize

CHANGED = {
    "models": "models list",
    "models --json --length 64": "models list --json --length 64",
    "models --table 4": "models list --paper-table 4",
    "models --table=4": "models list --paper-table=4",
    "models albert-base sharing=none": "models show albert-base sharing=none",
    "models --length 128 albert-base": "models show --length 128 albert-base",
    "recipes": "recipes list",
    "check nano train.steps=5": "recipes check nano train.steps=5",
    "plan albert-large --devices 64 --device a100-80g": "recipes plan albert-large --devices 64 --hardware a100-80g",
    "corpus stats nano --batches 4 data.corpora=c": "recipes batches nano --count 4 data.corpora=c",
    "scores a b": "compare a b",
    "demo --fresh": "demo --overwrite",
    "tokenizer train t --out o --force --no-chinese": "tokenizer train t --out o --overwrite",
    "tokenizer train t --out o --no-force": "tokenizer train t --out o",
    "corpus build t --no-deduplicate --out o -t k": "corpus build t --out o -t k",
    "convert a b --to huggingface": "convert a --out b --to huggingface",
    "convert --to huggingface a b": "convert --to huggingface a --out b",
    "export a b --format web --task-head mlm": "export a --out b --to web --head mlm",
    "evaluate a --intrinsic c": "evaluate a --corpus c",
    "finetune a --task sst-2 --data d --seeds 5": "finetune a --task sst-2 --data d --num-seeds 5",
    "study run table-5 --dry-run --device tpu-v3": "study run table-5 --dry-run --hardware tpu-v3",
    "adapt a t --out o --set train.steps=5": "adapt a t --out o train.steps=5",
}
UNCHANGED = [
    "",
    "--help",
    "--version",
    "models --help",
    "models list",
    "models show nano",
    "recipes --help",
    "recipes show nano",
    "corpus stats c --json",
    "convert a --out b",
    "export a --out b --int8 --dev d",
    "study run table-5 --seeds 1,2",
    "tokenizer",
    "nonsense",
]


@pytest.mark.parametrize(("old", "new"), CHANGED.items())
def test_a_spelling_of_0_1_0_is_rewritten(old: str, new: str) -> None:
    assert modernize(old.split(), get_command(app)) == new.split()


@pytest.mark.parametrize("line", [*UNCHANGED, *CHANGED.values()])
def test_todays_spelling_stays(line: str) -> None:
    assert modernize(line.split(), get_command(app)) == line.split()


def test_a_hint_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["models", "nano", "--json"], debug=False) == 0
    said = capsys.readouterr()
    assert said.err == "hint: this is now written: litebert models show nano --json\n"
    assert _run(["models", "show", "nano", "--json"], debug=False) == 0
    assert capsys.readouterr() == (said.out, "")


def test_every_option_of_0_1_0_is_known() -> None:
    file = Path(__file__).with_name("options_0.1.0.txt")
    for line in file.read_text("utf-8").splitlines():
        path, *flags = shlex.split(line)
        words = modernize([*path.split("."), *flags], get_command(app))
        command = get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known, line
