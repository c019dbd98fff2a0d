"""A checkpoint is a directory that transformers loads as it lies, with the same numbers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
import transformers
from small_configs import NARROW
from small_text import SIZES, make_sentences

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.model.config import Activation, HeadKind, HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.model.sharing import Sharing
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

ALBERT = replace(NARROW, num_layers=4, initializer_range=0.3)
BERT = replace(ALBERT, embedding_size=16, sharing="none")
PRETRAINING = [HeadSpec("mlm"), HeadSpec("sentence")]


def save(path: Path, config: ModelConfig, heads: Sequence[HeadSpec], tokenizer: Tokenizer) -> None:
    save_checkpoint(path, build_model(config, heads), tokenizer, CheckpointContent(step=7))


@pytest.mark.parametrize("kind", get_args(HeadKind))
@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none", "groups"])
@pytest.mark.parametrize("embedding_size", [8, 16])
def test_what_is_loaded_is_what_was_saved(
    sharing: Sharing, kind: HeadKind, embedding_size: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = replace(ALBERT, sharing=sharing, num_groups=2 if sharing == "groups" else 1, embedding_size=embedding_size)
    model = build_model(config, [HeadSpec(kind, 3)])
    save_checkpoint(tmp_path / "saved", model, tiny_tokenizer, CheckpointContent(step=7))
    checkpoint = load_checkpoint(tmp_path / "saved")
    loaded = checkpoint.load_model()
    assert (loaded.config, loaded.head_specs, checkpoint.step) == (config, model.head_specs, 7)
    assert checkpoint.load_tokenizer().fingerprint == tiny_tokenizer.fingerprint
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


@pytest.mark.parametrize(
    ("config", "class_name"),
    [
        pytest.param(ALBERT, "AlbertForPreTraining", id="albert"),
        pytest.param(replace(ALBERT, sharing="groups", num_groups=2), "AlbertForPreTraining", id="groups"),
        pytest.param(replace(ALBERT, embedding_size=16), "AlbertForPreTraining", id="E=H"),
        pytest.param(BERT, "BertForPreTraining", id="bert"),
    ],
)
def test_transformers_loads_a_checkpoint_with_nothing_missing_and_the_same_logits(
    config: ModelConfig, class_name: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "saved", config, PRETRAINING, tiny_tokenizer)
    theirs, report = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert type(theirs).__name__ == class_name
    assert not any(report.values()), report
    ours = load_checkpoint(tmp_path / "saved").load_model().eval()
    token_ids = torch.arange(20).view(2, 10)
    with torch.no_grad():
        hidden = ours.encoder(token_ids).hidden
        theirs_out = theirs.eval()(token_ids)
    torch.testing.assert_close(ours.masked_lm_logits(hidden), theirs_out.prediction_logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("activation", "layout"), [("gelu", "roberta"), ("gelu_tanh", None), ("relu", None)])
def test_a_roberta_head_is_theirs_only_with_the_activation_that_theirs_always_has(
    activation: Activation, layout: str | None, tmp_path: Path
) -> None:
    tokenizer = train_tokenizer(make_sentences(), VocabularyOptions("bpe", SIZES["bpe"]))
    config = replace(BERT, vocab_size=tokenizer.vocab_size, num_segments=1, activation=activation)
    save(tmp_path / "saved", config, [HeadSpec("mlm")], tokenizer)
    checkpoint = load_checkpoint(tmp_path / "saved")
    assert checkpoint.layout == layout
    if layout is not None:
        token_ids = torch.arange(5, 25).view(2, 10)
        ours = checkpoint.load_model().eval()
        theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "saved").eval()
        with torch.no_grad():
            logits = ours.masked_lm_logits(ours.encoder(token_ids).hidden)
            torch.testing.assert_close(logits, theirs(token_ids).logits, atol=1e-5, rtol=0)


def test_what_transformers_cannot_express_is_not_dressed_up_as_if_it_could(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "saved", replace(ALBERT, sharing="attention"), PRETRAINING, tiny_tokenizer)
    assert load_checkpoint(tmp_path / "saved").layout is None
    assert not (tmp_path / "saved" / "config.json").exists()
