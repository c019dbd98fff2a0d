"""What the command line makes of errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_disk import small_disk

from litebert.cli import main
from litebert.cli.main import _run


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    output, input_ = os.pipe()
    os.close(output)
    words = [sys.executable, "-m", "litebert", "recipes", "list"]
    done = subprocess.run(words, stdout=input_, stderr=subprocess.PIPE, text=True, check=False)
    os.close(input_)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    command = next(command for command in main.app.registered_commands if command.name == "demo")
    monkeypatch.setattr(command, "callback", interrupt)
    assert _run(["demo"], debug=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("num_bytes", [0, 8000], ids=["text", "weights"])
def test_a_full_disk_is_one_line_with_what_to_do(
    num_bytes: int, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {file.name: file.stat().st_size for file in tiny_checkpoint.iterdir()}
    assert max(size for name, size in sizes.items() if name != "model.safetensors") < 8000 < sizes["model.safetensors"]
    with small_disk(num_bytes):
        assert _run(["convert", str(tiny_checkpoint), "--out", str(tmp_path / "out")], debug=False) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "File too large; raise the file size limit (ulimit -f) and run the same command again" in said[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [[], ["corpus"], ["tokenizer"], ["study"]])
def test_a_bare_command_prints_help_and_no_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(words, debug=False) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Usage: litebert")
    assert said.err == ""


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("pretrain nano --steps 100", "No such option: --steps (write train.steps=100)"),
        ("pretrain nano --steps=100", "No such option: --steps (write train.steps=100)"),
        ("pretrain nano --lr 1e-3", "No such option: --lr (write optim.learning_rate=1e-3)"),
        ("finetune m --task rte --data d --epochs 3", "No such option: --epochs (write train.epochs=3)"),
        ("models show nano --hidden-size 64", "No such option: --hidden-size (write hidden_size=64)"),
        ("pretrain nano --nonsense", "No such option: --nonsense (see: litebert pretrain --help)"),
        ("recipes check nano optim.lr=1", "unknown key 'optim.lr'; did you mean 'optim.learning_rate'?"),
        ("recipes check nano lr=1", "unknown key 'lr'; did you mean 'optim.learning_rate'?"),
        ("export nothing --out x", "nothing: no such folder; expected a model, or a hub name"),
        ("finetune MODEL --task classification --data nothing.xyz", "nothing.xyz: no such file; is the name right?"),
        ("tokenizer train t --out o --kind x", "'x' is not one of 'unigram', 'wordpiece', 'bpe'"),
        ("study show table-5 --scale lap", "'lap' is not one of 'laptop', 'paper'"),
    ],
)
def test_an_error_says_what_to_write(
    line: str,
    answer: str,
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(tiny_checkpoint) if word == "MODEL" else word for word in line.split()]
    assert _run(words, debug=False) == 2
    said = capsys.readouterr()
    assert answer in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    assert not list(tmp_path.iterdir())


def test_integers_may_have_an_exponent(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["models", "show", "nano", "--length", "1e2", "--batch-size=1e1", "--json"], debug=False) == 0
    assert '"length": 100,\n    "batch_size": 10,' in capsys.readouterr().out


def test_existing_output_is_replaced_only_with_overwrite(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["convert", str(tiny_checkpoint), "--out", str(tmp_path / "out")]
    assert _run(words, debug=False) == 0
    (tmp_path / "out" / "old").touch()
    assert _run(words, debug=False) == 2
    assert capsys.readouterr().err.endswith("already exists: choose another name, or overwrite it (--overwrite)\n")
    assert _run([*words, "--overwrite"], debug=False) == 0
    assert not (tmp_path / "out" / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear").touch()
    assert _run([*words[:3], str(tmp_path / "letters"), "--overwrite"], debug=False) == 2
    assert (tmp_path / "letters" / "dear").exists()
