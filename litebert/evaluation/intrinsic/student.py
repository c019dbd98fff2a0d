"""Quantiles of Student's t distribution."""

import math
from bisect import bisect_left

# Two-sided 95 %, for 1 to 30 degrees of freedom; above, interpolated linearly in 1 / freedom
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_BEYOND = ((30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980), (math.inf, 1.960))


def student(freedom: int) -> float:
    """The 95 % quantile, two-sided, of Student's t."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    place = bisect_left(_BEYOND, (freedom, 0.0))
    (before, upper), (after, lower) = _BEYOND[place - 1], _BEYOND[place]
    share = (1 / before - 1 / freedom) / (1 / before - 1 / after)
    return upper + share * (lower - upper)
