"""`litebert recipes list` and `check`: what there is to train by, and what it comes to."""

import dataclasses
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import litebert
from litebert import open_corpus
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.cli.main import _run
from litebert.model.model import build_model
from litebert.pretraining.recipe import load_recipe
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer
from tests.conftest import invent_documents

SHIPPED = sorted(path.stem for path in (Path(litebert.__file__).parent / "pretraining" / "recipes").glob("*.toml"))


def test_every_shipped_recipe_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["recipes", "list"], debug=False) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(rows) == SHIPPED
    assert rows["nano"].startswith("the smallest ALBERT that trains")


def check(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, dict[str, str]]:
    """The recipe that `litebert recipes check` prints, and its facts by name."""
    assert _run(["recipes", "check", *words], debug=False) == 0
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
    assert facts["corpus"].startswith("none set")
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
    assert check(capsys, "nano", *words, "train.hours=2")[1]["run"].startswith("limited by train.hours = 2")


@pytest.mark.parametrize("words", [[], ["--processes", "2"]])
def test_a_run_without_a_named_corpus_is_refused(
    words: list[str],
    tiny_corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_corpus, tmp_path / "corpus")  # which nobody asked for
    assert _run(["pretrain", "nano", "model.vocab_size=100", *words], debug=False) == 2
    assert "data.corpora is empty: name the corpus to read, such as data.corpora=my/corpus" in capsys.readouterr().err


def test_the_first_line_of_a_run_says_what_it_is(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ["model.vocab_size=100", "model.hidden_size=16", "model.ffn_size=24", "model.num_heads=2", "stages=[]"]
    words = [*shape, "train.steps=2", "schedule.warmup_steps=1", "batch.sequences=4", f"data.corpora={tiny_corpus}"]
    assert _run(["pretrain", "nano", *words, "--out", str(tmp_path / "run")], debug=False) == 0
    first = capsys.readouterr().out.splitlines()[0]
    tokens = open_corpus(tiny_corpus).num_tokens
    assert re.fullmatch(
        r"recipe nano: 1 layer \(sharing all\) of width 16, [\d,]+ parameters; "
        rf"corpus {tiny_corpus}, {tokens:,} tokens; "
        r"2 steps, at most 512 tokens, about 1 second",
        first,
    )


def make_start(folder: Path, tokenizer: Tokenizer, **shape: int) -> str:
    config = dataclasses.replace(load_recipe("nano").model, vocab_size=tokenizer.vocab_size, **shape)
    save_checkpoint(folder, build_model(config), tokenizer, CheckpointContent(0))
    return f"init.from={folder}"


@pytest.mark.parametrize("command", ["check", "pretrain"])
def test_a_start_with_another_tokenizer_is_refused_with_the_one_to_use(
    command: str, tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = [sentence for document in invent_documents(50, seed=4) for sentence in document]
    start = make_start(tmp_path / "start", train_tokenizer(sentences, VocabularyOptions("wordpiece", 80)))
    out = ["--out", str(tmp_path / "run")] if command == "pretrain" else []
    words = [command, "nano", f"data.corpora={tiny_corpus}", "model.vocab_size=80", start, *out]
    assert _run(words, debug=False) == 2
    message = capsys.readouterr().err
    assert "has another tokenizer than" in message
    assert f"build the corpus with the tokenizer {tmp_path / 'start'}" in message


def test_a_start_of_another_depth_or_shape_is_reported(
    tiny_corpus: Path, tiny_tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["nano", f"data.corpora={tiny_corpus}", "model.vocab_size=100"]
    _, facts = check(capsys, *words, make_start(tmp_path / "deep", tiny_tokenizer, num_layers=6))
    assert "was trained with 6 layers; this run has 1, 2 from step 3,000 on" in facts["start"]
    assert "start" not in check(capsys, *words, make_start(tmp_path / "alike", tiny_tokenizer))[1]
    wide = make_start(tmp_path / "wide", tiny_tokenizer, hidden_size=256)
    assert _run(["check", *words, wide], debug=False) == 2
    assert "the weights to start from do not fit the model" in capsys.readouterr().err


def test_an_existing_corpus_must_be_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check", "nano", f"data.corpora={tmp_path}"], debug=False) == 2
    assert "is not a finished corpus" in capsys.readouterr().err
