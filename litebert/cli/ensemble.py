"""`litebert ensemble` and `litebert submission`: several runs answer as one; answers to hand in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litebert.cli.scores import describe_baseline, describe_scores, print_split
from litebert.cli.words import (
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
    PositiveLabel,
    TaskName,
    TestFile,
    TextBColumn,
    TextColumn,
)
from litebert.core.errors import ConfigError
from litebert.inference.task_request import tell_notes

if TYPE_CHECKING:
    from litebert.tasks.answer_sheets import Findings

MAX_LISTED = 12  # findings of a kind: each of GLUE's tables may have one

Runs = Annotated[list[Path], typer.Argument(help="Folders of finished fine-tuning runs.", show_default=False)]


def show_scores(runs: Runs) -> None:
    """Show the dev scores of finished runs beside chance, and GLUE's average if they cover it."""
    from litebert.tasks.report import read_report
    from litebert.tasks.scoreboard import glue_average, missing_tasks

    reports = {str(run): read_report(run) for run in runs}
    width = max(len(name) for name in reports)
    for name, report in reports.items():
        for split, facts in report["dev"].items():
            scores = describe_scores(facts)
            chance = f"{'at chance: ' if facts['is_at_chance'] else ''}without reading {facts['chance']['score']:.4f}"
            print(f"{name:{width}}  {report['task']} {split}: {scores} ({chance})")
            if "baseline" in facts:
                print(f"{'':{width}}  {describe_baseline(facts['baseline'], report['metric'])}")
    missing = missing_tasks(list(reports.values()))
    if missing:
        print(f"no GLUE average: {', '.join(missing)} missing")
    else:
        print(f"GLUE average (dev, without WNLI): {100 * glue_average(list(reports.values())):.1f}")


def run_ensemble(
    runs: Runs,
    task: TaskName,
    data: DataPath,
    out: Annotated[Path, typer.Option(help="Where the ensemble's predictions and report go.")],
    select: Annotated[
        bool, typer.Option("--select/--all", help="Choose members on dev, one by one, or take all of them.")
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
) -> None:
    """Average the outputs of several runs; members are chosen on dev, one by one, up to the best score.

    The data is that of their fine-tuning, said in the same words.
    """
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.ensemble import make_ensemble
    from litebert.tasks.reading import TableOptions

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
    for name, value in report["member_scores"].items():
        print(f"{value:.4f}  {name}{'  (member)' if name in report['members'] else ''}")
    for split, facts in {**report["dev"], **report["test"]}.items():
        print_split(f"ensemble of {len(report['members'])}, {split}", facts, report["metric"])


def write_submission(
    runs: Annotated[list[Path] | None, typer.Argument(help="Finished runs or ensembles, one for each task.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write. Default: submission.zip, or .json for SQuAD and RACE.")
    ] = None,
    check: Annotated[Path | None, typer.Option(help="Only say what is to be mended in this zip or JSON.")] = None,
    rank: Annotated[
        Path | None, typer.Option(help="GLUE's folder: answer WNLI and QNLI by ranking candidates, as the paper does.")
    ] = None,
    split: Annotated[str, typer.Option(help="SQuAD and RACE: whose answers.")] = "test",
    task: Annotated[str, typer.Option("--task", help="SQuAD and RACE: check with the questions of this task ...")] = "",
    data: Annotated[Path | None, typer.Option("--data", help="... in this folder or file.")] = None,
) -> None:
    """Make a submission of the test answers of runs (GLUE's zip; JSON for SQuAD, RACE), and say what is to be mended.

    GLUE's tables are always checked; answers to questions are where --task and --data say which questions they are.
    Exit code 0 if there is nothing to mend, 1 if there is; the file is written all the same.
    """
    if not runs and check is None:
        raise ConfigError("missing-option", "name the runs whose test answers are handed in, or --check FILE")
    is_glue = _is_for_glue(runs[0]) if runs else not (check and check.suffix == ".json")
    file = check or out or Path("submission.zip" if is_glue else "submission.json")
    if file.is_dir():
        word, usual = ("--out" if check is None else "--check"), ("submission.zip" if is_glue else "submission.json")
        raise ConfigError("is-a-folder", f"{word} {file} is a folder, and is to be a file, such as {file / usual}")
    findings: Findings | None
    if is_glue:
        if task or data:
            raise ConfigError(
                "conflicting-options",
                "--task and --data say nothing to GLUE's tables, which are checked without: leave them out",
            )
        findings = _submit_tables(runs or [], file, rank, is_check=check is not None)
    else:
        if rank:
            raise ConfigError("conflicting-options", "--rank is for WNLI and QNLI alone: leave it out")
        findings = _submit_answers(runs or [], split, file, task, data, is_check=check is not None)
    if findings is None:
        remedy = "say --task and --data, with its questions, to know whether it is complete"
        print(f"{file}: written, not checked; {remedy}")
        return
    _tell_findings(file, findings, is_written=check is None)
    raise typer.Exit(1 if findings.problems else 0)


def _tell_findings(file: Path, findings: "Findings", *, is_written: bool) -> None:
    """The first findings of each kind, and how many there are."""
    warnings = [f"warning: {warning}" for warning in findings.warnings]
    for lines in (findings.problems, warnings):
        print(*lines[:MAX_LISTED], sep="\n", end="\n" if lines else "")
        if len(lines) > MAX_LISTED:
            print(f"... and {len(lines) - MAX_LISTED:,} more")
    problems, doubts = _count(findings.problems, "thing"), _count(warnings, "warning")
    if findings.problems:
        verdict = f"{'written, with ' if is_written else ''}{problems} to mend{f', and {doubts}' if warnings else ''}"
    else:
        verdict = f"complete{f', with {doubts}' if warnings else ''}"
    print(f"{file}: {verdict}")


def _count(lines: list[str], word: str) -> str:
    return f"{len(lines):,} {word}{'' if len(lines) == 1 else 's'}"


def _is_for_glue(run: Path) -> bool:
    """Whether a run is handed in as a table of GLUE's, else as answers to questions; nothing else is handed in."""
    from litebert.tasks.report import read_report
    from litebert.tasks.submission import SHEETS

    report = read_report(run)
    is_glue = report["task"] in {sheet.task for sheet in SHEETS.values()}
    if not is_glue and report.get("facts", {}).get("kind") not in ("spans", "choices"):
        raise ConfigError(
            "wrong-task",
            f"{run} is of task {report['task']}: GLUE, SQuAD and multiple choice are handed in; its answers lie in "
            f"{run / 'predictions'}",
        )
    return is_glue


def _submit_tables(runs: list[Path], file: Path, rank: Path | None, *, is_check: bool) -> "Findings":
    """Write the tables of runs, and find what the leaderboard would reject."""
    from litebert.tasks.answer_sheets import Findings
    from litebert.tasks.submission import check_zip, gather_sheets, write_zip

    if not is_check:
        write_zip(file, gather_sheets(runs, ranked_by=rank))
    return Findings(check_zip(file), [])


def _submit_answers(
    runs: list[Path], split: str, file: Path, task: str, data: Path | None, *, is_check: bool
) -> "Findings | None":
    """Write the answers of one run, and compare them with the questions; None where those are not given."""
    from litebert.tasks.answer_sheets import check_answer_sheet, keep_held_out, read_questions, write_answer_sheet

    if len(runs) > 1:
        raise ConfigError(
            "conflicting-options", "SQuAD and RACE are handed in one run at a time: make an ensemble of them"
        )
    if bool(task) != (data is not None):
        raise ConfigError("incomplete-options", "--task and --data belong together: say both, or neither")
    if is_check and data is None:
        raise ConfigError("incomplete-options", "--check of a JSON needs the questions: say --task and --data")
    questions = None if data is None else read_questions(task, data, split)  # before anything is written
    if questions is not None and not is_check:
        num_all, questions = len(questions.examples), keep_held_out(questions, runs[0], split)
        if len(questions.examples) < num_all:
            which = f"{len(questions.examples):,} of its {num_all:,} questions were held out for {split}"
            print(f"{data}: {which}, and are those compared with")
    if not is_check:
        write_answer_sheet(runs[0], split, file)
    return None if questions is None else check_answer_sheet(file, questions)
