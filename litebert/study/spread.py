"""Confidence intervals of means over seeds, from spreads pooled over a study's arms and Student's t."""

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import NamedTuple

from litebert.evaluation.intrinsic.student import student

_ROUNDING = 1e-9


class Spread(NamedTuple):
    """A standard deviation over seeds, and its degrees of freedom."""

    deviation: float
    freedom: int

    @property
    def half(self) -> float:
        """Half of the 95 % interval of a single value with this spread."""
        return student(self.freedom) * self.deviation

    @property
    def is_seen(self) -> bool:
        """Whether seeds differ at all; if they do not, by chance or rounding, the uncertainty is unknown."""
        return self.deviation > _ROUNDING


def pool(groups: Sequence[Sequence[float]], *, is_relative: bool = False) -> Spread | None:
    """The spread within groups, assumed to be equal in all groups or, if relative, proportional to their means."""
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return None
    # relative metrics are never negative: if the mean is 0, all values are 0 and there is no spread
    scales = [(fmean(group) or 1.0) if is_relative else 1.0 for group in several]
    squares = [(len(g) - 1) * variance(g) / scale**2 for g, scale in zip(several, scales, strict=True)]
    return Spread(math.sqrt(sum(squares) / freedom), freedom)


def pool_paired(rows: Sequence[Sequence[float]]) -> Spread | None:
    """The spread of arms (rows) over the same seeds (columns), after removing the effect of each seed.

    For two arms it is the spread of their differences per seed, divided by the square root of two.
    """
    freedom = (len(rows) - 1) * (len(rows[0]) - 1)
    if not freedom:
        return None
    of_rows, of_columns = [fmean(row) for row in rows], [fmean(column) for column in zip(*rows, strict=True)]
    mean = fmean(of_rows)
    squares = [
        (value - of_row - of_column + mean) ** 2
        for row, of_row in zip(rows, of_rows, strict=True)
        for value, of_column in zip(row, of_columns, strict=True)
    ]
    return Spread(math.sqrt(sum(squares) / freedom), freedom)
