"""Dropout whose noise belongs to the rows of a batch: a row meets the same, however the batch is cut into parts."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class RowNoise:
    """Noise without a memory: it follows from a row's seed, the layer and the place, not from what was drawn before.

    A layer that is computed again in the backward pass meets the noise that it met in the forward pass.
    """

    seeds: Sequence[int]  # one for each row
    layer: int = 0

    def at(self, layer: int) -> "RowNoise":
        return replace(self, layer=layer)

    def drop(self, x: Tensor, rate: float, place: str) -> Tensor:
        """x (B, ...) with each value zeroed at this rate, the rest scaled to keep the mean.

        The first values of a longer row meet the noise of a shorter one, so that computing fewer positions (`read_at`)
        changes nothing for them.
        """
        if rate == 0:
            return x
        kept = torch.empty(x.shape, dtype=x.dtype)
        generator = torch.Generator()
        for row, seed in zip(kept, self.seeds, strict=True):
            generator.manual_seed(zlib.crc32(f"{seed} {self.layer} {place}".encode()))
            row.bernoulli_(1 - rate, generator=generator)
        return x * kept.div_(1 - rate)
