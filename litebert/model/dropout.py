"""Dropout seeded per row, so that masks do not depend on how a batch is split into micro-batches."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class RowNoise:
    """Random numbers that depend only on a row's seed, the layer and the place, not on earlier draws.

    A layer that is recomputed in the backward pass gets the same dropout mask as in the forward pass.
    """

    seeds: Sequence[int]  # one per row
    layer: int = 0  # 0: the embeddings

    def drop(self, x: Tensor, rate: float, place: str) -> Tensor:
        """x (B, ...) with each value zeroed at this rate and the others scaled up to keep the mean.

        The mask of a longer row starts with that of a shorter one, so the first values keep their mask when fewer
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
    """Dropout drawn from `noise` if given, else from torch's global generator."""
    if noise is None or not is_training:
        return F.dropout(x, rate, is_training)
    return noise.drop(x, rate, place)
