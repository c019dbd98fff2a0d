"""Verdicts: a direction is one thing, and whether the spread lets one say so is another."""

import statistics

import pytest

from litebert.study.arms import plan_arms
from litebert.study.claims import decide, holds, judge, judge_all
from litebert.study.panels import list_panels
from litebert.study.results import Results
from litebert.study.spec import Claim, FigureSpec, Scale, Study, list_studies, load_study, parse_study
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


def test_a_verdict_is_inconclusive_if_its_margin_is_below_one_half_width() -> None:
    far = make_results({"a": [{"mlm": 50.0}, {"mlm": 50.2}], "b": [{"mlm": 54.0}, {"mlm": 54.4}]})
    near = make_results({"a": [{"mlm": 50.0}, {"mlm": 53.0}], "b": [{"mlm": 54.0}, {"mlm": 51.5}]})
    for results, outcome in ((far, "agrees"), (near, "leans")):
        verdict = judge_all(results)[0]
        assert verdict.outcome == outcome
        assert verdict.margin is not None
        assert (verdict.margin > 1) == (outcome == "agrees")
    claim = judge_all(far)[1]  # b is at forty
    assert claim.outcome == "disagrees"
    assert claim.margin is not None
    assert claim.margin < -1


def test_a_difference_far_beyond_the_seeds_spread_agrees() -> None:
    seeds = {
        "a": [{"mlm": 30.0}, {"mlm": 30.2}],
        "b": [{"mlm": 39.9}, {"mlm": 40.1}],
        "c": [{"mlm": 30.0}, {"mlm": 30.1}],
    }
    assert outcomes(make_results(seeds)) == ["agrees", "agrees", "missing"]


def test_the_interval_of_one_arm_is_students_of_the_pooled_spread_and_the_text() -> None:
    seeds = {"a": [{"mlm": 30.0}, {"mlm": 32.0}], "b": [{"mlm": 33.0}, {"mlm": 33.0}]}
    # variances 2 and 0 with a degree of freedom each: pooled 1; a mean of two seeds
    assert make_results(seeds).half_width("mlm", "a") == pytest.approx(4.303 / 2**0.5)
    with_text = make_results(seeds, intervals={"mlm": [29.0, 33.0]})
    assert with_text.half_width("mlm", "a") == pytest.approx((4.303**2 / 2 + 2.0**2) ** 0.5)


def test_an_arm_of_three_seeds_is_judged_by_its_own_spread() -> None:
    steady, lucky = (50.3, 49.7, 50.4), (61.0, 70.0, 66.0)
    results = make_results({"a": [{"sop": v} for v in steady], "b": [{"sop": v} for v in lucky]})
    assert results.half_width("sop", "a") == pytest.approx(4.303 * statistics.stdev(steady) / 3**0.5)
    at_chance = Claim(text="", metric="sop", arm="a", relation="near", to=50.0, by=3.0)
    assert judge(at_chance, results).outcome == "agrees"


def test_a_difference_of_arms_with_the_same_seeds_is_taken_seed_by_seed() -> None:
    lucky = {"a": [{"mlm": 30.0}, {"mlm": 36.0}], "b": [{"mlm": 31.0}, {"mlm": 37.01}]}
    results = make_results(lucky, intervals={"mlm": [20.0, 40.0]})  # all on the same text
    assert results.half_width_between("mlm", "a", "b") == pytest.approx(12.706 * 0.01 / 2)
    assert outcomes(results)[0] == "agrees"


def test_seeds_that_do_not_differ_make_nothing_sure() -> None:
    alike = {"a": [{"mlm": 30.0}, {"mlm": 30.0}], "b": [{"mlm": 30.1}]}
    rounded = {"a": [{"mlm": 30.1}, {"mlm": 30.2}], "b": [{"mlm": 30.3}, {"mlm": 30.4}]}  # of as many examples each
    for seeds in (alike, rounded):
        results = make_results(seeds)
        assert results.half_width_between("mlm", "a", "b") is None
        assert judge_all(results)[0].words == "agrees in direction, not beyond the spread (seeds show no spread)"


def test_layers_that_have_come_to_rest_in_every_seed_have_an_interval() -> None:
    seeds = {"a": [{"l2_floor": 0.0}] * 3, "b": [{"l2_floor": value} for value in (1.0, 1.1, 1.2)]}
    assert make_results(seeds).half_width("l2_floor", "a") == 0.0


def test_the_reference_adds_nothing_to_the_interval_of_a_speed_against_it() -> None:
    seeds = {
        arm: [{"tokens_per_second": value} for value in values]
        for arm, values in {"a": (100.0, 104.0), "b": (90.0, 96.0), "c": (150.0, 160.0)}.items()
    }
    results = make_results(seeds)
    assert results.half_width_between("speedup", "b", "a") == pytest.approx(results.half_width("speedup", "b"))


def test_an_average_with_exact_matches_is_not_compared_with_one_of_f1_alone() -> None:
    study = load_study("roberta-table-1")
    run = plan_arms(study, "paper", arms=["static"])[0]
    values = {"squad-v2": 78.3, "mnli": 84.3, "sst-2": 92.5}
    f1_alone = Results(study, "paper", (invent_report(run, values),))
    assert f1_alone.published("static", "avg") == pytest.approx(statistics.fmean(values.values()))
    with_exact = Results(study, "paper", (invent_report(run, values | {"squad-v2-em": 75.0}),))
    assert with_exact.published("static", "avg") is None


def test_the_interval_of_two_arms_is_that_of_their_differences() -> None:
    results = make_results({"a": [{"mlm": v} for v in (1.0, 2.0, 4.0)], "b": [{"mlm": v} for v in (2.0, 4.0, 5.0)]})
    expected = 4.303 * statistics.stdev([1.0, 2.0, 1.0]) / 3**0.5
    assert results.half_width_between("mlm", "a", "b") == pytest.approx(expected)


def test_arms_with_different_seeds_are_compared_by_their_pooled_spread() -> None:
    results = make_results({"a": [{"mlm": 30.0}, {"mlm": 32.0}], "b": [{"mlm": 33.0}]})
    assert results.half_width_between("mlm", "a", "b") == pytest.approx(12.706 * 2**0.5 * 1.5**0.5)


def test_relative_spreads_are_pooled_relatively() -> None:
    seeds = {
        "a": [{"perplexity": 90.0}, {"perplexity": 110.0}],
        "b": [{"perplexity": 9.0}, {"perplexity": 11.0}],
    }
    results = make_results(seeds)
    share = 4.303 / 10  # of the mean of two seeds: a deviation of 14 % over the root of two
    assert results.half_width("perplexity", "b") == pytest.approx(10 * share)
    assert results.half_width_between("perplexity", "a", "b") == pytest.approx(share * (100**2 + 10**2) ** 0.5)


@pytest.mark.parametrize(("own", "expected"), [(40.0, "agrees"), (6.0, "unlearned")])
def test_a_claim_of_arms_that_do_not_reach_the_baseline_is_inconclusive(own: float, expected: str) -> None:
    seeds = {"a": [{"mlm": 5.0}, {"mlm": 5.1}], "b": [{"mlm": own}, {"mlm": own + 0.15}]}
    results = make_results(seeds, levels={"mlm": 6.2})
    assert outcomes(results)[0] == expected
    assert results.is_above_level("a", "mlm") is False
    # for a claim against a number the baseline is shown, and decides nothing
    assert "; baseline 6.2" in judge_all(results)[1].ours


def test_sentence_pairs_above_chance_are_learned_even_if_a_bag_of_words_does_as_well() -> None:
    seeds = {"a": [{"sop": 50.1}, {"sop": 50.0}], "b": [{"sop": 66.0}, {"sop": 66.2}]}
    results = make_results(seeds, levels={"sop": 67.0})
    verdict = judge(Claim(text="", metric="sop", arm="b", relation="above", to="a"), results)
    assert (verdict.outcome, verdict.ours) == ("agrees", "66.1 against 50.0, ± 1.9; baseline 67.0")
    assert results.is_above_level("b", "sop") is False
    none = {"a": [{"sop": 50.0}, {"sop": 49.9}], "b": [{"sop": 50.4}, {"sop": 50.2}]}
    assert judge(verdict.claim, make_results(none, levels={"sop": 67.0})).outcome == "unlearned"


@pytest.mark.parametrize(("nsp", "expected"), [(70.0, "agrees"), (50.2, "unlearned")])
def test_an_arm_at_chance_counts_only_if_it_learned_its_own_task(nsp: float, expected: str) -> None:
    claim = Claim(text="", metric="sop", arm="a", relation="near", to=50.0, by=2.0, learned="nsp")
    seeds = {"a": [{"sop": 50.0, "nsp": nsp}, {"sop": 50.1, "nsp": nsp + 0.1}]}
    assert judge(claim, make_results(seeds, levels={"sop": 67.0, "nsp": 77.0})).outcome == expected


def test_the_perplexity_of_an_untrained_model_is_inconclusive() -> None:
    seeds = {
        arm: [{"mlm": 5.0, "perplexity": p}, {"mlm": 5.0, "perplexity": p + 0.01}]
        for arm, p in (("a", 9.0), ("b", 5.0))
    }
    claim = Claim(text="", metric="perplexity", arm="b", relation="below", to="a")
    assert judge(claim, make_results(seeds, levels={"mlm": 5.0})).outcome == "unlearned"
    assert judge(claim, make_results(seeds, levels={"mlm": 4.0})).outcome == "agrees"


@pytest.mark.parametrize(("words_of_a", "expected"), [(30.0, "agrees"), (5.0, "unlearned")])
def test_layers_are_compared_only_between_models_that_have_learned(words_of_a: float, expected: str) -> None:
    seeds = {
        "a": [{"mlm": words_of_a, "l2_roughness": value} for value in (20.0, 20.1, 20.2)],
        "b": [{"mlm": 30.0, "l2_roughness": value} for value in (3.0, 3.1, 3.2)],
    }
    claim = Claim(text="", metric="l2_roughness", arm="b", relation="below", to="a")
    assert judge(claim, make_results(seeds, levels={"mlm": 8.0})).outcome == expected


def test_a_claim_of_nearness_has_no_opposite_direction() -> None:
    seeds = {"a": [{"mlm": 30.0}, {"mlm": 30.0}], "b": [{"mlm": 38.0}, {"mlm": 39.9}]}
    verdict = judge_all(make_results(seeds))[1]
    assert (verdict.outcome, verdict.words) == ("opposes", "is outside, not beyond the spread")


def test_one_seed_leans_at_most_and_says_why() -> None:
    results = make_results({"a": [{"mlm": 10.0}], "b": [{"mlm": 40.0}]})
    verdict = judge_all(results)[0]
    assert verdict.outcome == "leans"
    assert "one seed" in verdict.words


def test_differences_from_a_reference_that_was_not_run_are_not_drawn() -> None:
    figure = FigureSpec(kind="differences", of=("mlm",))
    with_reference = {arm: [{"mlm": 30.0}, {"mlm": 31.0}] for arm in ("a", "b")}
    assert len(list_panels(figure, make_results(with_reference))) == 1
    assert list_panels(figure, make_results({"b": with_reference["b"]})) == []


def test_exact_metrics_need_no_seeds() -> None:
    results = make_results({"a": [{"parameters": 10.0}], "b": [{"parameters": 9.0}]})
    assert outcomes(results) == ["missing", "missing", "agrees"]


def test_a_verdict_shows_our_numbers_and_the_papers() -> None:
    results = make_results({"a": [{"mlm": 30.0}, {"mlm": 30.2}], "b": [{"mlm": 39.8}, {"mlm": 40.2}]})
    verdict = judge_all(results)[0]
    assert verdict.ours.startswith("40.0 against 30.1, ± ")
    assert verdict.paper == "51.0 against 50.0"


def test_speed_is_relative_to_the_reference_arm_seed_by_seed() -> None:
    runs = {
        arm: [{"tokens_per_second": speed * sitting} for sitting in (1.0, 0.5)]
        for arm, speed in (("a", 100), ("b", 300))
    }
    results = make_results(runs)
    cells = [results.cell(arm, "speedup") for arm in ("a", "b")]
    assert [cell.values for cell in cells if cell] == [(1.0, 1.0), (3.0, 3.0)]


def test_the_papers_average_covers_the_measured_tasks() -> None:
    study = load_study("table-5")
    assert Results(study, "paper", ()).published("sop", "avg") == 80.1  # as printed
    assert Results(study, "laptop", ()).published("sop", "avg") == pytest.approx((82.0 + 90.3) / 2)
    assert Results(load_study("table-2-speed"), "laptop", ()).published("bert-base", "avg") is None


def invent_for(claim: Claim, study: Study, scale: Scale, difference: float, untrained: set[str]) -> Results:
    """What three seeds might give of the arms that a claim compares; untrained models know nothing."""
    other = claim.to if isinstance(claim.to, float) else 60.0
    means = {study.reference: 1.0 if claim.metric == "speedup" else other}  # of which a speed-up is
    means |= {str(claim.to): other} if isinstance(claim.to, str) else {}
    means |= {claim.arm: other + difference}
    reports = []
    for place, (arm, mean) in enumerate(means.items(), start=1):
        learned = {"mlm": 4.0 if arm in untrained else 20.0} | ({claim.learned: 95.0} if claim.learned else {})
        for seed in (1, 2, 3):
            value = {claim.metric: mean + 0.001 * other * (place * seed % 3)}
            timed = {"tokens_per_second": 1000 * value.pop("speedup")} if claim.metric == "speedup" else {}
            levels = {"mlm": 9.5} if claim.metric != "mlm" else {}
            report = {"arm": arm, "seed": seed, "values": learned | value, "timed": timed}
            reports.append({**report, "levels": levels, "intervals": {}})
    return Results(study, scale, tuple(reports))


@pytest.mark.parametrize("name", [study.name for study in list_studies()])
def test_every_claim_of_every_study_can_agree_and_disagree(name: str) -> None:
    study = load_study(name)
    for scale in study.scales:
        untrained = {run.arm for run in plan_arms(study, scale, seeds=[1]) if run.recipe.train.steps == 1}
        for claim in (claim for claim in study.claims if scale in claim.scales):
            size = claim.by + 0.4 * (claim.to if isinstance(claim.to, float) else 60.0)
            kinds = {"above": (size, -size), "below": (-size, size), "near": (0.0, size)}
            for difference, expected in zip(kinds[claim.relation], ("agrees", "disagrees"), strict=True):
                results = invent_for(claim, study, scale, difference, untrained)
                assert judge(claim, results).outcome == expected, claim.text
