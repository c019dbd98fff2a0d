"""Text embeddings: pooling of the last hidden states, maximum length, and normalization."""

from dataclasses import dataclass

from torch import Tensor

from litebert.model.config import Pooling
from litebert.model.heads import forbid


@dataclass(frozen=True)
class EmbeddingSpec:
    """How a model computes embeddings. The defaults apply to models that do not specify it."""

    pooling: Pooling = "mean"  # of the real tokens' last states: mean, first ([CLS]), or element-wise maximum
    normalize: bool = True  # to unit length
    max_length: int | None = None  # in tokens; None: as in fine-tuning, else the model's positions

    def __str__(self) -> str:
        length = "" if self.max_length is None else f", at most {self.max_length} tokens"
        return f"{self.pooling} pooling, {'' if self.normalize else 'not '}normalized{length}"


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Pool last states (B, T, H) to vectors (B, H); `mask` (B, T) is True at real tokens."""
    if pooling == "cls":
        return hidden[:, 0]
    real = mask[..., None]
    if pooling == "max":
        return forbid(hidden, real).amax(1)
    return (hidden * real).sum(1) / real.sum(1)
