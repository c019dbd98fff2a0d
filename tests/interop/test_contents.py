"""What the files hold has to be a model's weights: other numbers, or no numbers at all, are never taken for them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refuses
from safetensors.torch import load_file, save_file
from small_configs import NARROW
from torch import Tensor

from litebert import load_checkpoint
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.text.tokenizer import Tokenizer

CONFIG = NARROW
QUERY = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"


@pytest.fixture
def theirs(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    """A Hugging Face folder of a small ALBERT."""
    model = build_model(CONFIG, (HeadSpec("mlm"),))
    save_checkpoint(tmp_path / "ours", model, tiny_tokenizer, CheckpointContent(step=9))
    convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface", heads=("mlm",)))
    return tmp_path / "theirs"


def change_tensors(folder: Path, change: Callable[[Tensor], Tensor], only: str = "") -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({name: change(t).contiguous() if only in name else t for name, t in tensors.items()}, file)


def change_config(folder: Path, **values: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_only_floating_point_numbers_are_weights(dtype: torch.dtype, theirs: Path) -> None:
    change_tensors(theirs, lambda tensor: tensor.to(dtype), only=QUERY)
    with refuses(DataError, "tensors-mismatch", at="query.weight"):
        load_checkpoint(theirs)


def test_a_quantized_model_is_refused_by_name(theirs: Path) -> None:
    change_config(theirs, quantization_config={"load_in_8bit": True})
    with refuses(DataError, "unsupported-config"):
        load_checkpoint(theirs)


def test_what_float32_cannot_hold_is_noted_or_refused(theirs: Path, tmp_path: Path) -> None:
    change_tensors(theirs, lambda tensor: tensor.double())
    assert "weights in float64 are rounded to float32" in convert(theirs, tmp_path / "out").notes
    cut = convert(theirs, tmp_path / "cut", ConvertOptions(layers=1))
    assert "weights in float64 are rounded to float32" in cut.notes
    change_tensors(theirs, lambda tensor: tensor + 1e300, only=QUERY)
    with refuses(DataError, "value-overflow", at="query.weight"):
        load_checkpoint(theirs).load_weights()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "best.safetensors"])
def test_a_file_that_is_named_is_the_one_that_is_read(name: str, theirs: Path) -> None:
    other = {key: tensor + 1 for key, tensor in load_file(theirs / "model.safetensors").items()}
    torch.save(other, theirs / name) if name.endswith("bin") else save_file(other, theirs / name)
    expected = load_checkpoint(theirs).load_weights()
    found = load_checkpoint(theirs / name).load_weights()
    assert all(torch.equal(found[key], expected[key] + 1) for key in expected)
    assert load_checkpoint(theirs / name).load_tokenizer().vocab_size == CONFIG.vocab_size


@pytest.mark.parametrize("content", [{"learning_rate": 1e-4}, {"state": {}, "epoch": torch.ones(1)}])
def test_an_unrelated_file_is_refused_even_next_to_weights(content: Any, theirs: Path) -> None:
    torch.save(content, theirs / "training_args.bin")
    with refuses(DataError, "not-weights", at="training_args.bin"):
        load_checkpoint(theirs / "training_args.bin")


def test_the_weights_file_of_our_checkpoint_stands_for_the_checkpoint(theirs: Path) -> None:
    assert load_checkpoint(theirs.parent / "ours/model.safetensors").step == 9


@pytest.mark.parametrize(("value", "message"), [(torch.nan, "not finite"), (0.0, "all zero")])
def test_an_empty_encoder_is_refused_and_an_empty_tensor_noted(
    value: float, message: str, theirs: Path, tmp_path: Path
) -> None:
    change_tensors(theirs, lambda tensor: torch.full_like(tensor, value), only=QUERY)
    notes = convert(theirs, tmp_path / "out").notes
    assert f"{message}: encoder.attention.0.query.weight" in notes
    change_tensors(theirs, lambda tensor: torch.full_like(tensor, value))
    with refuses(DataError, "empty-model"):
        load_checkpoint(theirs).load_model()
    with refuses(DataError, "empty-model"):
        convert(theirs, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_empty_checkpoint_of_ours_is_not_handed_on(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    model = build_model(CONFIG, (HeadSpec("mlm"),))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    save_checkpoint(tmp_path / "ours", model, tiny_tokenizer, CheckpointContent(step=9))
    with refuses(DataError, "empty-model"):
        convert(tmp_path / "ours", tmp_path / "theirs", ConvertOptions(to="huggingface"))


def move_out(file: Path, outside: Path) -> None:
    """Put a file elsewhere, and a link to it in its place."""
    file.rename(outside)
    file.symlink_to(outside)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "README.md"])
def test_no_other_file_of_a_folder_may_be_a_link_out_of_it(name: str, theirs: Path, tmp_path: Path) -> None:
    move_out(theirs / name, tmp_path / "outside")
    with refuses(DataError, "unsafe-path"):
        convert(theirs, tmp_path / "out")


@pytest.mark.parametrize("name", ["tokenizer_config.json", "tokenizer.json"])
def test_a_tokenizer_nested_too_deeply_is_refused(name: str, theirs: Path) -> None:
    (theirs / name).write_text('{"a":' + "[" * 100_000, "utf-8")
    with refuses(DataError, "bad-json"):
        load_checkpoint(theirs)


@pytest.mark.parametrize("pattern", ["*.index", "*.data-*", "albert_config.json"])
def test_no_file_of_a_tensorflow_checkpoint_may_be_a_link_out_of_its_folder(
    pattern: str, real_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tf"
    shutil.copytree(real_data / "tf/toy_albert", folder)
    load_checkpoint(folder)
    move_out(next(folder.glob(pattern)), tmp_path / "outside")
    with refuses(DataError, "unsafe-path"):
        load_checkpoint(folder)


def test_a_model_in_the_hubs_cache_is_read_through_its_links(theirs: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--a--b/snapshots/0123", tmp_path / "models--a--b/blobs"
    snapshot.parent.mkdir(parents=True)
    blobs.mkdir()
    theirs.rename(snapshot)
    for file in sorted(snapshot.iterdir()):
        move_out(file, blobs / file.name.replace(".", "-"))
    assert convert(snapshot, tmp_path / "out").written_as == "litebert"
