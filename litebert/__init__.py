"""litebert: pretrain, study, fine-tune and ship lite BERTs."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litebert.core.errors import ConfigError, DataError, LitebertError, TrainingError
    from litebert.model.config import HeadSpec, ModelConfig
    from litebert.model.encoder import Encoder, EncoderOutput
    from litebert.model.model import Model, build_model
    from litebert.model.presets import PRESETS, preset

__version__ = version("litebert")

# Public name -> the module that defines it. Loaded on first use, so that `import litebert` is instant and torch-free.
_PUBLIC = {
    "ConfigError": "litebert.core.errors",
    "DataError": "litebert.core.errors",
    "LitebertError": "litebert.core.errors",
    "TrainingError": "litebert.core.errors",
    "ModelConfig": "litebert.model.config",
    "Encoder": "litebert.model.encoder",
    "EncoderOutput": "litebert.model.encoder",
    "HeadSpec": "litebert.model.config",
    "Model": "litebert.model.model",
    "build_model": "litebert.model.model",
    "PRESETS": "litebert.model.presets",
    "preset": "litebert.model.presets",
}
__all__ = [
    "PRESETS",
    "ConfigError",
    "DataError",
    "Encoder",
    "EncoderOutput",
    "HeadSpec",
    "LitebertError",
    "Model",
    "ModelConfig",
    "TrainingError",
    "build_model",
    "preset",
]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'litebert' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
