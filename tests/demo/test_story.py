"""The demo in miniature: from text to a page, through any interruption, and at once when it is done."""

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refuses
from rich.console import Console

import litebert.demo.story as story
from litebert.core.errors import ConfigError, DataError
from litebert.demo.library import standard_library
from litebert.demo.story import Demo, run_demo
from litebert.demo.words import next_commands

SMALL = ("model.vocab_size=600", "train.steps=6", "train.save_every=2", "schedule.warmup_steps=1", "batch.sequences=8")


def small_demo(folder: str = "runs/demo") -> Demo:
    return Demo(Path(folder), SMALL, library=standard_library() / "email")


def tell(demo: Demo, **options: Any) -> str:
    """Run the demo and give what a person would have seen."""
    output = io.StringIO()
    run_demo(demo, console=Console(file=output, width=100, highlight=False), **options)
    return output.getvalue()


def without_times(page: str) -> str:
    return re.sub(r"<time>.*?</time>", "", page)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where a miniature demo has run from beginning to end."""
    place = tmp_path_factory.mktemp("finished")
    before = Path.cwd()
    os.chdir(place)  # the recipe, and with it the page, names the corpus by its path
    try:
        tell(small_demo())
    finally:
        os.chdir(before)
    return place


def test_every_stage_leaves_its_result(finished: Path) -> None:
    for name in ("text", "tokenizer", "corpus", "nano", "evaluation.json", "report.html"):
        assert (finished / "runs" / "demo" / name).exists()
    assert not list(finished.rglob("*.tmp"))


def test_the_page_asks_nobody_for_anything(finished: Path) -> None:
    page = (finished / "runs" / "demo" / "report.html").read_text("utf-8")
    assert not re.search(r"https?:|//\w|<script|<link(?! rel=\"icon\" href=\"data:,\")|@import|url\((?!#)", page)
    assert page.count("<svg") == 5
    assert "currentColor" in page
    assert "#0303" not in page, "each line has a colour of the page"


def test_a_finished_demo_shows_its_result_at_once(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    report = finished / "runs" / "demo" / "report.html"
    before = report.stat()
    output = tell(small_demo())
    assert "already complete" in output
    assert "masked tokens" in output
    assert report.stat() == before


def test_interrupted_in_every_stage_it_ends_with_the_same_report(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (
        "litebert.demo.story.atomic_directory",
        "litebert.demo.story.train_tokenizer",
        "litebert.demo.story.open_corpus",  # the shards are written, the stage is not over
        "litebert.pretraining.run_folder.delete_old_checkpoints",  # in the middle of training
        "litebert.demo.story.evaluate_model",
        "litebert.demo.story.build_page",
    ):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, interrupt)
            tell(small_demo())
        torch.set_num_threads(2)  # the next one does not inherit the threads of this one, as a new process does not
    output = tell(small_demo())
    assert output.count("already done") == len(story.STAGES) - 1
    ours, other = (folder / "runs" / "demo" / "report.html" for folder in (tmp_path, finished))
    assert without_times(ours.read_text("utf-8")) == without_times(other.read_text("utf-8"))


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_run_by_tokens_ends_with_a_report_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    demo = Demo(Path("demo"), (*SMALL, "train.tokens=1500"), library=standard_library() / "email")
    assert re.search(r"parameters, [1-5] steps", tell(demo))
    assert re.search(r"[1-5] steps of 8 sequences", (tmp_path / "demo" / "report.html").read_text("utf-8"))
    assert "already complete" in tell(demo)


def test_a_damaged_evaluation_is_named(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    Path("runs/demo/evaluation.json").write_text("{")
    with refuses(DataError, "bad-json", at="evaluation.json"):
        tell(small_demo())


def test_another_recipe_and_a_foreign_folder_are_refused(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    other = Demo(Path("runs/demo"), (*SMALL, "seed=2"), library=standard_library() / "email")
    with refuses(ConfigError, "options-changed"):
        run_demo(other)
    (finished / "mine").mkdir()
    (finished / "mine" / "thesis.txt").touch()
    with refuses(ConfigError, "output-exists"):
        run_demo(small_demo("mine"), is_fresh=True)
    assert (finished / "mine" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("model.sharing=none", "unsupported-by-demo"),
        ("model.num_inner=2", "unsupported-by-demo"),
        ("segments.task=none", "unsupported-by-demo"),
    ],
)
def test_a_recipe_whose_model_the_report_cannot_speak_of_is_refused_at_once(
    word: str, code: str, tmp_path: Path
) -> None:
    with refuses(ConfigError, code):
        run_demo(Demo(tmp_path / "demo", (*SMALL, word)))
    assert not (tmp_path / "demo").exists()


def test_fresh_starts_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("litebert.demo.story.train_tokenizer", interrupt)
        tell(small_demo())
    (tmp_path / "runs" / "demo" / "text" / "modules.txt").write_text("Spoiled.\n")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("litebert.demo.story.train_tokenizer", interrupt)
        tell(small_demo(), is_fresh=True)
    assert (tmp_path / "runs" / "demo" / "text" / "modules.txt").read_text("utf-8") != "Spoiled.\n"


@pytest.mark.slow
def test_the_commands_that_it_names_next_work(tmp_path: Path) -> None:
    (tmp_path / "my-text").mkdir()
    for number, text in enumerate(sorted(Path(standard_library()).glob("*.py"))[:400]):
        (tmp_path / "my-text" / f"{number}.txt").write_bytes(text.read_bytes())
    for command in next_commands():
        words = shlex.split(command.replace("pretrain nano", "pretrain nano train.steps=3 schedule.warmup_steps=1"))
        arguments = [sys.executable, "-m", "litebert", *words[1:]]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.kills
def test_killed_again_and_again_it_ends_with_the_same_report(finished: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from litebert.demo.story import Demo, run_demo\n"
        "from litebert.demo.library import standard_library\n"
        f"run_demo(Demo(Path('runs/demo'), {SMALL!r}, library=standard_library() / 'email'))"
    )
    for seconds in (3.0, 4.5, 6.0, 7.0, 8.0, 9.0, None):
        with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            if seconds is not None:
                time.sleep(seconds)
                process.send_signal(signal.SIGKILL)
        if seconds is None:
            assert process.returncode == 0
    ours, other = (folder / "runs" / "demo" / "report.html" for folder in (tmp_path, finished))
    assert without_times(ours.read_text("utf-8")) == without_times(other.read_text("utf-8"))
