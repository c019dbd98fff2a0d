"""XLM-RoBERTa's and CamemBERT's tokenizers: SentencePiece with fairseq's ids; transformers is the judge."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import transformers
from small_text import make_sentences

from litebert.text.tokenizer import load_tokenizer

TEXTS = (
    "The river builds slowly.",
    "  two  spaces,\ttabs\nand lines ",
    "ﬁne café Ｆull width",
    "unknown 漢字 and <s> ▁ typed",
    "",
    "1,000 of 2010, (see below)",
)
CLASSES = {"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"}


@pytest.fixture(scope="module")
def model() -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_sentences()), model_writer=written, vocab_size=200, minloglevel=2
    )
    return written.getvalue()


@pytest.fixture(params=CLASSES)
def theirs(request: pytest.FixtureRequest, model: bytes, tmp_path: Path) -> Any:
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": request.param}), "utf-8")
    return getattr(transformers, CLASSES[request.param]).from_pretrained(tmp_path)


@pytest.mark.parametrize("has_json", [False, True])
def test_ids_are_theirs_with_and_without_a_tokenizer_json(has_json: bool, theirs: Any, tmp_path: Path) -> None:
    if has_json:
        theirs.save_pretrained(tmp_path)
        assert (tmp_path / "tokenizer.json").is_file()
    ours = load_tokenizer(tmp_path)
    assert ours.vocab_size == len(theirs)
    for name in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(ours, f"{name}_id") == getattr(theirs, f"{name}_token_id")
    for text in TEXTS:
        if "<s>" not in text:  # which is a special token to them, and four letters to us
            assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"], text
    ours.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").encode(TEXTS[0]) == ours.encode(TEXTS[0])
