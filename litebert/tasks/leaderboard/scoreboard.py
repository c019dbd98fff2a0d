"""The average score over GLUE's tasks."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from litebert.core.errors import ConfigError

# The eight tasks of the papers' dev tables, which omit WNLI: its dev set is adversarial to its train set.
AVERAGED = ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte")
# A task with two official scores counts by their mean, as on the leaderboard.
_BOTH = {"mrpc": ("accuracy", "f1"), "qqp": ("accuracy", "f1"), "sts-b": ("pearson", "spearman")}


def task_score(report: Mapping[str, Any]) -> float:
    """The mean of a task's official scores, averaged over its dev splits."""
    names = _BOTH.get(report["task"], (report["metric"],))
    return fmean(split["scores"][name] for split in report["dev"].values() for name in names)


def missing_tasks(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tasks that the average needs and the reports lack."""
    found = [report["task"] for report in reports]
    return [task for task in AVERAGED if task not in found]


def glue_average(reports: Sequence[Mapping[str, Any]]) -> float:
    """The mean over GLUE's tasks, with one report per task."""
    counted = {report["task"]: task_score(report) for report in reports if report["task"] in AVERAGED}
    twice = [report["task"] for report in reports if report["task"] in AVERAGED]
    if len(twice) > len(counted):
        raise ConfigError(
            "repeated-value", f"several runs of the same task ({', '.join(sorted(twice))}); give one run per task"
        )
    return fmean(counted.values())
