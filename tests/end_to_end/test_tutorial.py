"""The tutorial can be followed from its first line to its last, on what the demo leaves behind."""

from pathlib import Path

import pytest
from shown_code import read_shown, run_command

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
QUICK = "train.steps=60 schedule.warmup_steps=10 stages=[]"


@pytest.mark.slow
def test_everything_in_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_command(f"litebert demo {QUICK}", tmp_path)
    shown = read_shown(TUTORIAL)
    assert any(is_python for is_python, _ in shown)
    names: dict[str, object] = {}
    for is_python, code in shown:
        if is_python:
            exec(compile(code, str(TUTORIAL), "exec"), names)
        else:
            run_command(code, tmp_path)
    assert (tmp_path / "exported" / "model.onnx").is_file()
