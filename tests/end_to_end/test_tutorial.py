"""The tutorials can be followed from the first line to the last."""

import random
from pathlib import Path

import pytest
from shown_code import read_shown, run_command

DOCS = Path(__file__).parents[2] / "docs"
QUICK = "train.steps=60 schedule.warmup_steps=10 stages=[]"
HUB_NAME = "albert/albert-base-v2"
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
    rng = random.Random(5)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(6000)]
    sentences = [" ".join(rng.choices(words, k=rng.randint(4, 20))).capitalize() + "." for _ in range(6000)]
    Path("my/texts").mkdir(parents=True)
    documents = ["\n".join(sentences[at : at + 10]) for at in range(0, 6000, 10)]
    Path("my/texts/all.txt").write_text("\n\n".join(documents), "utf-8")
    rows = [f"{sentence},{rng.choice(['good', 'bad'])}" for sentence in sentences[:60]]
    Path("reviews.csv").write_text("\n".join(["text,label", *rows]), "utf-8")
    Path("more.txt").write_text("\n".join(sentences[60:62]) + "\n", "utf-8")
    follow(DOCS / "tutorial-own-text.md", tmp_path)
    # no network here: a folder of the same name, in the same format
    run_command(f"litebert convert runs/nano {HUB_NAME} --to huggingface", tmp_path)
    follow(DOCS / "tutorial-published-model.md", tmp_path)
    assert (tmp_path / "albert-onnx" / "model.onnx").is_file()
