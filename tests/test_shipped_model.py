"""The model in this repository is small, sound, and has learned: it guesses what any reader would."""

from pathlib import Path

import pytest

import litebert
from litebert.checkpoint import load_checkpoint
from litebert.inference.predictor import Predictor
from litebert.verify import verify

MODEL = Path(__file__).parents[1] / "models" / "cpu-small-en"


@pytest.fixture(scope="module")
def model() -> Predictor:
    return litebert.load(MODEL)


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in MODEL.rglob("*") if file.is_file()) < 12e6
    assert {str(tensor.dtype) for tensor in load_checkpoint(MODEL).load_weights().values()} == {"torch.float16"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("He was born [MASK] 1950 in a small village.", "▁in"),
        ("The river flows into [MASK] sea.", "▁the"),
        ("She studied at the [MASK] of Oxford.", "▁university"),
        ("He is the son [MASK] a farmer.", "▁of"),
        ("The album was [MASK] in 1998 on their own label.", "▁released"),
        ("They moved to New [MASK] city.", "▁york"),
        ("It is one of the [MASK] important works of the period.", "▁most"),
    ],
)
def test_it_guesses_what_any_reader_would(text: str, word: str, model: Predictor) -> None:
    assert model.fill_mask(text)[0][0].piece == word


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The lake is a small lake in the north of Finland.", "It is nine kilometres long and drains to the south."),
        ("Anna Berg (born 4 May 1961) is a Swedish painter.", "She studied in Paris and has lived there since 1990."),
    ],
)
def test_it_knows_how_an_article_begins(first: str, second: str, model: Predictor) -> None:
    assert model.order(first, second) > 0.9
    assert model.order(second, first) < 0.1


def test_every_file_of_it_is_verified() -> None:
    checkpoint, tokenizer = verify(MODEL)
    assert checkpoint.problems == checkpoint.notes == tokenizer.problems == ()
