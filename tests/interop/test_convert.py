"""What a conversion makes of a model: exactly the same one, or a refusal that says why."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refuses
from small_checkpoints import ALBERT, PRETRAINING, TO_HUGGINGFACE, load_theirs, masked_lm_logits, save, weights_equal
from small_text import SIZES, make_sentences

from litebert import load_checkpoint
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.errors import ConfigError, LitebertError
from litebert.interop.convert import ConvertOptions, Target, convert
from litebert.interop.lengthening import Lengthening
from litebert.interop.truncating import truncate_config
from litebert.model.config import HeadSpec
from litebert.model.heads import SpanLogits
from litebert.model.model import Model, build_model
from litebert.model.presets import PRESETS
from litebert.model.sharing import Sharing
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

SHARINGS: list[tuple[Sharing, dict[str, Any], str]] = [
    ("all", {}, "AlbertForPreTraining"),
    ("groups", {"num_groups": 2}, "AlbertForPreTraining"),
    ("none", {}, "AlbertForPreTraining"),
    ("none", {"embedding_size": 16}, "BertForPreTraining"),
    ("none", {"embedding_size": 16, "projection": "always"}, "AlbertForPreTraining"),
    ("attention", {}, "AlbertForPreTraining"),
    ("ffn", {}, "AlbertForPreTraining"),
    ("ffn", {"embedding_size": 16}, "BertForPreTraining"),
    ("attention", {"num_inner": 2}, "AlbertForPreTraining"),
    ("sandwich", {}, "AlbertForPreTraining"),
    ("map", {"layer_map": ((0, 1), (1, 0), (0, 0), (2, 1))}, "AlbertForPreTraining"),
]


@pytest.mark.parametrize(("sharing", "changes", "class_name"), SHARINGS)
def test_every_sharing_goes_to_transformers_as_something_that_computes_the_same(
    sharing: Sharing, changes: dict[str, Any], class_name: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours = save(tmp_path / "ours", replace(ALBERT, sharing=sharing, **changes), PRETRAINING, tiny_tokenizer)
    done = convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    assert done.written_as == class_name
    theirs = load_theirs(tmp_path / "theirs", "AutoModelForPreTraining")
    assert type(theirs).__name__ == class_name
    token_ids = torch.arange(5, 45).view(2, 20)
    with torch.no_grad():
        expected = theirs(token_ids).prediction_logits
    torch.testing.assert_close(masked_lm_logits(ours, token_ids), expected, atol=1e-5, rtol=0)
    is_unrolled = sharing in ("attention", "ffn", "sandwich", "map")
    assert any("separate layers" in note for note in done.notes) == is_unrolled
    convert(tmp_path / "theirs", tmp_path / "back")
    if not is_unrolled:
        assert weights_equal(tmp_path / "ours", tmp_path / "back")
        assert load_checkpoint(tmp_path / "back").config.layer_plan == ours.config.layer_plan
    back = load_checkpoint(tmp_path / "back").load_model().eval()
    torch.testing.assert_close(masked_lm_logits(back, token_ids), masked_lm_logits(ours, token_ids), atol=0, rtol=0)


HEADS: list[tuple[tuple[HeadSpec, ...], str]] = [
    ((), "AutoModel"),
    ((HeadSpec("mlm"),), "AutoModelForMaskedLM"),
    (PRETRAINING, "AutoModelForPreTraining"),
    ((HeadSpec("mlm"), HeadSpec("sentence", 3)), "AutoModelForPreTraining"),
    ((HeadSpec("classification", 3),), "AutoModelForSequenceClassification"),
    ((HeadSpec("classification", 1),), "AutoModelForSequenceClassification"),
    ((HeadSpec("tokens", 5),), "AutoModelForTokenClassification"),
    ((HeadSpec("span"),), "AutoModelForQuestionAnswering"),
    ((HeadSpec("choice"),), "AutoModelForMultipleChoice"),
]


@pytest.mark.parametrize(("heads", "auto_class"), HEADS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_every_head_goes_there_and_back(
    family: str, heads: tuple[HeadSpec, ...], auto_class: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config, tokenizer = ALBERT, tiny_tokenizer
    if family != "albert":
        config = replace(ALBERT, embedding_size=16, sharing="none", activation="gelu")
    if family == "roberta":
        tokenizer = train_tokenizer(make_sentences(), VocabularyOptions("bpe", SIZES["bpe"]))
        config = replace(config, num_segments=1, vocab_size=tokenizer.vocab_size, norm_epsilon=1e-5)
    ours = save(tmp_path / "ours", config, heads, tokenizer)
    done = convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    theirs = load_theirs(tmp_path / "theirs", auto_class)
    assert type(theirs).__name__ == done.written_as
    # RoBERTa has no head for sentences, and BERT's has two labels: another family then computes the same
    sentence = next((spec.num_labels for spec in heads if spec.kind == "sentence"), 0)
    expected = "albert" if sentence == 3 else "bert" if (family, sentence) == ("roberta", 2) else family
    assert done.written_as.lower().startswith(expected)
    compare_heads(ours, theirs)
    convert(tmp_path / "theirs", tmp_path / "back")
    back = load_checkpoint(tmp_path / "back")
    assert back.heads == heads
    before = {n: t for n, t in ours.state_dict().items() if back.config.has_pooler or "pooler" not in n}
    assert {n: t.tolist() for n, t in back.load_weights().items()} == {n: t.tolist() for n, t in before.items()}


def compare_heads(ours: Model, theirs: Any) -> None:
    """The same input gives the same logits, whatever the head."""
    token_ids = torch.arange(5, 47).view(6, 7)
    with torch.no_grad():
        hidden = ours.encoder(token_ids).hidden
        pooled = ours.encoder.pool(hidden[:, 0]) if ours.encoder.pooler is not None else None
        expected = theirs(token_ids.view(2, 3, 7) if "choice" in ours.heads else token_ids)
        found: Any
        if "mlm" in ours.heads:
            found, expected = ours.masked_lm_logits(hidden), expected[0]
        elif "span" in ours.heads:
            spans = ours.heads["span"](hidden)
            assert isinstance(spans, SpanLogits)
            found, expected = torch.stack(spans), torch.stack([expected.start_logits, expected.end_logits])
        elif "tokens" in ours.heads:
            found, expected = ours.heads["tokens"](hidden), expected.logits
        elif "choice" in ours.heads:
            found, expected = ours.heads["choice"](pooled, 3), expected.logits
        elif "classification" in ours.heads:
            found, expected = ours.heads["classification"](pooled), expected.logits
        else:
            found, expected = hidden, expected.last_hidden_state
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_at_toy_size_goes_there_and_back(name: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    published = PRESETS[name].config
    hidden_size = 4 * published.num_heads
    config = replace(
        published,
        vocab_size=100,
        hidden_size=hidden_size,
        embedding_size=hidden_size if published.embedding_size == published.hidden_size else 8,
        ffn_size=20,
        num_layers=min(published.num_layers, 3),
        max_positions=16,
    )
    save(tmp_path / "ours", config, (HeadSpec("mlm"),), tiny_tokenizer)
    convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    convert(tmp_path / "theirs", tmp_path / "back")
    expected = {n: t for n, t in load_checkpoint(tmp_path / "ours").load_weights().items() if "pooler" not in n}
    found = load_checkpoint(tmp_path / "back").load_weights()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[n], t) for n, t in expected.items())
    back = load_checkpoint(tmp_path / "back").config
    assert replace(back, has_pooler=True, classifier_dropout_rate=config.classifier_dropout_rate) == config


@pytest.mark.parametrize(
    ("heads", "code"),
    [
        ((HeadSpec("conditional_span"),), "no-transformers-class"),
        ((*PRETRAINING, HeadSpec("classification")), "no-transformers-class"),
    ],
)
def test_heads_that_transformers_has_no_class_for_are_refused_with_the_reason(
    heads: tuple[HeadSpec, ...], code: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "ours", ALBERT, heads, tiny_tokenizer)
    with refuses(ConfigError, code):
        convert(tmp_path / "ours", tmp_path / "theirs", TO_HUGGINGFACE)
    assert not (tmp_path / "theirs").exists()


def test_heads_can_be_left_out(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save(tmp_path / "ours", ALBERT, (*PRETRAINING, HeadSpec("classification", 3)), tiny_tokenizer)
    options = ConvertOptions(to="huggingface", heads=("classification",))
    done = convert(tmp_path / "ours", tmp_path / "theirs", options)
    assert done.notes[0] == "dropped heads: mlm, sentence"
    load_theirs(tmp_path / "theirs", "AutoModelForSequenceClassification")
    with refuses(ConfigError, "no-head"):
        convert(tmp_path / "ours", tmp_path / "other", replace(options, heads=("span",)))


def test_bert_becomes_a_shared_albert_by_averaging_and_says_that_it_is_a_beginning(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    bert = replace(ALBERT, embedding_size=16, sharing="none")
    ours = save(tmp_path / "bert", bert, PRETRAINING, tiny_tokenizer)
    done = convert(tmp_path / "bert", tmp_path / "albert", ConvertOptions(sharing="all"))
    assert "initialization" in done.notes[-1]
    assert "initialization" in (tmp_path / "albert/README.md").read_text("utf-8")
    shared = load_checkpoint(tmp_path / "albert")
    assert shared.config == replace(bert, sharing="all")
    weights = shared.load_weights()
    state = ours.state_dict()
    mean = sum(state[f"encoder.ffn.{layer}.up.weight"] for layer in range(4)) / 4
    torch.testing.assert_close(weights["encoder.ffn.0.up.weight"], mean)
    assert torch.equal(weights["encoder.embeddings.token.weight"], state["encoder.embeddings.token.weight"])


def test_a_sandwich_that_was_cut_has_no_last_layer_of_its_own() -> None:
    cut = truncate_config(replace(ALBERT, sharing="sandwich"), 3)
    assert cut.layer_plan.rows == ((0, 0), (1, 1), (1, 1))


@pytest.mark.parametrize("to", ["litebert", "huggingface"])
def test_a_model_that_was_cut_keeps_its_recipe_and_its_card(
    to: Target, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    done = convert(tmp_path / "ours", tmp_path / "cut", ConvertOptions(to=to, layers=3))
    assert "truncated to 3 of 4 layers" in done.notes[0]
    card = (tmp_path / "cut" / "README.md").read_text("utf-8")
    assert card.startswith("# ours\n")
    assert done.notes[0] in card
    if to == "litebert":
        assert load_checkpoint(tmp_path / "cut").recipe_toml == "seed = 1\n"


@pytest.mark.parametrize("to", ["litebert", "huggingface"])
def test_half_precision_is_half_the_file_rounded_once_and_computed_in_full(
    to: Target, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours = save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    done = convert(tmp_path / "ours", tmp_path / "half", ConvertOptions(to=to, dtype="float16"))
    files = [tmp_path / name / "model.safetensors" for name in ("ours", "half")]
    whole, half = (file.stat().st_size for file in files)
    assert {file.stat().st_mode for file in files} == {(tmp_path / "half/README.md").stat().st_mode}
    assert half < 0.6 * whole
    assert "stored as float16" in done.notes[-1]
    card = (tmp_path / "half/README.md").read_text("utf-8")
    assert card.startswith("# ours\n")
    assert done.notes[-1] in card
    loaded = load_checkpoint(tmp_path / "half").load_model()
    for parameter, original in zip(loaded.parameters(), ours.parameters(), strict=True):
        assert torch.equal(parameter, original.half().float())


def test_numbers_that_half_precision_cannot_hold_are_refused(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_model(ALBERT, PRETRAINING)
    with torch.no_grad():
        model.heads["mlm"].bias[3] = 1e6
    save_checkpoint(tmp_path / "ours", model, tiny_tokenizer, CheckpointContent(step=7, card=""))
    with refuses(ConfigError, "value-overflow", at="heads.mlm.bias"):
        convert(tmp_path / "ours", tmp_path / "half", ConvertOptions(dtype="float16"))
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn"])
def test_an_unshared_model_computes_what_the_shared_one_did(
    sharing: Sharing, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours = save(tmp_path / "shared", replace(ALBERT, sharing=sharing), PRETRAINING, tiny_tokenizer)
    convert(tmp_path / "shared", tmp_path / "unshared", ConvertOptions(sharing="none"))
    unshared = load_checkpoint(tmp_path / "unshared")
    assert unshared.config.sharing == "none"
    token_ids = torch.arange(5, 45).view(2, 20)
    assert torch.equal(masked_lm_logits(unshared.load_model().eval(), token_ids), masked_lm_logits(ours, token_ids))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (ConvertOptions(sharing="ffn"), "unsupported-sharing"),
        (ConvertOptions(keeps_slots=True, sharing="none"), "conflicting-options"),
        (ConvertOptions(keeps_slots=True, to="huggingface"), "conflicting-options"),
        (ConvertOptions(keeps_slots=True), "no-optimizer"),
    ],
)
def test_load_options_that_do_not_apply_are_refused(
    options: ConvertOptions, code: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    with refuses(LitebertError, code):
        convert(tmp_path / "ours", tmp_path / "out", options)
    assert not (tmp_path / "out").exists()
    with refuses(ConfigError, "output-exists"):
        convert(tmp_path / "ours", tmp_path / "ours")


def test_a_run_stands_for_its_last_checkpoint(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    for step in (1, 2):
        save(tmp_path / f"run/checkpoints/step-0000000{step}", ALBERT, PRETRAINING, tiny_tokenizer)
    assert load_checkpoint(tmp_path / "run").path.name == "step-00000002"
    save(tmp_path / "run/model", ALBERT, PRETRAINING, tiny_tokenizer)
    assert load_checkpoint(tmp_path / "run").path.name == "model"


def test_a_model_with_more_positions_computes_the_same_where_the_old_ones_suffice(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours = save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    longer = Lengthening(max_positions=600, attention="window", attention_width=100)
    done = convert(tmp_path / "ours", tmp_path / "longer", ConvertOptions(lengthening=longer))
    assert "untrained" in done.notes[0]
    checkpoint = load_checkpoint(tmp_path / "longer")
    assert (checkpoint.config.max_positions, checkpoint.config.attention_width) == (600, 100)
    model = checkpoint.load_model().eval()
    token_ids = torch.arange(5, 45).view(2, 20)
    torch.testing.assert_close(masked_lm_logits(model, token_ids), masked_lm_logits(ours, token_ids), atol=0, rtol=0)
    assert masked_lm_logits(model, token_ids.repeat(1, 30)).isfinite().all()


def test_what_cannot_express_sparse_attention_refuses_it(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save(tmp_path / "ours", ALBERT, PRETRAINING, tiny_tokenizer)
    window = Lengthening(attention="window")
    with refuses(ConfigError, "no-transformers-class", at="attention = 'window'"):
        convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface", lengthening=window))
    convert(tmp_path / "ours", tmp_path / "window", ConvertOptions(lengthening=window))
    assert not (tmp_path / "window" / "config.json").exists()  # which would claim that transformers can load it
    for lengthening in (Lengthening(max_positions=3), Lengthening(attention_width=5)):
        with refuses(ConfigError, "out-of-range" if lengthening.max_positions else "conflicting-keys"):
            convert(tmp_path / "ours", tmp_path / "none", ConvertOptions(lengthening=lengthening))
    assert not (tmp_path / "none").exists()
