"""Dropout whose random numbers belong to the rows of a batch, so that they do not depend on how the batch is cut."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class RowNoise:
    """Random numbers that follow from a row's seed, the layer and the place, not from what was drawn before.

    A layer that is recomputed in the backward pass gets the same dropout mask as in the forward pass.
    """

    seeds: Sequence[int]  # one per row
    layer: int = 0  # 0: the embeddings

    def at(self, layer: int) -> "RowNoise":
        return replace(self, layer=layer)

    def drop(self, x: Tensor, rate: float, place: str) -> Tensor:
        """x (B, ...) with each value zeroed at this rate and the others scaled up to keep the mean.

        A longer row starts with the numbers of a shorter one, so a value that comes first keeps its mask when fewer
        positions are computed (`read_at`).
        """
        if rate == 0:
            return x
        kept = torch.empty(x.shape, dtype=x.dtype)
        generator = torch.Generator()
        for row, seed in zip(kept, self.seeds, strict=True):
            generator.manual_seed(zlib.crc32(f"{seed} {self.layer} {place}".encode()))
            row.bernoulli_(1 - rate, generator=generator)
        return x * kept.div_(1 - rate)


def drop(x: Tensor, rate: float, is_training: bool, noise: RowNoise | None, place: str) -> Tensor:
    """Dropout by the rows' own noise if there is any, else by torch's global generator."""
    if noise is None or not is_training:
        return F.dropout(x, rate, is_training)
    return noise.drop(x, rate, place)
