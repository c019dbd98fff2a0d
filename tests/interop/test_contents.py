"""What the files hold has to be a model's weights: other numbers, or no numbers at all, are never taken for them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from litebert import load_checkpoint
from litebert.checkpoint import CheckpointContent, save_checkpoint
from litebert.core.errors import DataError
from litebert.interop.convert import ConvertOptions, convert
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import build_model
from litebert.text.tokenizer import Tokenizer

CONFIG = ModelConfig(
    vocab_size=100, embedding_size=8, hidden_size=16, ffn_size=24, num_layers=2, num_heads=2, max_positions=32
)
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
    with pytest.raises(DataError, match=r"1 of another shape or type: .*query\.weight is of type"):
        load_checkpoint(theirs)


def test_a_quantized_model_is_refused_by_name(theirs: Path) -> None:
    change_config(theirs, quantization_config={"load_in_8bit": True})
    with pytest.raises(DataError, match="quantization_config"):
        load_checkpoint(theirs)


def test_what_float32_cannot_hold_is_noted_or_refused(theirs: Path, tmp_path: Path) -> None:
    change_tensors(theirs, lambda tensor: tensor.double())
    assert "weights in float64 are rounded to float32" in convert(theirs, tmp_path / "out").notes
    change_tensors(theirs, lambda tensor: tensor + 1e300, only=QUERY)
    with pytest.raises(DataError, match=r"query\.weight has numbers in float64 that are too large"):
        load_checkpoint(theirs).load_weights()
