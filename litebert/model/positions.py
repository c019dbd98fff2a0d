"""Sinusoids as initial positions, and extrapolation of learned positions beyond the trained length."""

import math
from typing import Literal

import torch
from torch import Tensor

NewPositions = Literal["tiled", "continued"]

_SHORTEST_WAVE = math.pi  # in tokens: adjacent positions must differ
_LONGEST_WAVE = 1024.0
_RIDGE = 1.0
_NUM_FIRST = 16  # the first positions ([CLS] and the words after it) are special cases, not points of a curve


def wave_numbers(num_waves: int) -> Tensor:
    """Radians per token, from fast to slow."""
    fastest, slowest = (math.log10(2 * math.pi / length) for length in (_SHORTEST_WAVE, _LONGEST_WAVE))
    return torch.logspace(fastest, slowest, num_waves, dtype=torch.float64)


def sinusoids(num_positions: int, waves: Tensor) -> Tensor:
    """The sine and cosine of every wave (positions, 2 waves); a shift by one position rotates them."""
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * waves  # (positions, waves)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def continue_positions(table: Tensor, num_known: int) -> Tensor:
    """The position table (positions, E) with the rows from `num_known` on extrapolated from those before them.

    The learned rows are fitted by ridge regression on a constant and on the waves of which they hold at least four
    periods. Untrained rows have another norm and direction, and a short last stage does not train them enough.
    """
    waves = wave_numbers(max(1, table.shape[1] // 4))
    curve = sinusoids(len(table), waves[2 * math.pi / waves <= num_known / 4])
    features = torch.cat([curve, torch.ones(len(table), 1, dtype=torch.float64)], 1)  # (positions, F)
    penalty = _RIDGE * torch.eye(features.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 1e-6  # the constant is not penalized
    learned = slice(min(_NUM_FIRST, num_known // 4), num_known)
    seen = features[learned]
    weights = torch.linalg.solve(seen.T @ seen + penalty, seen.T @ table[learned].double())  # (F, E)
    return torch.cat([table[:num_known], (features[num_known:] @ weights).to(table)])


def extend_positions(table: Tensor, num_positions: int, how: NewPositions) -> Tensor:
    """A longer position table (positions, E) that starts with this one, which is repeated or continued by waves.

    Repetition keeps the learned distances within each copy. The first positions ([CLS] and the words after it) are
    special and are not repeated.
    """
    known = len(table)
    assert num_positions >= known, (num_positions, known)
    if how == "continued":
        longer = torch.cat([table, table.new_zeros(num_positions - known, table.shape[1])])
        return continue_positions(longer, known)
    num_first = min(_NUM_FIRST, known // 4)
    copies = table[num_first:].repeat(-(-num_positions // (known - num_first)), 1)
    return torch.cat([table, copies[: num_positions - known]])
