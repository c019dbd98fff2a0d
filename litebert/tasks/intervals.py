"""95 % confidence intervals of a score, or of its lead over a baseline, over the choice of examples.

Examples are drawn with replacement (bootstrap). Questions about one passage, and rows of one group, are correlated
and drawn together. Shares of independent examples have Wilson's interval instead, which does not shrink to zero if
all of a few answers are right. Other scores without any variation over the draws, such as an F1 of 1.0, also get
Wilson's interval if they are between 0 and 1, and none otherwise.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.tasks.catalog import find_kind
from litebert.tasks.finetuning import FinetuneTask, Output

NUM_RESAMPLES = 1000
SEED = 0
UNBOUNDED = ("matthews", "pearson", "spearman", "mae", "rmse")  # not between 0 and 1
TWO_SIDED = 1.959964  # standard errors on either side that cover 95 % of a normal distribution


def find_intervals(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> dict[str, list[float]]:
    """The interval of each score, as [low, high]; scores without one are omitted."""
    tally, units = find_kind(task).tally(task, outputs, examples), _list_units(examples)
    is_independent = len(units) == len(examples)
    values: dict[str, list[float]] = {}
    drawn = {name: f for name, f in tally.scores.items() if not (is_independent and name in tally.shares)}
    resampled = _resample(units, lambda chosen: [f(tally.rows[chosen]) for f in drawn.values()]) if drawn else []
    for number, name in enumerate(drawn):
        low, high = np.percentile([row[number] for row in resampled], (2.5, 97.5))
        if low < high:
            values[name] = [low, high]
    for name, score in tally.scores.items():
        if name not in values and name not in UNBOUNDED and 0 <= score(tally.rows) <= 1:
            values[name] = find_wilson(score(tally.rows), len(units))
    return {name: [round(float(limit), 6) for limit in limits] for name, limits in values.items()}


def find_lead(
    task: FinetuneTask, outputs: Sequence[Output], others: Sequence[Output], examples: Sequence[Any]
) -> list[float]:
    """The interval of the difference of two models' `metric` on the same examples (paired bootstrap)."""
    tally, other = (find_kind(task).tally(task, one, examples) for one in (outputs, others))
    score = tally.scores[task.metric]
    leads = _resample(_list_units(examples), lambda chosen: [score(tally.rows[chosen]) - score(other.rows[chosen])])
    return [round(float(limit), 6) for limit in np.percentile(leads, (2.5, 97.5))]


def find_wilson(share: float, count: int) -> list[float]:
    """Wilson's interval of a share of independent examples."""
    squared = TWO_SIDED**2 / count
    center, half = share + squared / 2, TWO_SIDED * math.sqrt(share * (1 - share) / count + squared / (4 * count))
    # rounding may leave the limits just outside [0, 1]
    return [max((center - half) / (1 + squared), 0.0), min((center + half) / (1 + squared), 1.0)]


def _resample(
    units: Sequence[NDArray[np.int64]], measure: Callable[[NDArray[np.int64]], list[float]]
) -> list[list[float]]:
    """The value of `measure` on each bootstrap draw; the draws depend only on the number of units."""
    generator = np.random.default_rng((SEED, len(units)))
    is_single = all(len(unit) == 1 for unit in units)
    numbers = np.concatenate(units)
    draws = (generator.integers(len(units), size=len(units)) for _ in range(NUM_RESAMPLES))
    return [measure(numbers[draw] if is_single else np.concatenate([units[n] for n in draw])) for draw in draws]


def _list_units(examples: Sequence[Any]) -> list[NDArray[np.int64]]:
    """The indices of examples that are drawn together: about one passage, or of one group."""
    units: dict[Any, list[int]] = {}
    for number, example in enumerate(examples):
        unit = getattr(example, "group", "") or getattr(example, "context", "")
        units.setdefault(unit or number, []).append(number)
    if len(units) == 1:  # all about one passage: the variation between passages is unknown
        return [np.array([number]) for number in range(len(examples))]
    return [np.array(numbers) for numbers in units.values()]
