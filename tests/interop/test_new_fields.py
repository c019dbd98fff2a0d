"""A field that is added to ModelConfig is refused by every writer that does not know it, instead of being lost."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from litebert.checkpoint import Checkpoint, CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.errors import ConfigError
from litebert.exporters.int8 import export_int8
from litebert.exporters.onnx_folder import export_onnx
from litebert.exporters.web import export_web
from litebert.interop import convert as converting
from litebert.interop.convert import ConvertOptions, convert
from litebert.interop.google_names import name_table as google_table
from litebert.interop.names import find_family, name_table, their_config
from litebert.interop.resharing import average_config, unroll_config
from litebert.interop.truncating import truncate_config
from litebert.model.config import HeadSpec, ModelConfig
from litebert.model.model import build_model

HEADS = (HeadSpec("mlm"), HeadSpec("sentence"))


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ModelConfig):
    """What a model with local attention would add."""

    window: int = 128


def with_window(config: ModelConfig) -> WindowConfig:
    return WindowConfig(**asdict(config))


@pytest.fixture
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    plain = load_checkpoint(tiny_checkpoint)
    return replace(plain, config=with_window(plain.config))


WRITERS: dict[str, Callable[[Checkpoint, Path], Any]] = {
    "Hugging Face tensors": lambda checkpoint, _: name_table("albert", checkpoint.config, HEADS),
    "Hugging Face config": lambda checkpoint, _: their_config("albert", checkpoint.config, HEADS, {}),
    "Google's tensors": lambda checkpoint, _: google_table("albert", checkpoint.config, HEADS),
    "onnx": lambda checkpoint, out: export_onnx(checkpoint, out),
    "int8": lambda checkpoint, out: export_int8(checkpoint, out),
    "web": lambda checkpoint, out: export_web(checkpoint, out, runtime=out),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_refuses_a_field_that_it_does_not_know(writer: str, checkpoint: Checkpoint, tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-model-field", at="model.window") as refused:
        WRITERS[writer](checkpoint, tmp_path / "out")
    assert refused.value.code == "unknown-model-field"
    assert not (tmp_path / "out").exists()


def test_a_model_with_a_field_of_its_own_is_not_written_for_transformers(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converting, "load_checkpoint", lambda *_, **__: checkpoint)
    with refuses(ConfigError, "no-transformers-class", at="model.window"):
        convert(checkpoint.path, tmp_path / "out", ConvertOptions(to="huggingface"))
    assert not (tmp_path / "out").exists()


def test_no_family_of_transformers_computes_a_model_with_a_field_of_its_own(checkpoint: Checkpoint) -> None:
    plain = ModelConfig(**{f.name: getattr(checkpoint.config, f.name) for f in fields(ModelConfig)})
    assert find_family(plain, HEADS) == "albert"
    assert find_family(checkpoint.config, HEADS) is None


def test_a_checkpoint_with_a_field_of_its_own_does_not_claim_to_be_transformers(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    model = build_model(checkpoint.config, HEADS)
    save_checkpoint(tmp_path / "model", model, checkpoint.load_tokenizer(), CheckpointContent(step=0))
    assert '"window": 128' in (tmp_path / "model" / "litebert.json").read_text()
    assert not (tmp_path / "model" / "config.json").exists()


def test_changing_the_depth_or_the_sharing_keeps_a_field_of_its_own(checkpoint: Checkpoint) -> None:
    config = replace(checkpoint.config, num_layers=3, window=64)  # type: ignore[call-arg]
    for changed in (truncate_config(config, 2), unroll_config(config), average_config(unroll_config(config))):
        assert isinstance(changed, WindowConfig)
        assert changed.window == 64
