"""How sure means over seeds are: spreads pooled over the arms of a study, and Student's t."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import fmean, variance
from typing import NamedTuple

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom, and for more: between those straight in 1 / freedom
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_BEYOND = ((30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980), (math.inf, 1.960))


class Spread(NamedTuple):
    """A standard deviation over seeds, and how many degrees of freedom it rests on."""

    deviation: float
    freedom: int

    @property
    def half(self) -> float:
        """Half of the 95 % interval of a single value that spreads so."""
        return student(self.freedom) * self.deviation


def student(freedom: int) -> float:
    """The 95 % quantile, two-sided, of Student's t."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    place = bisect_left(_BEYOND, (freedom, 0.0))
    (before, upper), (after, lower) = _BEYOND[place - 1], _BEYOND[place]
    share = (1 / before - 1 / freedom) / (1 / before - 1 / after)
    return upper + share * (lower - upper)


def pool(groups: Sequence[Sequence[float]], *, is_relative: bool = False) -> Spread | None:
    """The spread within groups, as if it were the same in all, or (relative) the same share of their means."""
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return None
    scales = [fmean(group) if is_relative else 1.0 for group in several]
    squares = [(len(g) - 1) * variance(g) / scale**2 for g, scale in zip(several, scales, strict=True)]
    return Spread(math.sqrt(sum(squares) / freedom), freedom)


def pool_paired(rows: Sequence[Sequence[float]]) -> Spread | None:
    """The spread of arms (rows) over the same seeds (columns) that is left when each seed's own luck is taken out.

    Of two arms it is that of their differences, seed by seed, over the square root of two.
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
