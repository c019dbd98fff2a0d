"""The same weights give the same numbers here and in transformers.

Compared without dropout: transformers leaves out ALBERT's dropout after the feed-forward block and adds one before the
sentence-order layer; we follow Google's code there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from litebert.interop.names import Family, name_table
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import Model, build_model

SMALL = ModelConfig(
    vocab_size=97,
    embedding_size=10,
    hidden_size=24,
    ffn_size=50,  # not 4 H
    num_layers=6,
    num_heads=3,
    max_positions=21,
    hidden_dropout_rate=0.0,
    attention_dropout_rate=0.0,
    classifier_dropout_rate=0.0,
    initializer_range=0.2,  # large enough for differences to show
)
ALBERTS = {
    "all": SMALL,
    "groups-2": replace(SMALL, sharing="groups", num_groups=2),
    "groups-3": replace(SMALL, sharing="groups", num_groups=3),
    "groups-uneven": replace(SMALL, num_layers=5, sharing="groups", num_groups=2),
    "groups-L": replace(SMALL, sharing="none"),
    "inner-2": replace(SMALL, num_layers=3, sharing="groups", num_groups=3, num_inner=2),
    "inner-3-all": replace(SMALL, num_layers=2, num_inner=3),
    "E=H": replace(SMALL, embedding_size=24),
    "E=H-projected": replace(SMALL, embedding_size=24, projection="always"),
    "one-head-one-layer": replace(SMALL, num_layers=1, num_heads=1),
    "relu": replace(SMALL, activation="relu"),
    "erf": replace(SMALL, activation="gelu"),
}
BERT = replace(SMALL, embedding_size=24, sharing="none", activation="gelu")
ROBERTA = replace(BERT, num_segments=1, norm_epsilon=1e-5)
THEIR_ACTIVATION = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}


def their_config(family: Family, config: ModelConfig, **extra: Any) -> transformers.PreTrainedConfig:
    shape: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.ffn_size,
        "hidden_act": THEIR_ACTIVATION[config.activation],
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.0,
        "max_position_embeddings": config.max_positions,
        "type_vocab_size": config.num_segments,
        "initializer_range": config.initializer_range,
        "layer_norm_eps": config.norm_epsilon,
    }
    if family == "albert":
        num_groups = {"all": 1, "groups": config.num_groups, "none": config.num_layers}[config.sharing]
        shape |= {
            "embedding_size": config.embedding_size,
            "num_hidden_groups": num_groups,
            "inner_group_num": config.num_inner,
        }
        return transformers.AlbertConfig(**shape, **extra)
    if family == "bert":
        return transformers.BertConfig(**shape, **extra)
    shape["max_position_embeddings"] += 2  # two rows that are never read
    return transformers.RobertaConfig(**shape, pad_token_id=1, **extra)


@dataclass
class Pair:
    """Their model and ours with the same random weights, and inputs with padding and segments."""

    theirs: nn.Module
    ours: Model
    token_ids: Tensor
    segment_ids: Tensor
    mask: Tensor

    def their_inputs(self) -> dict[str, Tensor]:
        return {
            "input_ids": self.token_ids,
            "token_type_ids": self.segment_ids,
            "attention_mask": self.mask.long(),
        }


def make_pair(family: Family, class_name: str, config: ModelConfig, heads: Sequence[HeadSpec], **extra: Any) -> Pair:
    torch.manual_seed(1)
    theirs = getattr(transformers, class_name)(their_config(family, config, **extra))
    with torch.no_grad():
        for parameter in theirs.parameters():  # biases and norms too: a zero bias would hide a missing one
            parameter.add_(0.1 * torch.randn_like(parameter))
        if family == "albert" and not config.has_projection:
            mapping = theirs.get_submodule("albert.encoder.embedding_hidden_mapping_in")
            mapping.weight.copy_(torch.eye(config.hidden_size))  # their identity is our absence
            mapping.bias.zero_()
    ours = build_model(config, heads)
    copy_weights(family, theirs, ours)
    generator = torch.Generator().manual_seed(2)
    token_ids = torch.randint(2, config.vocab_size, (3, 17), generator=generator)
    segment_ids = torch.randint(0, config.num_segments, (3, 17), generator=generator)
    mask = torch.arange(17) < torch.tensor([17, 9, 1])[:, None]
    if family == "roberta":  # their positions are counted from the padding id
        token_ids[~mask] = 1
    return Pair(theirs.eval(), ours.eval(), token_ids, segment_ids, mask)


def copy_weights(family: Family, theirs: nn.Module, ours: Model) -> None:
    table = name_table(family, ours.config, ours.head_specs)
    state = theirs.state_dict()
    weights = {our_name: state[their_name] for our_name, their_name in table.items()}
    if family == "roberta":
        weights["encoder.embeddings.position.weight"] = weights["encoder.embeddings.position.weight"][2:]
    ours.load_state_dict(weights, strict=True)
    left_over = set(state) - set(table.values())
    assert all("decoder" in name or "embedding_hidden_mapping_in" in name for name in left_over), left_over


def assert_close(ours: Tensor, theirs: Tensor, mask: Tensor | None = None) -> None:
    if mask is not None:
        ours, theirs = ours[mask], theirs[mask]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def assert_same_gradients(family: Family, pair: Pair) -> None:
    their_gradients = {name: p.grad for name, p in pair.theirs.named_parameters()}
    largest = max(float(gradient.abs().max()) for gradient in their_gradients.values() if gradient is not None)
    table = name_table(family, pair.ours.config, pair.ours.head_specs)
    for name, parameter in pair.ours.named_parameters():
        theirs = their_gradients[table[name]]
        if family == "roberta" and name == "encoder.embeddings.position.weight":
            theirs = theirs[2:] if theirs is not None else None
        if parameter.grad is None:
            assert theirs is None, name
            continue
        assert theirs is not None, name
        # each tensor by its own scale; but a key's bias cannot change a softmax: its gradient is all rounding noise
        scale = max(float(theirs.abs().max()), 1e-2 * largest)
        torch.testing.assert_close(parameter.grad / scale, theirs / scale, atol=1e-4, rtol=0, msg=name)


PRETRAINING: list[Any] = [
    pytest.param("albert", "AlbertForPreTraining", config, id=f"albert-{name}") for name, config in ALBERTS.items()
]
PRETRAINING += [
    pytest.param("bert", "BertForPreTraining", BERT, id="bert"),
    pytest.param("bert", "BertForPreTraining", replace(BERT, activation="gelu_tanh"), id="bert-tanh"),
    pytest.param("roberta", "RobertaForMaskedLM", replace(ROBERTA, has_pooler=False), id="roberta"),
]


@pytest.mark.parametrize(("family", "class_name", "config"), PRETRAINING)
def test_pretraining_states_logits_loss_and_gradients_agree(
    family: Family, class_name: str, config: ModelConfig
) -> None:
    has_sentence = family != "roberta"
    heads = [HeadSpec("mlm"), *([HeadSpec("sentence")] if has_sentence else [])]
    pair = make_pair(family, class_name, config, heads)
    targets = torch.where(pair.mask & (pair.token_ids % 3 == 0), pair.token_ids, -100)
    sentence_labels = torch.tensor([0, 1, 1])
    labels = {"labels": targets}
    if has_sentence:
        labels[{"albert": "sentence_order_label", "bert": "next_sentence_label"}[family]] = sentence_labels
    theirs = pair.theirs(**pair.their_inputs(), **labels, output_hidden_states=True)
    ours = pair.ours.encoder(pair.token_ids, pair.segment_ids, pair.mask, return_layers=True)

    for our_layer, their_layer in zip(ours.layers, theirs.hidden_states, strict=True):
        assert_close(our_layer, their_layer, pair.mask)
    positions = (targets != -100).flatten().nonzero().squeeze(1)
    logits = pair.ours.masked_lm_logits(ours.hidden, positions)
    their_logits = theirs.prediction_logits if has_sentence else theirs.logits
    assert_close(logits, their_logits.flatten(0, 1)[positions])
    assert_close(pair.ours.masked_lm_logits(ours.hidden), their_logits, pair.mask)
    loss = F.cross_entropy(logits, targets.flatten()[positions])
    if has_sentence:
        sentence_logits = pair.ours.heads["sentence"](pair.ours.encoder.pool(ours.hidden[:, 0]))
        their_sentence = theirs.sop_logits if family == "albert" else theirs.seq_relationship_logits
        assert_close(sentence_logits, their_sentence)
        loss = loss + F.cross_entropy(sentence_logits, sentence_labels)

    torch.testing.assert_close(loss, theirs.loss, rtol=1e-4, atol=0)
    loss.backward()
    theirs.loss.backward()
    assert_same_gradients(family, pair)


@pytest.mark.parametrize("config", [ALBERTS["all"], ALBERTS["groups-3"], BERT], ids=["albert", "groups", "bert"])
def test_pooled_output_agrees(config: ModelConfig) -> None:
    family: Family = "bert" if config is BERT else "albert"
    class_name = {"albert": "AlbertForPreTraining", "bert": "BertForPreTraining"}[family]
    pair = make_pair(family, class_name, config, [HeadSpec("mlm"), HeadSpec("sentence")])
    theirs = pair.theirs.get_submodule(family)(**pair.their_inputs())
    assert_close(pair.ours.encoder.pool_sequences(pair.token_ids, pair.segment_ids, pair.mask), theirs.pooler_output)


@pytest.mark.parametrize(
    ("family", "class_name", "config"),
    [
        ("albert", "AlbertForSequenceClassification", SMALL),
        ("bert", "BertForSequenceClassification", BERT),
        ("roberta", "RobertaForSequenceClassification", ROBERTA),
    ],
)
@pytest.mark.parametrize("num_labels", [1, 5])
def test_classification_agrees(family: Family, class_name: str, config: ModelConfig, num_labels: int) -> None:
    pair = make_pair(family, class_name, config, [HeadSpec("classification", num_labels)], num_labels=num_labels)
    pooled = pair.ours.encoder.pool_sequences(pair.token_ids, pair.segment_ids, pair.mask)
    logits = pair.ours.heads["classification"](pooled)
    theirs = pair.theirs(**pair.their_inputs()).logits
    assert_close(logits, theirs)
    logits.square().sum().backward()
    theirs.square().sum().backward()
    assert_same_gradients(family, pair)


@pytest.mark.parametrize(
    ("family", "class_name", "config"),
    [
        ("albert", "AlbertForTokenClassification", SMALL),
        ("bert", "BertForTokenClassification", BERT),
        ("roberta", "RobertaForTokenClassification", ROBERTA),
    ],
)
def test_token_classification_agrees(family: Family, class_name: str, config: ModelConfig) -> None:
    unpooled = replace(config, has_pooler=False)
    pair = make_pair(family, class_name, unpooled, [HeadSpec("tokens", 4)], num_labels=4)
    hidden = pair.ours.encoder(pair.token_ids, pair.segment_ids, pair.mask).hidden
    assert_close(pair.ours.heads["tokens"](hidden), pair.theirs(**pair.their_inputs()).logits, pair.mask)


@pytest.mark.parametrize(
    ("family", "class_name", "config"),
    [
        ("albert", "AlbertForQuestionAnswering", SMALL),
        ("bert", "BertForQuestionAnswering", BERT),
        ("roberta", "RobertaForQuestionAnswering", ROBERTA),
    ],
)
def test_span_logits_agree(family: Family, class_name: str, config: ModelConfig) -> None:
    pair = make_pair(family, class_name, replace(config, has_pooler=False), [HeadSpec("span")])
    theirs = pair.theirs(**pair.their_inputs())
    start, end = pair.ours.heads["span"](pair.ours.encoder(pair.token_ids, pair.segment_ids, pair.mask).hidden)
    assert_close(start, theirs.start_logits, pair.mask)
    assert_close(end, theirs.end_logits, pair.mask)


@pytest.mark.parametrize(
    ("family", "class_name", "config"),
    [
        ("albert", "AlbertForMultipleChoice", SMALL),
        ("bert", "BertForMultipleChoice", BERT),
        ("roberta", "RobertaForMultipleChoice", ROBERTA),
    ],
)
def test_multiple_choice_agrees(family: Family, class_name: str, config: ModelConfig) -> None:
    pair = make_pair(family, class_name, config, [HeadSpec("choice")])
    as_choices = {name: value[None] for name, value in pair.their_inputs().items()}  # (B = 1, C = 3, T)
    pooled = pair.ours.encoder.pool_sequences(pair.token_ids, pair.segment_ids, pair.mask)
    assert_close(pair.ours.heads["choice"](pooled, num_choices=3), pair.theirs(**as_choices).logits)
