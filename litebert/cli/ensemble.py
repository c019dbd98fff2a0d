"""`litebert compare`, `ensemble` and `submission`: compare runs, average them, submit their answers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    check_new,
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
      litebert submission runs/tnews runs/chid --data clue/ --out submission.zip
    """
    if not runs and check is None:
        raise ConfigError("missing-option", "name the runs to submit, or a file with --check")
    board = _find_board(runs, out) if runs else _find_board_of(check)
    usual = "submission.json" if board == "answers" else "submission.zip"
    file = check or out or Path(usual)
    if file.is_dir():
        flag = "--out" if check is None else "--check"
        raise ConfigError("is-a-folder", f"{flag} {file} is a folder; name a file, such as {file / usual}")
    if check is None:
        check_new(file, overwrite=overwrite)
    findings: Findings | None
    if board == "clue":
        if task:
            raise ConfigError("conflicting-options", "--task is for SQuAD and RACE: leave it out")
        findings = _submit_clue(runs or [], file, data, rank, is_check=check is not None)
    elif board == "glue":
        if task or data:
            raise ConfigError(
                "conflicting-options",
                "--task and --data are for SQuAD and RACE; GLUE does not need them: leave them out",
            )
        findings = _submit_tables(runs or [], file, rank, is_check=check is not None)
    else:
        if rank:
            raise ConfigError("conflicting-options", "--rank is only for WNLI and QNLI: leave it out")
        findings = _submit_answers(runs or [], split, file, task, data, is_check=check is not None)
    if findings is None:
        print(f"{file}: written, not checked; add --task and --data to check it against the questions")
        return
    _print_findings(file, findings, is_written=check is None)
    raise typer.Exit(1 if findings.problems else 0)


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


Board = Literal["glue", "clue", "answers"]


def _find_board(runs: list[Path], out: Path | None) -> Board:
    """Where runs are submitted: as tables to GLUE, as files to CLUE, or as answers to questions.

    CLUE's questions can also be answered by themselves; then they are answers like SQuAD's.
    """
    from litebert.tasks.leaderboard.clue_submission import CLUE_TASKS
    from litebert.tasks.leaderboard.submission import SHEETS
    from litebert.tasks.report import read_report

    report = read_report(runs[0])
    if report["task"] in {sheet.task for sheet in SHEETS.values()}:
        return "glue"
    are_questions = report.get("facts", {}).get("kind") in ("spans", "choices")
    is_archive = len(runs) > 1 or (out is not None and out.suffix == ".zip")
    if report["task"] in CLUE_TASKS and (is_archive or not are_questions):
        return "clue"
    if not are_questions:
        raise ConfigError(
            "wrong-task",
            f"{runs[0]} is of task {report['task']}, without a submission format (GLUE, CLUE, SQuAD and multiple "
            f"choice have); its answers are in {runs[0] / 'predictions'}",
        )
    return "answers"


def _find_board_of(file: Path | None) -> Board:
    """For which leaderboard a file was written."""
    from litebert.tasks.leaderboard.clue_submission import is_clue_zip

    if file is not None and file.suffix == ".json":
        return "answers"
    return "clue" if file is not None and is_clue_zip(file) else "glue"


def _submit_clue(runs: list[Path], file: Path, data: Path | None, rank: Path | None, *, is_check: bool) -> "Findings":
    """Write CLUE's files of runs, and find what the leaderboard would reject."""
    from litebert.tasks.leaderboard.answer_sheets import Findings
    from litebert.tasks.leaderboard.clue_submission import check_clue_files, check_clue_zip, gather_clue
    from litebert.tasks.leaderboard.submission import write_archive

    if data and rank and data != rank:
        raise ConfigError("conflicting-options", "--data and --rank are the same folder of CLUE: give one of them")
    if is_check:
        return Findings(check_clue_zip(file, data), [])
    texts = gather_clue(runs, data or rank, is_ranked=rank is not None)
    findings = Findings(check_clue_files(texts, data or rank), [])  # before anything is written
    write_archive(file, texts)
    return findings


def _submit_tables(runs: list[Path], file: Path, rank: Path | None, *, is_check: bool) -> "Findings":
    """Write the GLUE tables of runs, and find what the leaderboard would reject."""
    from litebert.tasks.leaderboard.answer_sheets import Findings
    from litebert.tasks.leaderboard.submission import check_zip, gather_sheets, write_zip

    if not is_check:
        write_zip(file, gather_sheets(runs, ranked_by=rank))
    return Findings(check_zip(file), [])


def _submit_answers(
    runs: list[Path], split: str, file: Path, task: str, data: Path | None, *, is_check: bool
) -> "Findings | None":
    """Write the answers of one run, and compare them with the questions; None if these are not given."""
    from litebert.tasks.leaderboard.answer_sheets import (
        check_answer_sheet,
        keep_held_out,
        read_questions,
        write_answer_sheet,
    )

    if len(runs) > 1:
        raise ConfigError(
            "conflicting-options", "a SQuAD or RACE submission has one run; to combine several, use `litebert ensemble`"
        )
    if bool(task) != (data is not None):
        raise ConfigError("incomplete-options", "--task and --data go together: set both or neither")
    if is_check and data is None:
        raise ConfigError("incomplete-options", "--check of a JSON file needs the questions: set --task and --data")
    questions = None if data is None else read_questions(task, data, split)  # before anything is written
    if questions is not None and not is_check:
        num_all, questions = len(questions.examples), keep_held_out(questions, runs[0], split)
        if len(questions.examples) < num_all:
            which = f"{len(questions.examples):,} of its {num_all:,} questions were held out for {split}"
            print(f"{data}: {which}; only these are checked")
    if not is_check:
        write_answer_sheet(runs[0], split, file)
    return None if questions is None else check_answer_sheet(file, questions)
