"""95 % intervals: how far a score, or its lead over a baseline, would move with other examples of the same kind.

Examples are drawn with replacement (bootstrap). Questions about one passage, and rows of one group, are right or wrong
together and are drawn together. Shares of independent examples have Wilson's interval instead, which does not shrink to
nothing where all of few answers are right. Other scores that every draw leaves as they are, such as an F1 of 1.0, get
Wilson's interval too if they are between 0 and 1, and none otherwise: the bootstrap shows no variation.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.tasks import metrics
from litebert.tasks.choices import Choices
from litebert.tasks.classification import Classification, MultiLabel, Regression
from litebert.tasks.finetuning import FinetuneTask, Output
from litebert.tasks.squad.metrics import score_questions
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.token_tags import TokenTags, find_spans

NUM_RESAMPLES = 1000
SEED = 0
UNBOUNDED = ("matthews", "pearson", "spearman", "mae", "rmse")  # no shares: not between 0 and 1
TWO_SIDED = 1.959964  # standard errors around the mean that have 95 % of a normal distribution
Rows = NDArray[Any]


class Tally(NamedTuple):
    """What the scores of a split are computed from: a row for each example, and each score as a function of rows."""

    rows: Rows
    scores: Mapping[str, Callable[[Rows], float]]
    shares: frozenset[str] = frozenset()  # the scores that are the share of examples that are right


def find_intervals(task: FinetuneTask, outputs: Sequence[Output], examples: Sequence[Any]) -> dict[str, list[float]]:
    """The interval of each score, as [low, high]; a score that cannot have one is left out."""
    tally, units = TALLIES[type(task)](task, outputs, examples), _list_units(examples)
    is_independent = len(units) == len(examples)
    values: dict[str, list[float]] = {}
    drawn = {name: f for name, f in tally.scores.items() if not (is_independent and name in tally.shares)}
    resampled = _resample(units, lambda chosen: [f(tally.rows[chosen]) for f in drawn.values()]) if drawn else []
    for number, name in enumerate(drawn):
        low, high = np.percentile([row[number] for row in resampled], (2.5, 97.5))
        if low < high:
            values[name] = [low, high]
    for name, score in tally.scores.items():
        if name not in values and name not in UNBOUNDED:
            values[name] = find_wilson(score(tally.rows), len(units))
    return {name: [round(float(limit), 6) for limit in limits] for name, limits in values.items()}


def find_lead(
    task: FinetuneTask, outputs: Sequence[Output], others: Sequence[Output], examples: Sequence[Any]
) -> list[float]:
    """The interval of the difference of two models' `metric` on the same examples (paired bootstrap)."""
    tally, other = (TALLIES[type(task)](task, one, examples) for one in (outputs, others))
    score = tally.scores[task.metric]
    leads = _resample(_list_units(examples), lambda chosen: [score(tally.rows[chosen]) - score(other.rows[chosen])])
    return [round(float(limit), 6) for limit in np.percentile(leads, (2.5, 97.5))]


def find_wilson(share: float, count: int) -> list[float]:
    """Wilson's interval of a share of independent examples."""
    squared = TWO_SIDED**2 / count
    center, half = share + squared / 2, TWO_SIDED * math.sqrt(share * (1 - share) / count + squared / (4 * count))
    return [(center - half) / (1 + squared), (center + half) / (1 + squared)]


def _resample(
    units: Sequence[NDArray[np.int64]], measure: Callable[[NDArray[np.int64]], list[float]]
) -> list[list[float]]:
    """What is measured on each of many draws of examples; the same draws for the same number of units."""
    generator = np.random.default_rng((SEED, len(units)))
    is_single = all(len(unit) == 1 for unit in units)
    numbers = np.concatenate(units)
    draws = (generator.integers(len(units), size=len(units)) for _ in range(NUM_RESAMPLES))
    return [measure(numbers[draw] if is_single else np.concatenate([units[n] for n in draw])) for draw in draws]


def _list_units(examples: Sequence[Any]) -> list[NDArray[np.int64]]:
    """The numbers of the examples that are drawn together: about one passage, or of one group."""
    units: dict[Any, list[int]] = {}
    for number, example in enumerate(examples):
        unit = getattr(example, "group", "") or getattr(example, "context", "")
        units.setdefault(unit or number, []).append(number)
    if len(units) == 1:  # all about one passage: the variation between passages is unknown
        return [np.array([number]) for number in range(len(examples))]
    return [np.array(numbers) for numbers in units.values()]


def _tally_classes(task: Classification, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    numbers = {label: number for number, label in enumerate(task.labels)}
    rows = np.array([[numbers[task.decide(o)], numbers[e.label]] for o, e in zip(outputs, examples, strict=True)])
    scores = {name: partial(_measure, task, name) for name in task.metrics}
    return Tally(rows, scores, frozenset({"accuracy"}))


def _measure(task: Classification, name: str, rows: NDArray[Any]) -> float:
    return task.measure(name, rows[:, 0], rows[:, 1])


def _tally_numbers(task: Regression, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    rows = np.array([[o, task.decide(o), e.label] for o, e in zip(outputs, examples, strict=True)], dtype=np.float64)
    scores: dict[str, Callable[[Rows], float]] = {
        "pearson": lambda rows: metrics.pearson(rows[:, 0], rows[:, 2]),
        "spearman": lambda rows: metrics.spearman(rows[:, 0], rows[:, 2]),
        "mae": lambda rows: metrics.mean_absolute_error(rows[:, 1], rows[:, 2]),
        "rmse": lambda rows: metrics.root_mean_squared_error(rows[:, 1], rows[:, 2]),
    }
    return Tally(rows, scores)


def _tally_labels(task: MultiLabel, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    answers = [set(task.decide(output)) for output in outputs]
    truths = [set(example.label) for example in examples]
    rows = [[*_match(answer, truth), answer == truth] for answer, truth in zip(answers, truths, strict=True)]
    scores = {"micro_f1": _share_f1, "exact_match": lambda rows: float(rows[:, 3].mean())}
    return Tally(np.array(rows, dtype=np.float64), scores, frozenset({"exact_match"}))


def _tally_tags(task: TokenTags, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    rows = []
    for output, example in zip(outputs, examples, strict=True):
        answer = task.decide(output)
        num_right = sum(guess == tag for guess, tag in zip(answer, example.label, strict=True))
        spans = _match(set(find_spans(answer)), set(find_spans(example.label))) if task.has_spans else [0, 0, 0]
        rows.append([*spans, num_right, len(answer)])
    scores = {"accuracy": lambda rows: float(rows[:, 3].sum() / rows[:, 4].sum())}
    return Tally(np.array(rows, dtype=np.float64), {"span_f1": _share_f1, **scores} if task.has_spans else scores)


def _tally_spans(task: SpanTask, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    rows = np.array(score_questions([task.decide(output) for output in outputs], examples, task.version))
    return Tally(
        rows.astype(np.float64), {"exact": lambda r: float(r[:, 0].mean()), "f1": lambda r: float(r[:, 1].mean())}
    )


def _tally_choices(task: Choices, outputs: Sequence[Output], examples: Sequence[Any]) -> Tally:
    del task
    rows = np.array([[np.argmax(output) == e.label] for output, e in zip(outputs, examples, strict=True)])
    return Tally(rows.astype(np.float64), {"accuracy": lambda rows: float(rows.mean())}, frozenset({"accuracy"}))


def _match(answer: set[Any], truth: set[Any]) -> list[int]:
    return [len(answer & truth), len(answer), len(truth)]


def _share_f1(rows: Rows) -> float:
    """F1 of rows that begin with the counts of right, answered and true things."""
    right, answered, true = rows[:, :3].sum(0)
    return float(2 * right / (answered + true)) if answered + true else 0.0


TALLIES: dict[type[Any], Callable[..., Tally]] = {
    Classification: _tally_classes,
    Regression: _tally_numbers,
    MultiLabel: _tally_labels,
    TokenTags: _tally_tags,
    SpanTask: _tally_spans,
    Choices: _tally_choices,
}
