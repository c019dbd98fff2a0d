"""Filling gaps: the mark is ours and never the tokenizer's, and its neighbours are encoded as beside a word."""

from dataclasses import replace

import pytest
import torch
from refusals import refuses

from litebert.core.errors import DataError
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.engines.torch_engine import TorchEngine
from litebert.inference.fill_mask import encode_masked, fill_mask
from litebert.inference.session import Session
from litebert.model.model import build_model
from litebert.model.presets import preset
from litebert.text.tokenizer import Kind, Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

WORDS = ("the list of a dictionary holds many values", "call the function (with two arguments), then stop.")


@pytest.fixture(scope="module", params=["unigram", "wordpiece", "bpe"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind: Kind = request.param
    sizes = {"unigram": 45, "wordpiece": 80, "bpe": 300}
    return train_tokenizer(WORDS * 20, VocabularyOptions(kind=kind, vocab_size=sizes[kind]))


@pytest.mark.parametrize(
    "text", ["[MASK] list of values", "call the [MASK], then ([MASK]) stop.", "a dictionary [MASK]"]
)
def test_only_the_marks_differ_from_a_text_with_words_there(tokenizer: Tokenizer, text: str) -> None:
    token_ids, places = encode_masked(tokenizer, text)
    assert [token_ids[place] for place in places] == [tokenizer.mask_id] * text.count("[MASK]")
    assert token_ids.count(tokenizer.mask_id) == text.count("[MASK]")
    with_words = tokenizer.encode(text.replace("[MASK]", "the"))
    the = {token_id for word in ("the", " the", "(the") for token_id in tokenizer.encode(word)} - set(
        tokenizer.encode("(")
    )
    assert [i for i in token_ids if i != tokenizer.mask_id and i not in the] == [i for i in with_words if i not in the]


def test_the_mark_of_the_tokenizer_itself_is_a_mark_too(tokenizer: Tokenizer) -> None:
    (own,) = tokenizer.pieces([tokenizer.mask_id])
    assert own == ("<mask>" if tokenizer.kind == "bpe" else "[MASK]")
    assert encode_masked(tokenizer, f"call the {own}, then") == encode_masked(tokenizer, "call the [MASK], then")


def test_a_text_without_a_mark_is_refused_with_the_remedy(tokenizer: Tokenizer) -> None:
    with refuses(DataError, "no-mask"):
        encode_masked(tokenizer, "nothing to guess")


def test_a_mark_inside_a_word_is_refused_where_pieces_would_run_across_it() -> None:
    texts = ["bathed breathed loathed"] * 20  # no piece ends where "the" does
    tokenizer = train_tokenizer(texts, VocabularyOptions(kind="wordpiece", vocab_size=31))
    with refuses(DataError, "no-mask"):
        encode_masked(tokenizer, "ba[MASK]d")


@pytest.mark.parametrize("num_spare", [0, 3])
def test_the_guesses_are_the_most_probable_pieces_and_no_spare_rows(tokenizer: Tokenizer, num_spare: int) -> None:
    config = replace(preset("nano"), vocab_size=tokenizer.vocab_size + num_spare)
    model = build_model(config, ["mlm"], seed=3)
    model.state_dict()["heads.mlm.bias"][tokenizer.vocab_size :] = 9.0
    session = Session(TorchEngine(model, choose_runtime(RuntimeOptions(device="cpu"))), tokenizer.pad_id)
    (first, second) = fill_mask(session, tokenizer, "the [MASK] of a [MASK]", top_k=4)
    token_ids, places = encode_masked(tokenizer, "the [MASK] of a [MASK]")
    whole = torch.tensor([[tokenizer.cls_id, *token_ids, tokenizer.sep_id]])
    with torch.no_grad():
        logits = model.masked_lm_logits(model.encoder(whole).hidden)[0]
    for guesses, place in zip((first, second), places, strict=True):
        probabilities = [guess.probability for guess in guesses]
        assert probabilities == sorted(probabilities, reverse=True)
        assert len({guess.piece for guess in guesses}) == 4
        allowed = [i for i in range(tokenizer.vocab_size) if i not in tokenizer.special_ids]
        best = max(allowed, key=lambda i: float(logits[place + 1, i]))
        assert guesses[0].piece == tokenizer.pieces([best])[0]
