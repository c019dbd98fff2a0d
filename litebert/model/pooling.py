"""How a text becomes one vector: pooling over its last states, maximal length, and normalization."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from litebert.model.heads import forbid

Pooling = Literal["mean", "cls", "max"]


@dataclass(frozen=True)
class EmbeddingSpec:
    """How a model's vectors are made. These defaults hold for a model that does not say."""

    pooling: Pooling = "mean"  # of the real tokens' last states: the mean, the first ([CLS]), or the maximum by element
    normalize: bool = True  # to unit length
    max_length: int | None = None  # in tokens; None: the length of fine-tuning, else the model's positions

    def __str__(self) -> str:
        length = "" if self.max_length is None else f", at most {self.max_length} tokens"
        return f"{self.pooling} pooling, {'' if self.normalize else 'not '}normalized{length}"


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """The vectors (B, H) of last states (B, T, H) whose mask (B, T) is True at real tokens."""
    if pooling == "cls":
        return hidden[:, 0]
    real = mask[..., None]
    if pooling == "max":
        return forbid(hidden, real).amax(1)
    return (hidden * real).sum(1) / real.sum(1)
