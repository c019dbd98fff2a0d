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
    words = [sys.executable, "-m", "litebert", "recipes"]
    done = subprocess.run(words, stdout=input_, stderr=subprocess.PIPE, text=True, check=False)
    os.close(input_)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    command = next(command for command in main.app.registered_commands if command.name == "recipes")
    monkeypatch.setattr(command, "callback", interrupt)
    assert _run(["recipes"], debug=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("num_bytes", [0, 8000], ids=["text", "weights"])
def test_a_full_disk_is_one_line_with_what_to_do(
    num_bytes: int, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {file.name: file.stat().st_size for file in tiny_checkpoint.iterdir()}
    assert max(size for name, size in sizes.items() if name != "model.safetensors") < 8000 < sizes["model.safetensors"]
    with small_disk(num_bytes):
        assert _run(["convert", str(tiny_checkpoint), str(tmp_path / "out")], debug=False) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "File too large; raise the file size limit (ulimit -f) and run the same command again" in said[0]
    assert not (tmp_path / "out").exists()
