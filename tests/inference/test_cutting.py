"""Texts that are longer than a model reads are cut, and whoever asked is told how many and how much."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import TextsCutWarning
from litebert.model.model import build_model
from litebert.tasks.catalog import task_facts
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification
from litebert.tasks.kinds.token_tags import TokenTags
from litebert.tasks.squad.task import SpanTask
from litebert.text.tokenizer import Tokenizer

LENGTH = 16  # tokens, of which two or three are special
LONG = "the " * 20
TASKS: dict[str, Any] = {
    "classify": Classification("classification", ("cat", "dog")),
    "tag": TokenTags("tags", ("O", "B-CAT")),
    "answer": SpanTask("squad-v1", max_question_length=5, stride=4),
    "choose": Choices("choice", max_choice_length=6),
}
# how each is asked with one text that fits and one that does not, and how many tokens of that are lost
ASKED: dict[str, tuple[Callable[[litebert.Predictor], object], int]] = {
    "classify": (lambda model: model.classify(["the cat", LONG]), 20 + 2 - LENGTH),
    "tag": (lambda model: model.tag([["the", "cat"], ["the", "a" * 20, *LONG.split()]]), 20 + 2 - LENGTH),
    "answer": (lambda model: model.answer_batch([("the cat", LONG), (LONG, LONG)]), 20 - 5),
    "choose": (
        lambda model: model.choose_batch(
            [ChoiceExample("", "the cat", "", ("the", "a")), ChoiceExample("", LONG, "", ("the", "the the a"))]
        ),
        20 + 3 + 3 - LENGTH,
    ),
}


@pytest.fixture
def load(tmp_path: Path, tiny_tokenizer: Tokenizer, tiny_checkpoint: Path) -> Callable[[str], litebert.Predictor]:
    config = load_checkpoint(tiny_checkpoint).config

    def load_model(name: str) -> litebert.Predictor:
        content = CheckpointContent(step=0, task=task_facts(TASKS[name], max_length=LENGTH))
        save_checkpoint(tmp_path / name, build_model(config, TASKS[name].heads), tiny_tokenizer, content)
        return litebert.load(tmp_path / name)

    return load_model


@pytest.mark.parametrize("name", ASKED)
def test_a_warning_says_how_many_texts_were_cut_and_how_much(
    name: str, load: Callable[[str], litebert.Predictor]
) -> None:
    ask, num_cut = ASKED[name]
    with pytest.warns(TextsCutWarning) as told:
        ask(load(name))
    assert {one.filename for one in told} == {__file__}, "a warning names the line that asked, not one of litebert"
    assert [str(one.message) for one in told] == [
        f"1 of 2 texts were truncated to the model's {LENGTH} tokens (special tokens included); "
        f"{num_cut} tokens were dropped"
    ]


def test_heads_of_pretraining_say_it_too(tiny_checkpoint: Path) -> None:
    model = litebert.load(tiny_checkpoint)  # reads 64 tokens
    with pytest.warns(TextsCutWarning, match="1 of 2 texts were .* 38 tokens") as told:
        model.embed(["the cat", "the " * 100])
    assert told[0].filename == __file__
    with pytest.warns(TextsCutWarning, match="1 of 1 texts were .* 139 tokens"):
        model.order("the " * 100, "the " * 100)


def test_texts_that_fit_are_not_spoken_of_and_a_listener_hears_each(load: Callable[[str], litebert.Predictor]) -> None:
    model, heard = load("classify"), list[int]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.classify(["the cat", "the " * (LENGTH - 2)])
        model.classify(["the cat", LONG, "a " * 15], report_cut=heard.extend)
    assert heard == [0, 6, 1]


def test_predict_says_what_was_cut_on_standard_error(
    load: Callable[[str], litebert.Predictor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = load("classify")
    (tmp_path / "texts.txt").write_text(f"the cat\n{LONG}\n{LONG}the\n")
    assert _run(["predict", str(model.checkpoint.path), str(tmp_path / "texts.txt")], debug=False) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 3
    assert (
        "note: 2 of 3 texts were truncated to the model's 16 tokens (special tokens included); 13 tokens" in shown.err
    )
