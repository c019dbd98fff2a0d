"""Verdicts: a direction is one thing, and whether the spread lets one say so is another."""

import pytest

from litebert.study.arms import plan_arms
from litebert.study.claims import decide, holds, judge_all
from litebert.study.results import Results, student
from litebert.study.spec import Claim, Study, parse_study
from tests.study.invented import invent_report

STUDY = """
title = "T"
source = "S"
about = "A."
reference = "a"
[arms.a]
published = { mlm = 50.0, parameters = 10 }
[arms.b]
change = { model.num_layers = 2 }
published = { mlm = 51.0, parameters = 9 }
[arms.c]
change = { model.num_layers = 3 }
[[claims]]
text = "b is above a"
metric = "mlm"
arm = "b"
relation = "above"
to = "a"
[[claims]]
text = "b is at forty"
metric = "mlm"
arm = "b"
relation = "near"
to = 40.0
by = 1.0
[[claims]]
text = "b is smaller"
metric = "parameters"
arm = "b"
relation = "below"
to = "a"
[laptop]
recipe = "laptop"
seeds = [1, 2]
measures = ["intrinsic", "parameters"]
"""


def make_results(values: dict[str, list[dict[str, float]]], **changes: object) -> Results:
    """Results of arms with the values of each seed."""
    study: Study = parse_study(STUDY, name="s", where="s")
    runs = {(run.arm, run.seed): run for run in plan_arms(study, "laptop", seeds=range(1, 9))}
    reports = [
        invent_report(runs[arm, seed], of_seed, **changes)
        for arm, seeds in values.items()
        for seed, of_seed in enumerate(seeds, start=1)
    ]
    return Results(study, "laptop", tuple(reports))


def outcomes(results: Results) -> list[str]:
    return [verdict.outcome for verdict in judge_all(results)]


@pytest.mark.parametrize(
    ("relation", "by", "difference", "half", "expected"),
    [
        ("above", 0.0, 2.0, 1.0, "agrees"),
        ("above", 0.0, 2.0, 3.0, "leans"),
        ("above", 0.0, -2.0, 3.0, "opposes"),
        ("above", 0.0, -2.0, 1.0, "disagrees"),
        ("above", 1.5, 2.0, 1.0, "leans"),
        ("below", 0.0, -2.0, 1.0, "agrees"),
        ("below", 0.0, 0.0, 0.0, "disagrees"),  # equal is not below, and exact
        ("near", 1.0, 0.2, 0.5, "agrees"),
        ("near", 1.0, -0.8, 0.5, "leans"),
        ("near", 1.0, 1.2, 0.5, "opposes"),
        ("near", 1.0, -2.0, 0.5, "disagrees"),
    ],
)
def test_an_outcome_follows_from_difference_and_interval(
    relation: str, by: float, difference: float, half: float, expected: str
) -> None:
    claim = Claim(text="", metric="mlm", arm="a", relation=relation, to="b", by=by)  # type: ignore[arg-type]
    assert decide(claim, difference, half) == expected
    assert holds(claim, difference) == (expected in ("agrees", "leans"))


def test_a_difference_far_beyond_the_seeds_spread_agrees() -> None:
    seeds = {
        "a": [{"mlm": 30.0}, {"mlm": 30.2}],
        "b": [{"mlm": 39.9}, {"mlm": 40.1}],
        "c": [{"mlm": 30.0}, {"mlm": 30.1}],
    }
    assert outcomes(make_results(seeds)) == ["agrees", "agrees", "missing"]


def test_the_interval_is_students_of_the_pooled_spread() -> None:
    results = make_results({"a": [{"mlm": 30.0}, {"mlm": 32.0}], "b": [{"mlm": 33.0}, {"mlm": 33.0}]})
    # variances 2 and 0 with a degree of freedom each: pooled 1; two means of two seeds each
    assert results.half_width("mlm", "a", "b") == pytest.approx(4.30 * 1.0)
    assert results.half_width("mlm", "a") == pytest.approx(4.30 / 2**0.5)


def test_the_text_measured_on_widens_the_interval() -> None:
    seeds = {"a": [{"mlm": 30.0}, {"mlm": 30.0}], "b": [{"mlm": 31.0}, {"mlm": 31.0}]}
    results = make_results(seeds, intervals={"mlm": [29.0, 31.0]})
    assert results.half_width("mlm", "a", "b") == pytest.approx(2**0.5)
    assert outcomes(results)[0] == "leans"


def test_one_seed_leans_at_most_and_says_why() -> None:
    results = make_results({"a": [{"mlm": 10.0}], "b": [{"mlm": 40.0}]})
    verdict = judge_all(results)[0]
    assert verdict.outcome == "leans"
    assert "one seed" in verdict.words


def test_what_is_exact_needs_no_seeds() -> None:
    results = make_results({"a": [{"parameters": 10.0}], "b": [{"parameters": 9.0}]})
    assert outcomes(results) == ["missing", "missing", "agrees"]


def test_a_verdict_shows_our_numbers_and_the_papers() -> None:
    results = make_results({"a": [{"mlm": 30.0}, {"mlm": 30.2}], "b": [{"mlm": 39.9}, {"mlm": 40.1}]})
    verdict = judge_all(results)[0]
    assert verdict.ours.startswith("40.0 against 30.1, ± ")
    assert verdict.paper == "51.0 against 50.0"


def test_students_quantiles_fall_to_the_normal_ones() -> None:
    values = [student(freedom) for freedom in range(1, 40)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 1.96


def test_speed_is_told_against_the_reference_arm() -> None:
    results = make_results({"a": [{}, {}], "b": [{}, {}]}, timed={"tokens_per_second": 100.0})
    cell = results.cell("b", "speedup")
    assert cell is not None
    assert cell.values == (1.0, 1.0)
