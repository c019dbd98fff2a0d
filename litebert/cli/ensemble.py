"""`litebert ensemble` and `litebert submission`: several runs answer as one; answers to hand in."""

from pathlib import Path
from typing import Annotated

import typer

from litebert.cli.task_request import tell_notes
from litebert.cli.words import (
    DataPath,
    DevFile,
    DevShare,
    Encoding,
    LabelColumn,
    TaskName,
    TestFile,
    TextBColumn,
    TextColumn,
)
from litebert.core.errors import ConfigError, DataError

Runs = Annotated[list[Path], typer.Argument(help="Folders of finished fine-tuning runs.", show_default=False)]


def show_scores(runs: Runs) -> None:
    """Show the dev scores of finished runs beside chance, and GLUE's average if they cover it."""
    from litebert.tasks.report import read_report
    from litebert.tasks.scoreboard import glue_average, missing_tasks

    reports = {str(run): read_report(run) for run in runs}
    width = max(len(name) for name in reports)
    for name, report in reports.items():
        for split, facts in report["dev"].items():
            scores = ", ".join(f"{metric.replace('_', ' ')} {value:.4f}" for metric, value in facts["scores"].items())
            chance = f"{'at chance: ' if facts['is_at_chance'] else ''}without reading {facts['chance']['score']:.4f}"
            print(f"{name:{width}}  {report['task']} {split}: {scores} ({chance})")
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
) -> None:
    """Average the outputs of several runs; members are chosen on dev as long as each helps.

    The data is that of their fine-tuning, said in the same words.
    """
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.ensemble import make_ensemble
    from litebert.tasks.reading import TableOptions

    options = TableOptions(dev, test, text, text_b, label, encoding, dev_share)
    dataset = read_dataset(task, data, options)
    tell_notes(dataset)
    report = make_ensemble(runs, dataset, out, selects=select)
    for name, value in report["member_scores"].items():
        print(f"{value:.4f}  {name}{'  (member)' if name in report['members'] else ''}")
    for split, facts in {**report["dev"], **report["test"]}.items():
        scores = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in facts["scores"].items())
        print(f"ensemble of {len(report['members'])}, {split}: {scores}")


def write_submission(
    runs: Annotated[list[Path] | None, typer.Argument(help="Finished runs or ensembles, one for each task.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write. Default: submission.zip, or .json for SQuAD and RACE.")
    ] = None,
    check: Annotated[Path | None, typer.Option(help="Only say what would be rejected in this zip or JSON.")] = None,
    rank: Annotated[
        Path | None, typer.Option(help="GLUE's folder: answer WNLI and QNLI by ranking candidates, as the paper does.")
    ] = None,
    split: Annotated[str, typer.Option(help="SQuAD and RACE: whose answers.")] = "test",
    task: Annotated[str, typer.Option("--task", help="SQuAD and RACE: check with the questions of this task ...")] = "",
    data: Annotated[Path | None, typer.Option("--data", help="... in this folder or file.")] = None,
) -> None:
    """Make a submission of the test answers of runs (GLUE's zip; JSON for SQuAD, RACE), and say what is rejected."""
    from litebert.tasks.report import read_report
    from litebert.tasks.submission import SHEETS, check_zip, gather_sheets, write_zip

    if not runs and check is None:
        raise ConfigError("name the runs whose test answers are handed in, or --check FILE")
    glue = {sheet.task for sheet in SHEETS.values()}
    is_glue = read_report(runs[0])["task"] in glue if runs else not (check and check.suffix == ".json")
    file = check or out or Path("submission.zip" if is_glue else "submission.json")
    if not is_glue:
        problems = _submit_answers(runs or [], split, file, task, data, is_check=check is not None)
    else:
        if check is None:
            write_zip(file, gather_sheets(runs or [], ranked_by=rank))
        problems = check_zip(file)
    for problem in problems:
        print(problem)
    if problems and check:
        raise DataError(f"{check}: {len(problems)} things would be rejected")
    print(f"{file}: {'complete' if not problems else f'written, with {len(problems)} things to mend'}")


def _submit_answers(
    runs: list[Path], split: str, file: Path, task: str, data: Path | None, *, is_check: bool
) -> list[str]:
    """Write the answers of one run, and compare them with the questions where those are given."""
    from litebert.tasks.answer_sheets import check_answer_sheet, write_answer_sheet
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.reading import TableOptions

    if not is_check:
        if len(runs) > 1:
            raise ConfigError("SQuAD and RACE are handed in one run at a time: make an ensemble of them")
        write_answer_sheet(runs[0], split, file)
    if data is None or not task:
        if is_check:
            raise ConfigError("--check of a JSON needs the questions: say --task and --data")
        return []
    dataset = read_dataset(task, data, TableOptions(dev_share=0.0))
    return check_answer_sheet(file, dataset, "train" if data.is_file() else split)
