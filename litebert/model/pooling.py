"""How a text becomes one vector: which of its last states, how long it may be, and whether the length is one."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from litebert.model.heads import forbid

Pooling = Literal["mean", "cls", "max"]


@dataclass(frozen=True)
class EmbeddingSpec:
    """What a model's vectors are made by. A model that says nothing has these defaults."""

    pooling: Pooling = (
        "mean"  # of the real tokens' last states: their mean, the first one's, the largest of each number
    )
    normalize: bool = True  # vectors of length one
    max_length: int | None = None  # in tokens; None: what the model was fine-tuned with, else its positions

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
