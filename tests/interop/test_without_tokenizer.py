"""Models without a tokenizer, vocabularies that do not fit exactly, and what travels with the weights."""

import json
import warnings
from pathlib import Path

import pytest
import torch
import transformers
from refusals import refuses

import litebert
from litebert import load_checkpoint
from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError, LitebertWarning
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.doctor import diagnose
from litebert.interop.source import LoadOptions

WITHOUT = LoadOptions(needs_tokenizer=False)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An ALBERT over 60 phonemes."""
    config = transformers.AlbertConfig(
        vocab_size=60,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        initializer_range=0.2,
    )
    torch.manual_seed(1)
    transformers.AlbertForMaskedLM(config).save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


@pytest.mark.parametrize("to", ["litebert", "huggingface"])
def test_a_model_that_reads_ids_is_converted_and_loaded(to: str, theirs: Path, tmp_path: Path) -> None:
    words = ["convert", str(theirs), str(tmp_path / "out"), "--to", to]
    assert _run(words, debug=False) == 2
    assert _run([*words, "--tokenizer", "none"], debug=False) == 0
    token_ids = torch.arange(5, 14)[None]
    their_model = transformers.AlbertForMaskedLM.from_pretrained(theirs).eval()
    predictor = litebert.load(tmp_path / "out", tokenizer=None)
    with torch.no_grad():
        expected = their_model.albert(token_ids)[0]
        found = predictor.model.eval().encoder(token_ids).hidden
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    with refuses(DataError, "no-tokenizer"):
        predictor.embed(["text"])
    with refuses(DataError, "no-tokenizer"):
        litebert.load(tmp_path / "out")
    with refuses(ConfigError, "no-tokenizer"):
        litebert.load(tmp_path / "out", tokenizer=None, engine="onnx")


def write_vocabulary(folder: Path, *words: str) -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *words]) + "\n", "utf-8")


def test_a_short_vocabulary_that_repeats_pieces_is_noted_everywhere(theirs: Path, tmp_path: Path) -> None:
    write_vocabulary(theirs, "the", "cat", "the", "dog")
    expected = {
        "the tokenizer has 9 pieces, but the model has 60 rows",
        "1 of 9 ids are unreachable: the vocabulary has duplicate or empty pieces",
    }
    assert expected <= set(convert(theirs, tmp_path / "ours").notes)
    assert expected <= {finding.text for finding in diagnose(theirs).findings}
    with pytest.warns(LitebertWarning, match="9 pieces, but the model has 60 rows"):
        litebert.load(theirs)


def test_a_vocabulary_that_fits_is_not_noted(theirs: Path) -> None:
    write_vocabulary(theirs, *(f"word{number}" for number in range(55)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        litebert.load(theirs)


@pytest.mark.parametrize("to", ["litebert", "huggingface"])
def test_the_card_and_the_licence_go_with_the_model(to: str, theirs: Path, tmp_path: Path) -> None:
    card = "---\nlicense: mit\nlanguage: de\n---\n# Phonemes\n\nTrained on speech.\n"
    (theirs / "README.md").write_text(card, "utf-8")
    (theirs / "LICENSE.txt").write_text("Do as you like.", "utf-8")
    (theirs / "NOTICE").write_text("Made by somebody.", "utf-8")
    options = ConvertOptions(to="huggingface" if to == "huggingface" else "litebert")
    convert(theirs, tmp_path / "out", options, WITHOUT)
    written = (tmp_path / "out/README.md").read_text("utf-8")
    assert written.startswith(card.rstrip())
    assert "Converted by litebert from `theirs`." in written
    assert (tmp_path / "out/LICENSE.txt").read_text("utf-8") == "Do as you like."
    assert (tmp_path / "out/NOTICE").read_text("utf-8") == "Made by somebody."
    assert json.loads((tmp_path / "out/config.json").read_text("utf-8"))["model_type"] == "albert"
    assert load_checkpoint(tmp_path / "out").config.vocab_size == 60
