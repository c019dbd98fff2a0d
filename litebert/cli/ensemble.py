"""`litebert ensemble` and `litebert submission`: several runs answer as one; test answers become a GLUE zip."""

from pathlib import Path
from typing import Annotated, Any

import typer

from litebert.core.errors import DataError

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
    task: Annotated[str, typer.Option("--task", help="Their task.")],
    data: Annotated[Path, typer.Option("--data", help="The data they were measured on.")],
    out: Annotated[Path, typer.Option(help="Where the ensemble's predictions and report go.")],
    select: Annotated[
        bool, typer.Option("--select/--all", help="Choose members on dev, one by one, or take all of them.")
    ] = True,
) -> None:
    """Average the outputs of several runs; members are chosen on dev as long as each helps."""
    from litebert.tasks.catalog import read_dataset
    from litebert.tasks.ensemble import make_ensemble

    _print_ensemble(make_ensemble(runs, read_dataset(task, data), out, selects=select))


def _print_ensemble(report: dict[str, Any]) -> None:
    for name, value in report["member_scores"].items():
        print(f"{value:.4f}  {name}{'  (member)' if name in report['members'] else ''}")
    (scores,) = (facts["scores"] for facts in report["dev"].values())
    print("ensemble: " + ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items()))


def write_submission(
    runs: Annotated[list[Path] | None, typer.Argument(help="Finished runs or ensembles, one for each task.")] = None,
    out: Annotated[Path, typer.Option(help="The zip to write.")] = Path("submission.zip"),
    check: Annotated[Path | None, typer.Option(help="Only say what the leaderboard would reject in this zip.")] = None,
    rank: Annotated[
        Path | None, typer.Option(help="GLUE's folder: answer WNLI and QNLI by ranking candidates, as the paper does.")
    ] = None,
) -> None:
    """Make a GLUE submission of the test answers of runs, and say what the leaderboard would reject."""
    from litebert.tasks.submission import check_zip, gather_sheets, write_zip

    if check is None:
        write_zip(out, gather_sheets(runs or [], ranked_by=rank))
    problems = check_zip(check or out)
    for problem in problems:
        print(problem)
    if problems and check:
        raise DataError(f"{check}: {len(problems)} things would be rejected")
    print(f"{check or out}: {'complete' if not problems else f'written, with {len(problems)} things to mend'}")
