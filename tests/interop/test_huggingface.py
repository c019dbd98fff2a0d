"""Hugging Face folders in and out: transformers is the judge, and every number is the same to the bit."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from refusals import refuses
from safetensors.torch import load_file, save_file
from small_text import SIZES, make_sentences
from torch import Tensor

from litebert import load_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.names import CLASS_PREFIX, Family
from litebert.interop.source import LoadOptions
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.text.tokenizer import Tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

TO_HUGGINGFACE = ConvertOptions(to="huggingface")
SUFFIXES = {
    "Model": "AutoModel",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForMultipleChoice": "AutoModelForMultipleChoice",
}


@dataclass(frozen=True)
class Theirs:
    """A model of transformers with random weights everywhere, saved with a tokenizer."""

    model: Any
    folder: Path

    def logits(self) -> Tensor:
        return read_logits(self.model)


def read_logits(model: Any) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    token_ids = torch.randint(
        5, 100, (2, 3, 9) if type(model).__name__.endswith("Choice") else (3, 9), generator=generator
    )
    with torch.no_grad():
        for parameter in model.parameters():  # where in memory a number lies can change how a product is rounded
            parameter.data = parameter.data.clone()
        output = model.eval()(token_ids)
    return torch.cat([tensor.flatten() for tensor in output.to_tuple()])


SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 34,
    "num_labels": 3,
    "initializer_range": 0.2,
}


@pytest.fixture(scope="session")
def bpe_tokenizer() -> Tokenizer:
    return train_tokenizer(make_sentences(), VocabularyOptions("bpe", SIZES["bpe"]))


@pytest.fixture
def make_theirs(tmp_path: Path, tiny_tokenizer: Tokenizer, bpe_tokenizer: Tokenizer) -> Callable[..., Theirs]:
    def make(family: Family, suffix: str, **changes: Any) -> Theirs:
        tokenizer = bpe_tokenizer if family == "roberta" else tiny_tokenizer
        shape = SHAPE | {"vocab_size": tokenizer.vocab_size} | ({"embedding_size": 8} if family == "albert" else {})
        shape |= {"type_vocab_size": 1} if family == "roberta" else {}
        if suffix in ("ForPreTraining", "ForQuestionAnswering"):
            shape |= {"num_labels": 2}
        config = getattr(transformers, f"{CLASS_PREFIX[family]}Config")(**(shape | changes))
        torch.manual_seed(1)
        model = getattr(transformers, CLASS_PREFIX[family] + suffix)(config)
        with torch.no_grad():
            for parameter in model.parameters():  # biases and norms too: a zero bias would hide a missing one
                parameter.add_(0.1 * torch.randn_like(parameter))
            if family == "roberta":  # rows that nothing reads are made anew as zeros
                model.get_input_embeddings()
                model.base_model.embeddings.position_embeddings.weight[:2] = 0
        folder = tmp_path / "theirs"
        model.save_pretrained(folder)
        write_tokenizer_files(tokenizer, folder, has_segments=family != "roberta", max_length=32)
        return Theirs(model, folder)

    return make


def all_classes() -> list[tuple[Family, str]]:
    families: tuple[Family, ...] = ("albert", "bert", "roberta")
    return [(f, s) for f in families for s in SUFFIXES if (f, s) != ("roberta", "ForPreTraining")]


@pytest.mark.parametrize(("family", "suffix"), all_classes())
def test_there_and_back_is_the_same_to_the_bit(
    family: Family, suffix: str, make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs(family, suffix)
    convert(theirs.folder, tmp_path / "ours")
    done = convert(tmp_path / "ours", tmp_path / "back", TO_HUGGINGFACE)
    assert done.written_as == CLASS_PREFIX[family] + suffix
    before, after = load_file(theirs.folder / "model.safetensors"), load_file(tmp_path / "back/model.safetensors")
    if suffix == "Model":  # saved without the family before the names
        after = {name.removeprefix(f"{family}."): tensor for name, tensor in after.items()}
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    auto = getattr(transformers, SUFFIXES[suffix])
    back, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert type(back) is type(theirs.model)
    assert not any(report.values()), report
    assert torch.equal(read_logits(back), theirs.logits())


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_our_logits_of_their_folder_are_theirs(family: Family, make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs(family, "ForMaskedLM")
    ours = load_checkpoint(theirs.folder).load_model().eval()
    token_ids = torch.randint(5, 100, (3, 9), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        logits = ours.masked_lm_logits(ours.encoder(token_ids).hidden)
    torch.testing.assert_close(logits.flatten(), theirs.logits(), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"num_hidden_groups": 2}, id="groups"),
        pytest.param({"num_hidden_groups": 4}, id="unshared"),
        pytest.param({"num_hidden_groups": 2, "inner_group_num": 2}, id="inner"),
        pytest.param({"embedding_size": 16}, id="E=H"),
        pytest.param({"num_hidden_layers": 18, "num_hidden_groups": 14}, id="float groups"),
        pytest.param({"num_hidden_layers": 22, "num_hidden_groups": 22}, id="22 groups"),
        pytest.param({"hidden_act": "gelu"}, id="erf"),
        pytest.param({"hidden_act": "relu", "type_vocab_size": 3, "layer_norm_eps": 1e-5}, id="other values"),
    ],
)
def test_every_shape_of_albert_keeps_its_logits(
    changes: dict[str, Any], make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs("albert", "ForPreTraining", **changes)
    convert(theirs.folder, tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "back", TO_HUGGINGFACE)
    auto = transformers.AutoModelForPreTraining
    back, report = auto.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(report.values()), report
    assert torch.equal(read_logits(back), theirs.logits())
    model = load_checkpoint(tmp_path / "ours").load_model().eval()
    hidden = model.encoder(torch.randint(5, 100, (3, 9), generator=torch.Generator().manual_seed(3))).hidden
    logits = model.masked_lm_logits(hidden).detach().flatten()
    torch.testing.assert_close(logits, theirs.logits()[: len(logits)], atol=1e-4, rtol=0)


def test_groups_in_floating_point_are_kept_as_a_map(make_theirs: Callable[..., Theirs], tmp_path: Path) -> None:
    theirs = make_theirs("albert", "ForPreTraining", num_hidden_layers=18, num_hidden_groups=14)
    convert(theirs.folder, tmp_path / "ours")
    config = load_checkpoint(tmp_path / "ours").config
    groups = [int(layer / (18 / 14)) for layer in range(18)]
    assert groups != [layer * 14 // 18 for layer in range(18)]
    assert (config.sharing, config.layer_map) == ("map", tuple((group, group) for group in groups))


def test_a_projection_that_is_not_the_identity_is_kept(make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs("albert", "ForMaskedLM", embedding_size=16)
    assert load_checkpoint(theirs.folder).config.projection == "always"


def test_defaults_are_those_of_transformers() -> None:
    from litebert.interop.their_config import DEFAULTS, DISTILBERT_KEYS

    for family, defaults in DEFAULTS.items():
        theirs = getattr(transformers, f"{CLASS_PREFIX[family]}Config")().to_dict()
        if family == "distilbert":  # which also has no segments, and its epsilon in the code
            theirs = {DISTILBERT_KEYS.get(key, key): value for key, value in theirs.items()}
            theirs |= {"type_vocab_size": 2, "layer_norm_eps": 1e-12}
        assert {key: theirs[key] for key in defaults} == defaults, family


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
@pytest.mark.parametrize("form", ["shards", "pickle", "pickle shards", "old names", "half"])
def test_every_form_of_file_is_read_alike(family: Family, form: str, make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs(family, "ForMaskedLM")
    expected = load_checkpoint(theirs.folder).load_weights()
    rewrite(theirs.folder, form)
    found = load_checkpoint(theirs.folder).load_weights()
    if form == "half":
        expected = {name: tensor.half().float() for name, tensor in expected.items()}
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert found.keys() == expected.keys()


def rewrite(folder: Path, form: str) -> None:
    """Save the weights of a folder in another form."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = [{n: tensors[n] for n in names[::2]}, {n: tensors[n] for n in names[1::2]}]
    if form == "pickle":
        torch.save(tensors, folder / "pytorch_model.bin")
    elif form == "old names":
        old = {
            n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
            for n, t in tensors.items()
        }
        old |= {"module.extra.position_ids": torch.arange(3)}
        torch.save(
            {f"module.{n}": t for n, t in old.items()},
            folder / "pytorch_model.bin",
            _use_new_zipfile_serialization=False,
        )
    elif form == "half":
        save_file({n: t.half() for n, t in tensors.items()}, folder / "model.safetensors")
    else:
        ending = "bin" if form == "pickle shards" else "safetensors"
        stem = "pytorch_model" if form == "pickle shards" else "model"
        for number, half in enumerate(halves):
            file = folder / f"{stem}-{number}.{ending}"
            torch.save(half, file) if ending == "bin" else save_file(half, file)
        index = {n: f"{stem}-{number}.{ending}" for number, half in enumerate(halves) for n in half}
        write_index(folder / f"{stem}.{ending}.index.json", index)


def write_index(file: Path, weight_map: dict[str, str]) -> None:
    file.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}), "utf-8")


def as_on_the_hub(family: Family, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with what the first published files have besides."""
    base = CLASS_PREFIX[family].lower()
    extra = {f"{base}.embeddings.position_ids": torch.arange(34)[None]}
    table = tensors[f"{base}.embeddings.word_embeddings.weight"]
    if family == "albert":
        extra |= {"predictions.decoder.weight": table, "predictions.decoder.bias": torch.rand(len(table))}
        extra |= {"albert.pooler.weight": torch.rand(16, 16), "albert.pooler.bias": torch.rand(16)}
    elif family == "bert":
        tensors = {re.sub("LayerNorm.weight$", "LayerNorm.gamma", n): t for n, t in tensors.items()}
        tensors = {re.sub("LayerNorm.bias$", "LayerNorm.beta", n): t for n, t in tensors.items()}
        extra |= {"cls.predictions.decoder.weight": table, "cls.seq_relationship.weight": torch.rand(2, 16)}
        extra |= {"cls.seq_relationship.bias": torch.rand(2)}
        extra |= {"bert.pooler.dense.weight": torch.rand(16, 16), "bert.pooler.dense.bias": torch.rand(16)}
    else:
        extra |= {"lm_head.decoder.weight": table}
        extra |= {"roberta.pooler.dense.weight": torch.rand(16, 16), "roberta.pooler.dense.bias": torch.rand(16)}
    return {name: tensor.clone() for name, tensor in (tensors | extra).items()}


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_files_in_the_first_published_layout_are_read_completely(
    family: Family, make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs(family, "ForMaskedLM")
    expected = theirs.logits()
    tensors = as_on_the_hub(family, load_file(theirs.folder / "model.safetensors"))
    (theirs.folder / "model.safetensors").unlink()
    torch.save(tensors, theirs.folder / "pytorch_model.bin")
    done = convert(theirs.folder, tmp_path / "ours")
    assert [note for note in done.notes if "decoder.bias differs" in note] == list(done.notes)
    assert bool(done.notes) == (family == "albert")
    checkpoint = load_checkpoint(tmp_path / "ours")
    assert checkpoint.config.has_pooler
    assert {spec.kind for spec in checkpoint.heads} == ({"mlm", "sentence"} if family == "bert" else {"mlm"})
    convert(tmp_path / "ours", tmp_path / "back", ConvertOptions(to="huggingface", heads=("mlm",)))
    back = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "back")
    assert torch.equal(read_logits(back), expected)


def test_a_decoder_that_is_not_tied_is_refused(make_theirs: Callable[..., Theirs]) -> None:
    theirs = make_theirs("albert", "ForMaskedLM")
    tensors = load_file(theirs.folder / "model.safetensors")
    tensors["predictions.decoder.weight"] = torch.rand(100, 8)
    save_file(tensors, theirs.folder / "model.safetensors")
    with refuses(DataError, "untied-decoder"):
        load_checkpoint(theirs.folder)


@pytest.mark.parametrize(
    ("family", "changes", "code", "place"),
    [
        ("bert", {"position_embedding_type": "relative_key"}, "unsupported-config", "position_embedding_type"),
        ("bert", {"hidden_act": "silu"}, "unsupported-config", "hidden_act = 'silu'"),
        (
            "bert",
            {"architectures": ["BertForPreTraining"]},
            "tensors-mismatch",
            "missing: cls.seq_relationship.bias, cls.seq_relationship.weight",
        ),
        ("bert", {"architectures": None}, None, ""),
        ("bert", {"num_hidden_layers": 3}, "tensors-mismatch", "16 unexpected: bert.encoder.layer.3"),
        (
            "bert",
            {"intermediate_size": 25},
            "tensors-mismatch",
            "bert.encoder.layer.3.intermediate.dense.weight is [24, 16], expected [25, 16]",
        ),
        ("bert", {"num_attention_heads": 3}, "unsupported-config", "num_heads"),
        ("bert", {"hidden_dropout_prob": 1.5}, "unsupported-config", "/config.json: hidden_dropout_rate"),
        ("bert", {"vocab_size": 1.5}, "unsupported-config", "/config.json: vocab_size = 1.5"),
        ("roberta", {"pad_token_id": 0}, "unsupported-config", "pad_token_id = 0"),
        ("roberta", {"hidden_act": "relu"}, "unsupported-config", "/config.json: hidden_act"),
    ],
)
def test_a_configuration_that_does_not_fit_the_weights_is_refused(
    family: Family, changes: dict[str, Any], code: str | None, place: str, make_theirs: Callable[..., Theirs]
) -> None:
    file = make_theirs(family, "ForMaskedLM").folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")
    if code is None:
        assert load_checkpoint(file.parent).heads[0].kind == "mlm"
        return
    with refuses(DataError, code, at=place):
        load_checkpoint(file.parent)


def test_the_task_of_a_foreign_classifier_must_be_named(make_theirs: Callable[..., Theirs]) -> None:
    folder = make_theirs("albert", "ForSequenceClassification").folder
    values = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(values | {"architectures": []}), "utf-8")
    with refuses(DataError, "ambiguous-head"):
        load_checkpoint(folder)
    checkpoint = load_checkpoint(folder, LoadOptions(classifier="tokens"))
    assert [(spec.kind, spec.num_labels) for spec in checkpoint.heads] == [("tokens", 3)]


def test_roberta_with_two_segments_reads_pairs_as_its_tokenizer_writes_them(
    make_theirs: Callable[..., Theirs], tmp_path: Path
) -> None:
    theirs = make_theirs("roberta", "ForSequenceClassification", type_vocab_size=2)
    done = convert(theirs.folder, tmp_path / "ours")
    assert any("row 0 is kept" in note for note in done.notes)
    checkpoint = load_checkpoint(tmp_path / "ours")
    assert checkpoint.config.num_segments == 1
    tables = load_file(theirs.folder / "model.safetensors")
    row = tables["roberta.embeddings.token_type_embeddings.weight"][:1]
    assert torch.equal(checkpoint.load_weights()["encoder.embeddings.segment.weight"], row)
    convert(tmp_path / "ours", tmp_path / "back", TO_HUGGINGFACE)
    back = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "back")
    assert torch.equal(read_logits(back), theirs.logits())
