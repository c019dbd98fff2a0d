"""Print scores with their intervals, chance, a baseline, and precision and recall per label."""

from collections.abc import Mapping
from typing import Any

MAX_LABELS = 20  # with precision and recall shown


def print_split(title: str, facts: Mapping[str, Any], metric: str) -> None:
    """Print the scores of one split."""
    print(f"{title}: {describe_scores(facts)}")
    chance, name = facts["chance"], metric.replace("_", " ")
    if facts["is_at_chance"]:
        print(
            f"  not above chance: {name} of chance is {chance['score']:.4f} "
            f"(significant above {chance['score'] + chance['margin']:.4f})"
        )
        if "likely_cause" in facts:
            print(f"  likely cause: {facts['likely_cause']}")
    if "baseline" in facts:
        print(f"  {describe_baseline(facts['baseline'], metric)}")
    if facts.get("outside_accuracy", 0.0) > facts["scores"].get("accuracy", 1.0):
        print(f"  below the baseline that tags every word O ({facts['outside_accuracy']:.4f})")
    if "labels" in facts:
        _print_labels(facts["labels"])


def describe_scores(facts: Mapping[str, Any]) -> str:
    """Each score, with its 95 % interval where it has one."""
    intervals = facts.get("intervals", {})  # reports of older versions have none
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.4f}"
        + (f" ({intervals[name][0]:.4f} to {intervals[name][1]:.4f})" if name in intervals else "")
        for name, value in facts["scores"].items()
    )


def describe_baseline(baseline: Mapping[str, Any], metric: str) -> str:
    """A baseline's score, and whether the model is above it."""
    low, high = baseline["lead_interval"]
    verdict = "above" if low > 0 else "below" if high < 0 else "not distinguishable from"
    return (
        f"{baseline['name']}: {metric.replace('_', ' ')} {baseline['scores'][metric]:.4f}; the model is {verdict} it "
        f"({baseline['lead']:+.4f}, 95 % interval {low:+.4f} to {high:+.4f})"
    )


def _print_labels(labels: Mapping[str, Mapping[str, float]]) -> None:
    """Print precision and recall per label; if there are many, of the labels with the lowest F1."""
    shown = (
        list(labels) if len(labels) <= MAX_LABELS else sorted(labels, key=lambda one: labels[one]["f1"])[:MAX_LABELS]
    )
    width = max(len("label"), *(len(label) for label in shown))
    print(f"  {'label':{width}} precision recall     f1  examples")
    for label in shown:
        one = labels[label]
        print(
            f"  {label:{width}} {one['precision']:9.4f} {one['recall']:6.4f} {one['f1']:6.4f}  {one['num_examples']:8,}"
        )
    if len(shown) < len(labels):
        print(f"  (the {len(shown)} of {len(labels)} labels with the lowest f1)")
