"""What a person is told about a model: its name, and its language."""

from pathlib import Path
from typing import Literal

from litebert.text.tokenizer import Tokenizer

_NAMELESS = ("model", "checkpoints", "checkpoint")  # folders whose name says nothing about the model inside
_IS_CHINESE = 0.2  # of the vocabulary's pieces


def name_model(path: Path) -> str:
    """The last folder with a telling name: a checkpoint inside a run goes by the run's."""
    parts = [part for part in path.absolute().parts if part not in _NAMELESS and not part.startswith("step-")]
    return parts[-1] if parts else "model"


def tell_language(tokenizer: Tokenizer) -> Literal["en", "zh"]:
    """What the vocabulary is mostly for."""
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    count = sum(any("\u4e00" <= letter <= "\u9fff" for letter in piece) for piece in pieces)
    return "zh" if count > _IS_CHINESE * len(pieces) else "en"
