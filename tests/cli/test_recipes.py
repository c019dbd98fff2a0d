"""`litebert recipes` and `check`: what there is to train by, and what it comes to."""

import tomllib
from pathlib import Path

import pytest

import litebert
from litebert.cli.main import _run
from litebert.recipe import load_recipe

SHIPPED = sorted(path.stem for path in (Path(litebert.__file__).parent / "recipes").glob("*.toml"))


def test_every_shipped_recipe_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["recipes"], debug=False) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(rows) == SHIPPED
    assert rows["nano"].startswith("the smallest ALBERT that trains")


def check(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, dict[str, str]]:
    """The recipe that `litebert check` prints, and its facts by name."""
    assert _run(["check", *words], debug=False) == 0
    recipe, _, facts = capsys.readouterr().out.rpartition("\n\n")
    return recipe, {line[:13].strip(): line[14:] for line in facts.splitlines()}


def test_a_recipe_is_shown_in_full_without_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe, facts = check(capsys, "albert-base", "train.steps=4000")
    assert tomllib.loads(recipe) == tomllib.loads(load_recipe("albert-base", ["train.steps=4000"]).to_toml())
    assert facts["parameters"].startswith("11,813,810 stored")
    assert facts["run"].startswith(f"4,000 steps, at most {4000 * 4096 * 512:,} tokens")
    assert facts["corpus"].startswith("none at corpus")
    assert "first batch" not in facts


def test_the_memory_follows_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ([], ["train.recompute=true"], ["runtime.dtype=bf16"], ["masking.rate=0.4"])
    shown = [check(capsys, "albert-base", *added)[1]["memory"] for added in words]
    assert all("MB for a micro-batch of 32 x 512" in line for line in shown)
    assert len({line.split(" MB")[0] for line in shown}) == len(words)


def test_a_recipe_is_shown_with_its_text(tiny_corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (f"data.corpora={tiny_corpus}", "model.vocab_size=100", "batch.sequences=4")
    _, facts = check(capsys, "nano", *words)
    assert "epochs, about" in facts["run"]
    assert facts["first batch"].startswith("4 sequences in rows")
    assert check(capsys, "nano", *words, "train.hours=2")[1]["run"].startswith("by the clock, train.hours = 2")


def test_a_corpus_that_is_there_must_be_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check", "nano", f"data.corpora={tmp_path}"], debug=False) == 2
    assert "is not a finished corpus" in capsys.readouterr().err
