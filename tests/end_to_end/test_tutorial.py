"""The tutorials can be followed from the first line to the last."""

from pathlib import Path

import pytest
from shown_code import HUB_NAME, ROOT, make_readers_folder, read_shown, run_command

DOCS = ROOT / "docs"
QUICK = "train.steps=60 schedule.warmup_steps=10 stages=[]"
KEEPS_RUNNING = "litebert serve"

pytestmark = pytest.mark.slow


def follow(page: Path, folder: Path) -> None:
    """Type everything on a page, with trainings cut short."""
    shown = read_shown(page)
    assert any(is_python for is_python, _ in shown) or len(shown) > 5
    names: dict[str, object] = {}
    for is_python, code in shown:
        if is_python:
            quick = '"data.corpora": corpus, "train.steps": 60, "schedule.warmup_steps": 10, "stages": []'
            exec(compile(code.replace('"data.corpora": corpus', quick), str(page), "exec"), names)
        elif not code.startswith(KEEPS_RUNNING):
            run_command(f"{code} {QUICK}" if code.startswith("litebert pretrain") else code, folder)


def test_everything_in_the_demo_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_command(f"litebert demo {QUICK}", tmp_path)
    follow(DOCS / "tutorial.md", tmp_path)
    assert (tmp_path / "exported" / "model.onnx").is_file()


def test_everything_in_the_other_tutorials_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_readers_folder(tmp_path)
    follow(DOCS / "tutorial-own-text.md", tmp_path)
    run_command(f"litebert convert runs/nano --out {HUB_NAME} --to huggingface", tmp_path)
    follow(DOCS / "tutorial-published-model.md", tmp_path)
    assert (tmp_path / "albert-onnx" / "model.onnx").is_file()
