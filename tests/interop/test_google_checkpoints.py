"""TensorFlow checkpoints of Google's ALBERT and BERT: every variable is used once, or the conversion stops."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from bundles import BundleOptions, write_bundle
from refusals import refuses
from small_configs import NARROW
from torch import Tensor

from litebert import load_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.google_names import SHARED_LAYER, GoogleFamily, Groups, google_group, name_table
from litebert.interop.names import rows_of_groups
from litebert.interop.source import FOR_TRAINING, LoadOptions
from litebert.interop.tensorflow import read_index
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.text.tokenizer import Tokenizer

CONFIG = replace(NARROW, num_layers=4, hidden_dropout_rate=0.0, attention_dropout_rate=0.0, initializer_range=0.3)
PRETRAINING = (HeadSpec("mlm"), HeadSpec("sentence"))
NO_HEADS = LoadOptions(allows_missing_heads=True)


def write_config(folder: Path, family: GoogleFamily, config: ModelConfig, num_groups: int = 1) -> None:
    values: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.ffn_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "max_position_embeddings": config.max_positions,
        "type_vocab_size": 2,
        "hidden_act": {"gelu_tanh": "gelu", "relu": "relu"}[config.activation],
        "hidden_dropout_prob": 0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": config.initializer_range,
    }
    if family == "albert":
        values |= {"embedding_size": config.embedding_size, "num_hidden_groups": num_groups}
        values |= {"inner_group_num": config.num_inner, "net_structure_type": 0, "layers_to_keep": []}
    elif config.has_projection:
        values |= {"embedding_size": config.embedding_size}
    (folder / f"{family}_config.json").write_text(json.dumps(values), "utf-8")


def make_variables(
    family: GoogleFamily, config: ModelConfig, heads: tuple[HeadSpec, ...], groups: Groups | None = None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Random weights under our names, and the same as Google's code would have saved them."""
    model = build_model(config, heads)
    generator = torch.Generator().manual_seed(4)
    ours = {n: t + 0.1 * torch.randn(t.shape, generator=generator) for n, t in model.state_dict().items()}
    theirs = {}
    for name, variable in name_table(family, config, heads, groups).items():
        theirs[variable.name] = ours[name].t().contiguous() if variable.is_transposed else ours[name]
    return ours, theirs


def save(
    folder: Path,
    family: GoogleFamily,
    config: ModelConfig,
    variables: dict[str, Tensor],
    tokenizer: Tokenizer,
    num_groups: int = 1,
) -> Path:
    write_bundle(folder / "model.ckpt-best", variables, BundleOptions(num_shards=2, block_size=500))
    write_config(folder, family, config, num_groups)
    vocabulary = tokenizer.pieces(range(tokenizer.vocab_size))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    return folder


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_official_names_are_those_of_a_published_model(real_data: Path) -> None:
    index = read_index(real_data / "tf/google_albert_base_zh/model.ckpt-best.index")
    config = ModelConfig(
        vocab_size=21128, embedding_size=128, hidden_size=768, ffn_size=3072, num_layers=12, num_heads=12
    )
    shapes = {name: tuple(t.shape) for name, t in build_model(config, PRETRAINING, device="meta").state_dict().items()}
    expected = {
        variable.name: shapes[ours][::-1] if variable.is_transposed else shapes[ours]
        for ours, variable in name_table("albert", config, PRETRAINING).items()
    }
    assert {name: v.shape for name, v in index.variables.items()} == expected | {"global_step": ()}


def test_what_tensorflow_wrote_goes_to_transformers_and_computes_the_same(
    real_data: Path, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    tiny_tokenizer.save(tmp_path / "tokenizer")
    source, load_options = real_data / "tf/toy_albert", LoadOptions(tokenizer=tmp_path / "tokenizer")
    convert(source, tmp_path / "ours", ConvertOptions(), load_options)
    convert(source, tmp_path / "direct", ConvertOptions(to="huggingface"), load_options)
    convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface"))
    values = np.load(source / "values.npz")
    for folder in ("theirs", "direct"):
        model, report = transformers.AutoModelForPreTraining.from_pretrained(
            tmp_path / folder, output_loading_info=True
        )
        assert not any(report.values()), report
        layer = model.albert.encoder.albert_layer_groups[0].albert_layers[0]
        kernel = values["bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel"]
        assert np.array_equal(layer.ffn.weight.detach().numpy(), kernel.T)
        assert model.config.hidden_act == "gelu_new"
    ours = load_checkpoint(tmp_path / "ours").load_model().eval()
    token_ids = torch.arange(60).view(2, 30)
    with torch.no_grad():
        output = ours.encoder(token_ids)
        theirs = model.eval()(token_ids)
    torch.testing.assert_close(ours.masked_lm_logits(output.hidden), theirs.prediction_logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        ours.heads["sentence"](ours.encoder.pool(output.hidden[:, 0])), theirs.sop_logits, atol=1e-5, rtol=0
    )
    assert load_checkpoint(tmp_path / "ours").step == int(values["global_step"])


SHAPES: dict[str, tuple[GoogleFamily, ModelConfig, int]] = {
    "albert": ("albert", CONFIG, 1),
    "groups": ("albert", replace(CONFIG, sharing="groups", num_groups=2), 2),
    "inner": ("albert", replace(CONFIG, num_inner=2), 1),
    "unshared": ("albert", replace(CONFIG, sharing="none"), 4),
    "E=H": ("albert", replace(CONFIG, embedding_size=16), 1),
    "relu": ("albert", replace(CONFIG, activation="relu"), 1),
    "bert": ("bert", replace(CONFIG, embedding_size=16, sharing="none"), 1),
    "bert with a projection": ("bert", replace(CONFIG, sharing="none"), 1),
}


@pytest.mark.parametrize(("family", "config", "num_groups"), SHAPES.values(), ids=SHAPES)
def test_every_shape_is_read_as_it_was_written(
    family: GoogleFamily, config: ModelConfig, num_groups: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours, theirs = make_variables(family, config, PRETRAINING)
    checkpoint = load_checkpoint(save(tmp_path, family, config, theirs, tiny_tokenizer, num_groups))
    assert checkpoint.config == config
    assert checkpoint.heads == PRETRAINING
    assert same(checkpoint.load_weights(), ours)
    assert checkpoint.load_tokenizer().encode("the cat sees") == tiny_tokenizer.encode("the cat sees")


@pytest.mark.parametrize(
    ("heads", "classifier"),
    [
        ((HeadSpec("classification", 3),), None),
        ((HeadSpec("classification", 1),), None),
        ((HeadSpec("choice"),), "choice"),
        ((HeadSpec("span"),), None),
        ((HeadSpec("conditional_span"),), None),
        ((*PRETRAINING, HeadSpec("classification", 5)), None),
    ],
)
def test_every_head_is_recognized(
    heads: tuple[HeadSpec, ...], classifier: Any, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours, theirs = make_variables("albert", CONFIG, heads)
    folder = save(tmp_path, "albert", CONFIG, theirs, tiny_tokenizer)
    checkpoint = load_checkpoint(folder, LoadOptions(classifier=classifier))
    assert set(checkpoint.heads) == set(heads)
    assert same(checkpoint.load_weights(), ours)


def test_a_group_that_floating_point_never_reads_is_left_out_by_name(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    group_map = [google_group(layer, 22, 22) for layer in range(22)]
    used = tuple(sorted(set(group_map)))
    config = replace(CONFIG, num_layers=22, sharing="map", layer_map=rows_of_groups(group_map, 1))
    ours, theirs = make_variables("albert", config, PRETRAINING, Groups(22, used))
    dead = f"group_{({*range(22)} - {*used}).pop()}/"
    theirs |= {name.replace("group_0/", dead, 1): t for name, t in theirs.items() if "transformer/group_0/" in name}
    folder = save(tmp_path / "tf", "albert", config, theirs, tiny_tokenizer, num_groups=22)
    checkpoint = load_checkpoint(folder)
    assert checkpoint.config == config
    assert same(checkpoint.load_weights(), ours)
    done = convert(folder, tmp_path / "hf", ConvertOptions(to="huggingface"))
    assert any(f"groups [{dead[6:-1]}] are not used by any layer" in note for note in done.notes)
    model, report = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(report.values()), report
    token_ids = torch.arange(20).view(2, 10)
    model_of_ours = checkpoint.load_model().eval()
    with torch.no_grad():
        logits = model_of_ours.masked_lm_logits(model_of_ours.encoder(token_ids).hidden)
        torch.testing.assert_close(logits, model.eval()(token_ids).prediction_logits, atol=1e-4, rtol=0)


def test_the_layout_of_albert_zh_is_read(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    wide = replace(CONFIG, embedding_size=CONFIG.hidden_size)
    ours, theirs = make_variables("albert", wide, PRETRAINING)
    layer = "bert/encoder/transformer/group_0/inner_group_0/"
    parts = {official: shared for shared, official in SHARED_LAYER.items()}
    older = {}
    for name, tensor in theirs.items():
        if name.startswith(layer):
            part = max((part for part in parts if name.startswith(f"{layer}{part}/")), key=len)
            name = f"bert/encoder/layer_shared/{parts[part]}{name.removeprefix(layer + part)}"
        older[name] = tensor
    generator = torch.Generator().manual_seed(1)
    factors = [torch.randn(shape, generator=generator) for shape in ((wide.vocab_size, 4), (4, wide.hidden_size))]
    older |= dict(zip(("bert/embeddings/word_embeddings", "bert/embeddings/word_embeddings_2"), factors, strict=True))
    assert len([name for name in older if "layer_shared" in name]) == 16
    # its configuration states the size of the first factor
    folder = save(tmp_path, "albert", replace(CONFIG, embedding_size=4), older, tiny_tokenizer)
    (folder / "albert_config.json").rename(folder / "albert_config_tiny.json")
    checkpoint = load_checkpoint(folder)
    assert checkpoint.config == wide
    expected = ours | {"encoder.embeddings.token.weight": factors[0] @ factors[1]}
    assert same(checkpoint.load_weights(), expected)
    convert(folder, tmp_path / "hf", ConvertOptions(to="huggingface"))
    _, report = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(report.values()), report
    with refuses(DataError, "unknown-model"):
        short = {"bert/embeddings/word_embeddings_2": factors[1][1:]}
        load_checkpoint(save(tmp_path, "albert", replace(CONFIG, embedding_size=4), older | short, tiny_tokenizer))


def spell_otherwise(name: str, way: str) -> str:
    if way == "hub":
        return f"module/{name}"
    return name.replace("LayerNorm", "layer_normalization")


@pytest.mark.parametrize("way", ["hub", "keras"])
def test_other_spellings_are_recognized(way: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours, theirs = make_variables("albert", CONFIG, (*PRETRAINING, HeadSpec("conditional_span")))
    renamed = {spell_otherwise(name, way): tensor for name, tensor in theirs.items()}
    assert same(load_checkpoint(save(tmp_path, "albert", CONFIG, renamed, tiny_tokenizer)).load_weights(), ours)


def test_a_hub_module_is_found_with_its_assets(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours, theirs = make_variables("albert", CONFIG, PRETRAINING)
    assets = tmp_path / "module/assets"
    assets.mkdir(parents=True)
    save(assets, "albert", CONFIG, {}, tiny_tokenizer)
    for file in assets.glob("model.ckpt*"):
        file.unlink()
    write_bundle(tmp_path / "module/variables/variables", {f"module/{name}": t for name, t in theirs.items()})
    for source in (tmp_path / "module", tmp_path / "module/variables", tmp_path / "module/variables/variables"):
        assert same(load_checkpoint(source).load_weights(), ours)


@pytest.mark.parametrize(
    ("first", "second"),
    [("adam_m", "adam_v"), ("lamb_m", "lamb_v"), ("Adam", "Adam_1"), ("LAMBOptimizer", "LAMBOptimizer_1")],
)
def test_moments_are_skipped_or_kept_on_request(
    first: str, second: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours, theirs = make_variables("albert", CONFIG, PRETRAINING)
    slots = {f"{n}/{first}": t * 2 for n, t in theirs.items()} | {f"{n}/{second}": t**2 for n, t in theirs.items()}
    counters = {"global_step": torch.tensor(1234), "beta1_power": torch.tensor(0.9), "loss_scale": torch.tensor(1.0)}
    folder = save(tmp_path / "tf", "albert", CONFIG, theirs | slots | counters, tiny_tokenizer)
    convert(folder, tmp_path / "without")
    assert not (tmp_path / "without/optimizer.safetensors").exists()
    convert(folder, tmp_path / "with", ConvertOptions(keeps_slots=True))
    moments = load_checkpoint(tmp_path / "with").load_optimizer()
    assert load_checkpoint(tmp_path / "with").step == 1234
    for name, tensor in ours.items():
        assert torch.equal(moments[f"{name}/exp_avg"], tensor * 2), name
        assert torch.equal(moments[f"{name}/exp_avg_sq"], tensor**2), name
        assert moments[f"{name}/step"] == 1234


def test_moments_that_are_not_all_there_cannot_be_kept(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    slots = {f"{name}/adam_m": tensor for name, tensor in theirs.items()}
    folder = save(tmp_path / "tf", "albert", CONFIG, theirs | slots, tiny_tokenizer)
    with refuses(DataError, "no-optimizer"):
        convert(folder, tmp_path / "with", ConvertOptions(keeps_slots=True))
    assert not (tmp_path / "with").exists()


QUERY = "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel"


def drop(variables: dict[str, Tensor], *names: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in variables.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (lambda v: drop(v, QUERY), "tensors-mismatch", f"1 missing: {QUERY}"),
        (
            lambda v: v | {"bert/encoder/extra/kernel": torch.ones(3)},
            "tensors-mismatch",
            "1 unexpected: bert/encoder/extra/kernel",
        ),
        (lambda v: v | {QUERY: torch.ones(16, 8)}, "tensors-mismatch", f"{QUERY} is [16, 8], expected [16, 16]"),
        (lambda v: {n: t for n, t in v.items() if not n.startswith("cls/")}, "tensors-mismatch", "cls/"),
        (
            lambda v: drop(v, "cls/predictions/output_bias"),
            "tensors-mismatch",
            "1 missing: cls/predictions/output_bias",
        ),
        (lambda v: v | {f"module/{QUERY}": v[QUERY]}, "duplicate-tensor", QUERY),
        (lambda v: v | {"_CHECKPOINTABLE_OBJECT_GRAPH": torch.ones(1)}, "unsupported-tensorflow", ""),
        (lambda _: {"global_step": torch.tensor(1)}, "unknown-model", ""),
        (lambda _: {"mobilenet/conv/kernel": torch.ones(1)}, "unknown-model", "mobilenet/conv/kernel"),
    ],
)
def test_an_incomplete_checkpoint_is_refused_and_its_gaps_are_listed(
    change: Any, code: str, place: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    folder = save(tmp_path / "tf", "albert", CONFIG, change(theirs), tiny_tokenizer)
    with refuses(DataError, code, at=place):
        convert(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_on_request_only_incomplete_heads_are_left_out(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours, theirs = make_variables("albert", CONFIG, PRETRAINING)
    partly = save(tmp_path / "partly", "albert", CONFIG, drop(theirs, "cls/predictions/output_bias"), tiny_tokenizer)
    checkpoint = load_checkpoint(partly, NO_HEADS)
    assert checkpoint.heads == (HeadSpec("sentence"),)
    assert same(checkpoint.load_weights(), {n: t for n, t in ours.items() if not n.startswith("heads.mlm")})
    (note,) = convert(partly, tmp_path / "out", load_options=NO_HEADS).notes
    assert note.startswith(
        "the head mlm is incomplete and was dropped (it has only cls/predictions/transform/LayerNorm/"
    )
    with refuses(DataError, "tensors-mismatch"):
        load_checkpoint(partly, FOR_TRAINING)
    broken = save(tmp_path / "broken", "albert", CONFIG, drop(theirs, QUERY), tiny_tokenizer)
    with refuses(DataError, "tensors-mismatch"):
        load_checkpoint(broken, NO_HEADS)


def test_a_checkpoint_without_pooler_and_heads_is_an_encoder(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    config = replace(CONFIG, has_pooler=False)
    ours, theirs = make_variables("albert", config, ())
    checkpoint = load_checkpoint(save(tmp_path, "albert", config, theirs, tiny_tokenizer), NO_HEADS)
    assert checkpoint.config == config
    assert same(checkpoint.load_weights(), ours)


def test_a_configuration_of_another_size_is_refused_with_the_shapes(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    save(tmp_path, "albert", replace(CONFIG, ffn_size=48), theirs, tiny_tokenizer)
    with refuses(DataError, "tensors-mismatch"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [("hidden_act", "tanh", "unsupported-config"), ("num_hidden_groups", 0, "implausible-config")],
)
def test_a_configuration_that_cannot_be_computed_is_refused(
    key: str, value: Any, code: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    save(tmp_path, "albert", CONFIG, theirs, tiny_tokenizer)
    file = tmp_path / "albert_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {key: value}), "utf-8")
    with refuses(DataError, code):
        load_checkpoint(tmp_path)


def test_a_missing_configuration_or_tokenizer_is_asked_for(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    save(tmp_path, "albert", CONFIG, theirs, tiny_tokenizer)
    (tmp_path / "vocab.txt").unlink()
    with refuses(DataError, "no-tokenizer"):
        convert(tmp_path, tmp_path / "out")
    (tmp_path / "albert_config.json").unlink()
    with refuses(DataError, "missing-file", at="albert_config.json"):
        load_checkpoint(tmp_path)


def test_several_checkpoints_in_a_folder_have_to_be_named(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    ours, theirs = make_variables("albert", CONFIG, PRETRAINING)
    save(tmp_path, "albert", CONFIG, theirs, tiny_tokenizer)
    write_bundle(tmp_path / "model.ckpt-500", theirs)
    with refuses(DataError, "ambiguous-files", at="model.ckpt-500"):
        load_checkpoint(tmp_path)
    for name in ("model.ckpt-500", "model.ckpt-500.index", "model.ckpt-500.data-00000-of-00001"):
        assert same(load_checkpoint(tmp_path / name).load_weights(), ours)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_another_precision_become_float32(
    dtype: torch.dtype, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    ours, theirs = make_variables("albert", CONFIG, PRETRAINING)
    stored = {name: tensor.to(dtype) for name, tensor in theirs.items()}
    checkpoint = load_checkpoint(save(tmp_path / "tf", "albert", CONFIG, stored, tiny_tokenizer))
    assert same(checkpoint.load_weights(), {name: tensor.to(dtype).float() for name, tensor in ours.items()})
    done = convert(tmp_path / "tf", tmp_path / "out")
    assert ("weights in float64 are rounded to float32" in done.notes) == (dtype == torch.float64)


@pytest.mark.parametrize(
    "step", [torch.ones(2), torch.tensor(torch.nan), torch.tensor(-1), torch.tensor(1e300).double()]
)
def test_a_step_that_is_no_number_of_updates_is_refused(
    step: Tensor, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    save(tmp_path, "albert", CONFIG, theirs | {"global_step": step}, tiny_tokenizer)
    with refuses(DataError, "corrupt-file"):
        load_checkpoint(tmp_path)


def test_the_step_of_a_hub_module_is_read(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    named = {f"module/{name}": tensor for name, tensor in theirs.items()}
    save(tmp_path, "albert", CONFIG, named | {"module/global_step": torch.tensor(125_000)}, tiny_tokenizer)
    assert load_checkpoint(tmp_path).step == 125_000


@pytest.mark.parametrize("moment", [torch.ones(3, 16), torch.ones(16, 16, dtype=torch.int32)])
def test_a_moment_that_is_not_its_weights_is_refused(moment: Tensor, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    _, theirs = make_variables("albert", CONFIG, PRETRAINING)
    slots = {f"{name}/adam_{leaf}": torch.ones_like(tensor) for name, tensor in theirs.items() for leaf in "mv"}
    slots["bert/pooler/dense/kernel/adam_v"] = moment
    save(tmp_path / "tf", "albert", CONFIG, theirs | slots, tiny_tokenizer)
    with pytest.raises(DataError, match="bert/pooler/dense/kernel/adam_v is"):
        convert(tmp_path / "tf", tmp_path / "out", ConvertOptions(keeps_slots=True))
    assert not (tmp_path / "out").exists()
