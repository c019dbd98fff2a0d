"""litebert: pretrain, study, fine-tune and ship lite BERTs."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litebert.api import (
        Result,
        adapt,
        build_corpus,
        build_index,
        convert,
        distill,
        doctor,
        evaluate,
        evaluate_intrinsic,
        export,
        finetune,
        predict,
        pretrain,
        run_study,
        serve,
        train_tokenizer,
    )
    from litebert.batches.stream import Stream, open_stream
    from litebert.checkpoint import Checkpoint
    from litebert.core.errors import ConfigError, DataError, LitebertError, TrainingError
    from litebert.corpus.shards import Corpus, open_corpus
    from litebert.inference.predictor import Predictor, load
    from litebert.interop.opening import load_checkpoint
    from litebert.model.config import HeadSpec, ModelConfig
    from litebert.model.encoder import Encoder, EncoderOutput
    from litebert.model.model import Model, build_model
    from litebert.model.presets import PRESETS, preset
    from litebert.pretraining.recipe import Recipe, load_recipe
    from litebert.search.index import SearchIndex
    from litebert.text.tokenizer import Tokenizer, load_tokenizer

__version__ = version("litebert")

# Public name -> the module that defines it. Loaded on first use, so that `import litebert` is instant and torch-free.
_VERBS = (  # what litebert does; the other names are what it works with
    "adapt",
    "build_corpus",
    "build_index",
    "convert",
    "distill",
    "doctor",
    "evaluate",
    "evaluate_intrinsic",
    "export",
    "finetune",
    "predict",
    "pretrain",
    "run_study",
    "serve",
    "train_tokenizer",
)
_PUBLIC = {
    **dict.fromkeys(_VERBS, "litebert.api"),
    "Result": "litebert.api",
    "Checkpoint": "litebert.checkpoint",
    "load_checkpoint": "litebert.interop.opening",
    "ConfigError": "litebert.core.errors",
    "DataError": "litebert.core.errors",
    "LitebertError": "litebert.core.errors",
    "TrainingError": "litebert.core.errors",
    "ModelConfig": "litebert.model.config",
    "Encoder": "litebert.model.encoder",
    "EncoderOutput": "litebert.model.encoder",
    "Corpus": "litebert.corpus.shards",
    "open_corpus": "litebert.corpus.shards",
    "Stream": "litebert.batches.stream",
    "open_stream": "litebert.batches.stream",
    "HeadSpec": "litebert.model.config",
    "Predictor": "litebert.inference.predictor",
    "load": "litebert.inference.predictor",
    "Model": "litebert.model.model",
    "build_model": "litebert.model.model",
    "PRESETS": "litebert.model.presets",
    "preset": "litebert.model.presets",
    "Recipe": "litebert.pretraining.recipe",
    "load_recipe": "litebert.pretraining.recipe",
    "SearchIndex": "litebert.search.index",
    "Tokenizer": "litebert.text.tokenizer",
    "load_tokenizer": "litebert.text.tokenizer",
}
__all__ = [
    "PRESETS",
    "Checkpoint",
    "ConfigError",
    "Corpus",
    "DataError",
    "Encoder",
    "EncoderOutput",
    "HeadSpec",
    "LitebertError",
    "Model",
    "ModelConfig",
    "Predictor",
    "Recipe",
    "Result",
    "SearchIndex",
    "Stream",
    "Tokenizer",
    "TrainingError",
    "adapt",
    "build_corpus",
    "build_index",
    "build_model",
    "convert",
    "distill",
    "doctor",
    "evaluate",
    "evaluate_intrinsic",
    "export",
    "finetune",
    "load",
    "load_checkpoint",
    "load_recipe",
    "load_tokenizer",
    "open_corpus",
    "open_stream",
    "predict",
    "preset",
    "pretrain",
    "run_study",
    "serve",
    "train_tokenizer",
]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'litebert' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
