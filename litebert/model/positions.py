"""Positions as waves: sinusoids to begin with, and learned positions continued to where no text has been."""

import math

import torch
from torch import Tensor

_SHORTEST_WAVE = math.pi  # in tokens: next-door neighbours must differ
_LONGEST_WAVE = 1024.0
_RIDGE = 1.0
_NUM_FIRST = 16  # the first positions are places of their own ([CLS], the words after it), not points of a curve


def wave_numbers(num_waves: int) -> Tensor:
    """Radians a token, from fast to slow."""
    fastest, slowest = (math.log10(2 * math.pi / length) for length in (_SHORTEST_WAVE, _LONGEST_WAVE))
    return torch.logspace(fastest, slowest, num_waves, dtype=torch.float64)


def sinusoids(num_positions: int, waves: Tensor) -> Tensor:
    """The sine and the cosine of every wave (positions, 2 waves), of which "one further" is a rotation."""
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * waves  # (positions, waves)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def continue_positions(table: Tensor, num_known: int) -> Tensor:
    """A table of positions (positions, E) whose rows from `num_known` on go on as those before them do.

    A ridge regression of the learned rows on a constant and the waves that they show at least four times says how. Rows
    as they were drawn are of another length and turned otherwise, and who meets them late does not learn them in time.
    """
    waves = wave_numbers(max(1, table.shape[1] // 4))
    curve = sinusoids(len(table), waves[2 * math.pi / waves <= num_known / 4])
    features = torch.cat([curve, torch.ones(len(table), 1, dtype=torch.float64)], 1)  # (positions, F)
    penalty = _RIDGE * torch.eye(features.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 1e-6  # the constant is free
    learned = slice(min(_NUM_FIRST, num_known // 4), num_known)
    seen = features[learned]
    weights = torch.linalg.solve(seen.T @ seen + penalty, seen.T @ table[learned].double())  # (F, E)
    return torch.cat([table[:num_known], (features[num_known:] @ weights).to(table)])
