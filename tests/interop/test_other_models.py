"""Models that are BERT or RoBERTa by computation, and others that are not; transformers is the judge."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from refusals import refuses
from torch import Tensor

from litebert import load_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.doctor import diagnose
from litebert.interop.source import LoadOptions
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.text.tokenizer import Tokenizer

SHAPE = {
    "vocab_size": 100,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 34,
    "initializer_range": 0.2,
}
DISTILBERT = {
    "vocab_size": 100,
    "dim": 16,
    "n_layers": 3,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 34,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "xlm-roberta": ("XLMRoberta", SHAPE),
    "camembert": ("Camembert", SHAPE),
    "ernie": ("Ernie", SHAPE),
    "electra": ("Electra", SHAPE | {"embedding_size": 8}),
    "electra without projection": ("Electra", SHAPE | {"embedding_size": 16}),
    "distilbert": ("DistilBert", DISTILBERT),
}
WITHOUT_HEADS = LoadOptions(allows_missing_heads=True)


@dataclass(frozen=True)
class Theirs:
    """A model of transformers with random weights everywhere, saved with a tokenizer."""

    model: Any
    folder: Path


@pytest.fixture
def make_theirs(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Callable[..., Theirs]:
    def make(name: str, suffix: str, **changes: Any) -> Theirs:
        prefix, shape = MODELS[name]
        config = getattr(transformers, f"{prefix}Config")(**(shape | changes))
        torch.manual_seed(1)
        model = getattr(transformers, prefix + suffix)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.save_pretrained(tmp_path / "theirs")
        write_tokenizer_files(tiny_tokenizer, tmp_path / "theirs", max_length=32)
        return Theirs(model, tmp_path / "theirs")

    return make


def draw_ids() -> Tensor:
    return torch.randint(5, 100, (3, 9), generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def hidden_states(model: Any) -> Tensor:
    """The last hidden states of a model of ours or theirs, with some padding."""
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[1, 6:] = False
    if isinstance(model, transformers.PreTrainedModel):
        token_ids = draw_ids()
        token_ids[~mask] = model.config.pad_token_id  # RoBERTa counts positions by it
        states: Tensor = model.base_model(token_ids, attention_mask=mask.long())[0]
    else:
        states = model.encoder(draw_ids(), mask=mask).hidden
    return states[mask]


@pytest.mark.parametrize("name", MODELS)
def test_hidden_states_and_masked_words_are_theirs(
    name: str, make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs(name, "ForMaskedLM")
    convert(theirs.folder, tmp_path / "ours")
    for folder in (theirs.folder, tmp_path / "ours"):
        ours = load_checkpoint(folder).load_model().eval()
        torch.testing.assert_close(hidden_states(ours), hidden_states(theirs.model), atol=2e-6, rtol=0)
        with torch.no_grad():
            logits = ours.masked_lm_logits(ours.encoder(draw_ids()).hidden)
            torch.testing.assert_close(logits, theirs.model(draw_ids()).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("suffix", ["Model", "ForTokenClassification", "ForQuestionAnswering"])
def test_written_for_transformers_they_stay_the_same(
    name: str, suffix: str, make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs(name, suffix)
    convert(theirs.folder, tmp_path / "back", ConvertOptions(to="huggingface"))
    back = transformers.AutoModel.from_pretrained(tmp_path / "back").eval()
    torch.testing.assert_close(hidden_states(back), hidden_states(theirs.model), atol=2e-6, rtol=0)


def test_a_model_without_a_pooler_is_written_for_transformers_and_says_so(
    make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    done = convert(make_theirs("electra", "Model").folder, tmp_path / "back", ConvertOptions(to="huggingface"))
    assert any("load it with add_pooling_layer=False" in note for note in done.notes)
    _, report = transformers.AutoModel.from_pretrained(
        tmp_path / "back", add_pooling_layer=False, output_loading_info=True
    )
    assert not any(report.values()), report


def test_the_discriminator_of_electra_is_read_without_its_head(make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs("electra", "ForPreTraining")
    checkpoint = load_checkpoint(theirs.folder)
    assert checkpoint.heads == ()
    torch.testing.assert_close(
        hidden_states(checkpoint.load_model().eval()), hidden_states(theirs.model), atol=2e-6, rtol=0
    )
    assert any("discriminator_predictions is dropped" in finding.text for finding in diagnose(theirs.folder).findings)


@pytest.mark.parametrize("name", ["electra", "distilbert"])
@pytest.mark.parametrize("suffix", ["ForSequenceClassification", "ForMultipleChoice"])
def test_a_classifier_with_another_activation_is_left_out_only_on_request(
    name: str, suffix: str, make_theirs: Callable[..., Theirs]
) -> None:
    theirs = make_theirs(name, suffix)
    with refuses(DataError, "unsupported-config"):
        load_checkpoint(theirs.folder)
    checkpoint = load_checkpoint(theirs.folder, WITHOUT_HEADS)
    assert checkpoint.heads == ()
    torch.testing.assert_close(
        hidden_states(checkpoint.load_model().eval()), hidden_states(theirs.model), atol=2e-6, rtol=0
    )


def test_a_missing_tensor_is_named_as_in_the_file(make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs("distilbert", "ForMaskedLM")
    change_config(theirs.folder, n_layers=4)
    with refuses(DataError, "tensors-mismatch", at="distilbert.transformer.layer.3.attention.k_lin.bias"):
        load_checkpoint(theirs.folder)


def test_distilbert_without_segments_is_no_problem(make_theirs: Callable[..., Theirs], tmp_path: Path) -> None:
    convert(make_theirs("distilbert", "ForMaskedLM").folder, tmp_path / "ours")
    assert {finding.level for finding in diagnose(tmp_path / "ours").findings if "zero" in finding.text} == {"warning"}


def test_the_first_task_id_of_ernie_is_added_to_the_segments(
    make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs("ernie", "ForMaskedLM", use_task_id=True, task_type_vocab_size=3)
    checkpoint = load_checkpoint(theirs.folder)
    torch.testing.assert_close(
        hidden_states(checkpoint.load_model().eval()), hidden_states(theirs.model), atol=2e-6, rtol=0
    )
    convert(theirs.folder, tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "again", ConvertOptions(to="huggingface"))
    again = load_checkpoint(tmp_path / "again").load_model().eval()
    torch.testing.assert_close(hidden_states(again), hidden_states(theirs.model), atol=2e-6, rtol=0)


def test_an_ernie_whose_task_vectors_are_missing_is_refused(make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs("ernie", "ForMaskedLM")
    change_config(theirs.folder, use_task_id=True)
    with refuses(DataError, "unsupported-config"):
        load_checkpoint(theirs.folder)


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("deberta-v2", "other attention"),
        ("mpnet", "other positions"),
        ("xlnet", "other attention"),
        ("longformer", "other attention"),
        ("modernbert", "other positions"),
        ("xlm-roberta-xl", "other layers"),
        ("unheard-of", "unknown architecture"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_the_reason(
    model_type: str, reason: str, make_theirs: Callable[..., Theirs]
) -> None:
    theirs = make_theirs("ernie", "Model")
    change_config(theirs.folder, model_type=model_type)
    with refuses(DataError, "unsupported-model-type", at=reason):
        load_checkpoint(theirs.folder)


def change_config(folder: Path, **changes: Any) -> None:
    stated = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(stated | changes), "utf-8")
