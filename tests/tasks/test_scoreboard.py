"""GLUE's average is the mean of tasks, each of which is the mean of its scores."""

from typing import Any

import pytest
from refusals import refuses
from typer.testing import CliRunner

from litebert.cli.main import app
from litebert.core.errors import ConfigError
from litebert.tasks.leaderboard.scoreboard import AVERAGED, glue_average, missing_tasks


def report(task: str, metric: str = "accuracy", **splits: dict[str, float]) -> dict[str, Any]:
    dev = {name: {"scores": scores} for name, scores in splits.items()}
    return {"task": task, "metric": metric, "dev": dev or {"dev": {"scores": {"accuracy": 0.5, "f1": 0.7}}}}


REPORTS = [
    report("cola", "matthews", dev={"matthews": 0.6, "accuracy": 0.9}),
    report("sst-2"),
    report("mrpc"),  # 0.6
    report("sts-b", "pearson", dev={"pearson": 0.9, "spearman": 0.8}),
    report("qqp"),  # 0.6
    report("mnli", dev_matched={"accuracy": 0.8}, dev_mismatched={"accuracy": 0.6}),
    report("qnli"),
    report("rte"),
]


def test_the_average_counts_each_task_once() -> None:
    assert missing_tasks(REPORTS) == []
    assert glue_average([*REPORTS, report("wnli")]) == pytest.approx(
        (0.6 + 0.5 + 0.6 + 0.85 + 0.6 + 0.7 + 0.5 + 0.5) / 8
    )


def test_what_is_missing_or_there_twice_is_named() -> None:
    assert missing_tasks(REPORTS[1:]) == ["cola"]
    assert missing_tasks([]) == list(AVERAGED)
    with refuses(ConfigError, "repeated-value"):
        glue_average([*REPORTS, report("rte")])


@pytest.mark.parametrize(("tasks", "names_them"), [(("classification",), False), (("sst-2", "classification"), True)])
def test_compare_names_missing_glue_tasks_only_if_it_compares_one(
    tasks: tuple[str, ...], names_them: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"scores": {"accuracy": 0.5}, "intervals": {}, "chance": {"score": 0.5}, "is_at_chance": True}
    reports = [{"task": task, "metric": "accuracy", "dev": {"dev": facts}} for task in tasks]
    monkeypatch.setattr("litebert.tasks.report.read_report", lambda run: reports[int(str(run))])
    made = CliRunner().invoke(app, ["compare", *map(str, range(len(tasks)))])
    assert made.exit_code == 0, made.output
    assert ("no GLUE average: cola" in made.output) is names_them
