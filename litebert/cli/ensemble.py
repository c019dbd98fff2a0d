"""`litebert compare`, `ensemble` and `submission`: compare runs, average them, submit their answers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litebert.cli.printing import print_json
from litebert.cli.scores import describe_baseline, describe_scores, print_split
from litebert.cli.words import (
    AsJson,
    ChoicesField,
    DataPath,
    DevFile,
    DevShare,
    Encoding,
    GroupColumn,
    HasHeader,
    LabelColumn,
    MaxLabels,
    MetricName,
    OnErrorWord,
    OutFolder,
    Overwrite,
    PositiveLabel,
    Runs,
    TaskName,
    TestFile,
    TextBColumn,
    TextColumn,
)
from litebert.core.errors import ConfigError
from litebert.inference.task_request import tell_notes

if TYPE_CHECKING:
    from litebert.tasks.leaderboard.answer_sheets import Findings

MAX_LISTED = 12  # per kind of finding; each GLUE table may have one


def compare_runs(runs: Runs, as_json: AsJson = False) -> None:
    """Compare the dev scores of finished runs, with chance and baselines.

    If all tasks of GLUE are there, their average is shown.

    Examples:
      litebert compare runs/reviews runs/reviews-scratch
      litebert compare runs/reviews runs/reviews-scratch --json
    """
    from litebert.tasks.leaderboard.scoreboard import AVERAGED, glue_average, missing_tasks
    from litebert.tasks.report import read_report

    reports = {str(run): read_report(run) for run in runs}
    missing = missing_tasks(list(reports.values()))
    average = None if missing else glue_average(list(reports.values()))
    if as_json:
        dev = {name: {"task": report["task"], "dev": report["dev"]} for name, report in reports.items()}
        print_json({"runs": dev, "glue_average": average})
        return
    width = max(len(name) for name in reports)
    for name, report in reports.items():
        for split, facts in report["dev"].items():
            scores = describe_scores(facts)
            chance = f"{'not above ' if facts['is_at_chance'] else ''}chance {facts['chance']['score']:.4f}"
            print(f"{name:{width}}  {report['task']} {split}: {scores} ({chance})")
            if "baseline" in facts:
                print(f"{'':{width}}  {describe_baseline(facts['baseline'], report['metric'])}")
    if 0 < len(missing) < len(AVERAGED):
        print(f"no GLUE average: {', '.join(missing)} missing")
    elif average is not None:
        print(f"GLUE average (dev, without WNLI): {100 * average:.1f}")


def run_ensemble(
    runs: Runs,
    task: TaskName,
    data: DataPath,
    out: OutFolder,
    select: Annotated[
        bool, typer.Option("--select/--all", help="Select members greedily on dev, or use all runs.")
    ] = True,
    dev: DevFile = None,
    test: TestFile = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = "utf-8",
    dev_share: DevShare = 0.1,
    group: GroupColumn = None,
    metric: MetricName = None,
    positive: PositiveLabel = None,
    header: HasHeader = None,
    max_labels: MaxLabels = 500,
    choices: ChoicesField = None,
    on_error: OnErrorWord = "fail",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Average the outputs of several runs. Members are selected on dev, one by one, while the score improves.

    Give the same data options as for fine-tuning.

    Examples:
      litebert ensemble runs/reviews runs/reviews-scratch --task classification --data reviews.csv --out runs/both
    """
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.ensemble import check_out, make_ensemble
    from litebert.tasks.files.reading import TableOptions

    check_out(out, overwrite=overwrite)
    options = TableOptions(
        dev,
        test,
        text,
        text_b,
        label,
        encoding,
        dev_share,
        group=group,
        metric=metric,
        positive=positive,
        has_header=header,
        max_labels=max_labels,
        choices=choices,
        on_error=on_error,
    )
    dataset = read_dataset(task, data, options)
    tell_notes(dataset)
    report = make_ensemble(runs, dataset, out, selects=select)
    if as_json:
        print_json(report)
        return
    for name, value in report["member_scores"].items():
        print(f"{value:.4f}  {name}{'  (member)' if name in report['members'] else ''}")
    for split, facts in {**report["dev"], **report["test"]}.items():
        print_split(f"ensemble of {len(report['members'])}, {split}", facts, report["metric"])


def write_submission(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUNS", help="Finished runs or ensembles, one per task.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write. Default: submission.zip, or submission.json for a single run of questions or choices.",
        ),
    ] = None,
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="Only check this zip or JSON file.")] = None,
    rank: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of GLUE or CLUE; answer WNLI, QNLI and CHID by ranking candidates, as published.",
        ),
    ] = None,
    split: Annotated[str, typer.Option(metavar="NAME", help="Split to submit (SQuAD and RACE).")] = "test",
    task: Annotated[
        str, typer.Option("--task", metavar="TASK", help="Task whose questions to check against (SQuAD and RACE).")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="PATH", help="Task data: the questions of --task, or the folder of CLUE."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write answers of runs as a GLUE, CLUE, SQuAD or RACE submission, and check it.

    GLUE and CLUE submissions are always checked, CLUE's with --data against its test files too. SQuAD and RACE need
    --task and --data for that.
    Exit code 1 if there are problems; the file is written anyway.

    Examples:
      litebert submission runs/squad --split dev --task squad-v1 --data squad.json --out answers.json
    """
    from litebert.tasks.leaderboard.submit import check_submission, submit

    if check is not None:
        done = check_submission(check, split=split, task=task, data=data)
    elif runs:
        done = submit(runs, out, rank=rank, split=split, task=task, data=data, overwrite=overwrite)
    else:
        raise ConfigError("missing-option", "name the runs to submit, or a file with --check")
    if done.note:
        print(done.note)
    if done.findings is None:
        print(f"{done.file}: written, not checked; add --task and --data to check it against the questions")
        return
    _print_findings(done.file, done.findings, is_written=check is None)
    raise typer.Exit(1 if done.findings.problems else 0)


def _print_findings(file: Path, findings: "Findings", *, is_written: bool) -> None:
    """Print the first findings of each kind, and their number."""
    warnings = [f"warning: {warning}" for warning in findings.warnings]
    for lines in (findings.problems, warnings):
        print(*lines[:MAX_LISTED], sep="\n", end="\n" if lines else "")
        if len(lines) > MAX_LISTED:
            print(f"... and {len(lines) - MAX_LISTED:,} more")
    problems, doubts = _count(findings.problems, "problem"), _count(warnings, "warning")
    if findings.problems:
        verdict = f"{'written, with ' if is_written else ''}{problems}{f' and {doubts}' if warnings else ''}"
    else:
        verdict = f"complete{f', with {doubts}' if warnings else ''}"
    print(f"{file}: {verdict}")


def _count(lines: list[str], word: str) -> str:
    return f"{len(lines):,} {word}{'' if len(lines) == 1 else 's'}"
