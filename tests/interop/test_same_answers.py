"""A converted folder gives transformers our token ids and our answers."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_checkpoints import ALBERT, PRETRAINING, TO_HUGGINGFACE, load_theirs, save
from small_text import SIZES, make_sentences

from litebert import load_checkpoint
from litebert.core.runtime import RuntimeOptions, choose_runtime
from litebert.inference.engines.torch_engine import TorchEngine
from litebert.inference.fill_mask import fill_mask
from litebert.inference.session import Session
from litebert.interop.convert import convert
from litebert.model.config import HeadSpec
from litebert.text.normalize import Normalization
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "bpe"])
def test_the_tokenizer_of_an_export_gives_our_ids(kind: Any, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(make_sentences(), VocabularyOptions(kind, SIZES[kind]))
    save(tmp_path / "ours", replace(ALBERT, vocab_size=tokenizer.vocab_size), PRETRAINING, tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in ("The river builds slowly.", "Café station's (see below)", "old  engine"):
        assert theirs(text, add_special_tokens=False)["input_ids"] == tokenizer.encode(text)
    first, second = tokenizer.encode("the river"), tokenizer.encode("winter")
    pair = theirs("the river", "winter")
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    back = load_checkpoint(tmp_path / "theirs").load_tokenizer()
    assert back.encode("The river.") == tokenizer.encode("The river.")
    assert back.fingerprint == tokenizer.fingerprint


def test_the_inputs_that_the_digit_comma_rule_makes_differ_are_stated(real_data: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(real_data / "vocab/albert-30k.model")
    save(tmp_path / "ours", replace(ALBERT, vocab_size=tokenizer.vocab_size), PRETRAINING, tokenizer)
    done = convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    cut = [piece for piece in tokenizer.pieces(range(tokenizer.vocab_size)) if re.search(r"\d,$", piece)]
    assert cut
    assert f"the {len(cut):,} pieces of digits with a comma, such as '{cut[0]}'" in done.notes[-1]
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in ("In the river, a cat. 12 dogs", f"born {cut[0].strip('▁')} here"):
        is_same = theirs(text, add_special_tokens=False)["input_ids"] == tokenizer.encode(text)
        assert is_same == (cut[0].strip("▁") not in text)


def test_fill_mask_of_transformers_guesses_what_ours_does(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours = save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    pipeline = transformers.pipeline("fill-mask", model=str(tmp_path / "theirs"), top_k=100)
    text = "the old [MASK] sees a river"
    special = {tiny_tokenizer.pieces([i])[0] for i in tiny_tokenizer.special_ids}
    theirs = [(g["token_str"], g["score"]) for g in pipeline(text) if g["token_str"] not in special]
    total = sum(score for _, score in theirs)  # ours never guesses a special token
    session = Session(TorchEngine(ours, choose_runtime(RuntimeOptions(device="cpu"))), tiny_tokenizer.pad_id)
    guesses = fill_mask(session, tiny_tokenizer, text, top_k=10)[0]
    pieces = tiny_tokenizer.pieces(range(tiny_tokenizer.vocab_size))
    by_name = {pieces[g["token"]]: g["score"] for g in pipeline(text)}
    for guess in guesses:
        assert guess.probability == pytest.approx(by_name[guess.piece] / total, rel=1e-3)


def test_text_classification_of_transformers_agrees_sentence_pairs_included(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours = save(tmp_path / "ours", ALBERT, (HeadSpec("classification", 3),), tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    pipeline = transformers.pipeline("text-classification", model=str(tmp_path / "theirs"), top_k=None)
    tokenizer = tiny_tokenizer
    for first, second in (("the cat sees", None), ("the cat sees", "a river likes the dog")):
        ids = [tokenizer.cls_id, *tokenizer.encode(first), tokenizer.sep_id]
        segments = [0] * len(ids)
        if second is not None:
            more = [*tokenizer.encode(second), tokenizer.sep_id]
            ids, segments = ids + more, segments + [1] * len(more)
        with torch.no_grad():
            pooled = ours.encoder.pool_sequences(torch.tensor([ids]), torch.tensor([segments]), None)
            expected = ours.heads["classification"](pooled).softmax(-1)[0]
        inputs = {"text": first} | ({} if second is None else {"text_pair": second})
        scores = {answer["label"]: answer["score"] for answer in pipeline(inputs)}
        assert [scores[f"LABEL_{i}"] for i in range(3)] == pytest.approx(expected.tolist(), abs=1e-5)


def test_question_answering_with_transformers_finds_the_same_span(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours = save(tmp_path / "ours", ALBERT, (HeadSpec("span"),), tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    question, context = "the dog finds", "the old cat sees a river near the house"
    # its pipeline for questions is gone since version 5: this is what it did
    theirs = load_theirs(tmp_path / "theirs", "AutoModelForQuestionAnswering")
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")(question, context, return_tensors="pt")
    with torch.no_grad():
        output = theirs(**inputs)
    tokenizer = tiny_tokenizer
    first = [tokenizer.cls_id, *tokenizer.encode(question), tokenizer.sep_id]
    encoding = tokenizer.encode_with_offsets(context)
    ids = [*first, *encoding.token_ids, tokenizer.sep_id]
    segments = [0] * len(first) + [1] * (len(encoding.token_ids) + 1)
    with torch.no_grad():
        spans = ours.heads["span"](ours.encoder(torch.tensor([ids]), torch.tensor([segments])).hidden)
    assert inputs["input_ids"].tolist() == [ids]
    torch.testing.assert_close(spans.start, output.start_logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(spans.end, output.end_logits, atol=1e-5, rtol=0)
    assert inputs.char_to_token(0, context.index("river"), sequence_index=1) == len(first) + [
        start for start, _ in encoding.offsets
    ].index(context.index("river"))


@pytest.mark.parametrize("digit_comma", ["off", "intended", "google_py3"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_a_tokenizer_that_went_there_and_back_gives_the_same_ids(
    digit_comma: Any, lowercase: bool, tmp_path: Path
) -> None:
    trained = train_tokenizer(make_sentences(), VocabularyOptions("unigram", SIZES["unigram"]))
    policy = Normalization(lowercase=lowercase, drops_accents=False)
    tokenizer = Tokenizer(SentencePieceBackend(trained.model, policy, digit_comma))
    save(tmp_path / "ours", replace(ALBERT, vocab_size=tokenizer.vocab_size), PRETRAINING, tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    back = load_checkpoint(tmp_path / "theirs").load_tokenizer()
    assert (back.settings, back.fingerprint) == (tokenizer.settings, tokenizer.fingerprint)
