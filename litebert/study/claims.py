"""Checks a paper's claims against measured results, taking the spread over seeds into account."""

import math
from dataclasses import dataclass
from typing import Literal

from litebert.study.metrics import Metric, describe
from litebert.study.results import Results
from litebert.study.spec import Claim

Outcome = Literal["agrees", "leans", "opposes", "disagrees", "unlearned", "missing"]
WORDS: dict[Outcome, str] = {
    "agrees": "agrees",
    "leans": "agrees in direction, not beyond the spread",
    "opposes": "points the other way, not beyond the spread",
    "disagrees": "disagrees",
    "unlearned": "inconclusive: not above chance or a constant answer",
    "missing": "not measured",
}
_OUTSIDE = "is outside, not beyond the spread"  # for claims of kind "near", which have no opposite direction
_LEARNED = "mlm"  # the metric that shows whether a model has learned, if the claim's own does not


@dataclass(frozen=True)
class Verdict:
    """A claim with its measured and published numbers, and the outcome."""

    claim: Claim
    outcome: Outcome
    ours: str
    paper: str
    remark: str = ""
    margin: float | None = None  # by how much the claim holds (negative: does not), in half widths of its 95 % interval

    @property
    def measured_by(self) -> str:
        return describe(self.claim.metric).label

    @property
    def words(self) -> str:
        is_outside = self.claim.relation == "near" and self.outcome == "opposes"
        return (_OUTSIDE if is_outside else WORDS[self.outcome]) + (f" ({self.remark})" if self.remark else "")


def judge_all(results: Results) -> list[Verdict]:
    """The verdicts on all claims of a study that apply to this scale."""
    return [judge(claim, results) for claim in results.study.claims if results.scale in claim.scales]


def judge(claim: Claim, results: Results) -> Verdict:
    """One claim."""
    metric = describe(claim.metric)
    paper = describe_sides(metric, *(published_sides(claim, results)))
    sides = _measured_sides(claim, results)
    if None in sides:
        return Verdict(claim, "missing", "", paper)
    own, other = (side for side in sides if side is not None)
    half = _half_width(claim, results)
    ours = describe_sides(metric, own, other) + (f", ± {metric.show(half)}" if half else "")
    level = results.level(claim.metric)
    shows_level = not isinstance(claim.to, str) or not any(
        results.is_above_level(arm, claim.metric) for arm in _arms_of(claim)
    )
    if level is not None and shows_level:
        ours += f"; baseline {metric.show(level)}"
    if not _has_learned(claim, results):
        return Verdict(claim, "unlearned", ours, paper)
    if half is None:
        outcome: Outcome = "leans" if holds(claim, own - other) else "opposes"
        is_one_seed = all(len(results.of_arm(arm)) == 1 for arm in _arms_of(claim))
        remark = "one seed: spread unknown" if is_one_seed else "seeds show no spread"
        return Verdict(claim, outcome, ours, paper, remark)
    margin = slack(claim, own - other) / half if half else math.copysign(math.inf, slack(claim, own - other))
    return Verdict(claim, decide(claim, own - other, half), ours, paper, margin=margin)


def _half_width(claim: Claim, results: Results) -> float | None:
    if describe(claim.metric).is_exact:
        return 0.0
    if isinstance(claim.to, str):
        return results.half_width_between(claim.metric, claim.arm, claim.to)
    return results.half_width(claim.metric, claim.arm)


def _arms_of(claim: Claim) -> list[str]:
    return [claim.arm, claim.to] if isinstance(claim.to, str) else [claim.arm]


def _has_learned(claim: Claim, results: Results) -> bool:
    """Whether any arm of a claim has learned something; for a claim about a number this is checked only on request.

    For a claim about layers, all arms must have learned.
    """
    arms = _arms_of(claim)
    if claim.learned:
        known = [results.has_learned(claim.arm, claim.learned)]
    elif results.level(claim.metric) is None:
        known = [] if describe(claim.metric).is_untrained else [results.has_learned(arm, _LEARNED) for arm in arms]
    else:
        known = [results.has_learned(arm, claim.metric) for arm in arms] if len(arms) > 1 else []
    known = [is_above for is_above in known if is_above is not None]
    return (all(known) if describe(claim.metric).is_of_layers else any(known)) or not known


def holds(claim: Claim, difference: float) -> bool:
    """Whether a difference is as claimed, regardless of the spread."""
    return slack(claim, difference) >= 0 if claim.relation == "near" else slack(claim, difference) > 0


def slack(claim: Claim, difference: float) -> float:
    """The margin by which a difference supports the claim; negative if it contradicts it."""
    if claim.relation == "near":
        return claim.by - abs(difference)
    return (difference if claim.relation == "above" else -difference) - claim.by


def decide(claim: Claim, difference: float, half: float) -> Outcome:
    """The outcome of a difference with a 95 % interval of ± `half`."""
    is_sure = abs(slack(claim, difference)) > half or half == 0  # exact metrics
    if holds(claim, difference):
        return "agrees" if is_sure else "leans"
    return "disagrees" if is_sure else "opposes"


def published_sides(claim: Claim, results: Results) -> tuple[float | None, float | None]:
    other = results.published(claim.to, claim.metric) if isinstance(claim.to, str) else claim.to
    return results.published(claim.arm, claim.metric), other


def _measured_sides(claim: Claim, results: Results) -> tuple[float | None, float | None]:
    own = results.cell(claim.arm, claim.metric)
    other = results.cell(claim.to, claim.metric) if isinstance(claim.to, str) else None
    to = claim.to if not isinstance(claim.to, str) else (other.mean if other else None)
    return (own.mean if own else None), to


def describe_sides(metric: Metric, own: float | None, other: float | None) -> str:
    """Two numbers to compare; empty if one is missing."""
    if own is None or other is None:
        return ""
    return f"{metric.show(own)} against {metric.show(other)}"
