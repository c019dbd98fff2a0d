"""Submissions: the answers of finished runs as GLUE's zip of tables, or as SQuAD's and RACE's JSON, and what is wrong
with them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from litebert.core.errors import ConfigError
from litebert.core.files import write_json
from litebert.tasks.leaderboard.answer_sheets import (
    Findings,
    check_answer_sheet,
    keep_held_out,
    read_questions,
    to_sheet,
)
from litebert.tasks.leaderboard.submission import SHEETS, check_zip, gather_sheets, write_zip
from litebert.tasks.predictions import predictions_file, read_predictions
from litebert.tasks.report import read_report


class Submission(NamedTuple):
    """A file of answers, and what is wrong with it."""

    file: Path
    findings: Findings | None  # None: not checked, because its questions are not known
    note: str = ""  # which of the questions were compared


def submit(
    runs: Sequence[Path],
    out: Path | None = None,
    *,
    rank: Path | None = None,
    split: str = "test",
    task: str = "",
    data: Path | None = None,
    overwrite: bool = False,
) -> Submission:
    """Write the answers of GLUE runs, or of one run of SQuAD or multiple choice, and check them.

    GLUE's are always checked, the others against the questions of `task` at `data`. With GLUE's folder as `rank`, WNLI
    and QNLI are answered by ranking.
    """
    is_glue = _is_for_glue(runs[0])
    usual = "submission.zip" if is_glue else "submission.json"
    file = out or Path(usual)
    if file.is_dir():
        raise ConfigError("is-a-folder", f"{file} is a folder; name a file, such as {file / usual}", option="out")
    if file.exists() and not overwrite:
        raise ConfigError(
            "output-exists", f"{file} already exists: choose another name, or overwrite it", option="overwrite"
        )
    _check_options(is_glue=is_glue, task=task, data=data)
    if is_glue:
        write_zip(file, gather_sheets(runs, ranked_by=rank))
        return Submission(file, Findings(check_zip(file), []))
    if rank:
        raise ConfigError("conflicting-options", "rank is only for WNLI and QNLI: leave it out", option="rank")
    if len(runs) > 1:
        raise ConfigError(
            "conflicting-options", "a SQuAD or RACE submission has one run; to combine several, make an ensemble"
        )
    note = ""
    questions = None if data is None else read_questions(task, data, split)  # before anything is written
    if questions:
        num_all, questions = len(questions.examples), keep_held_out(questions, runs[0], split)
        if len(questions.examples) < num_all:
            which = f"{len(questions.examples):,} of its {num_all:,} questions were held out for {split}"
            note = f"{data}: {which}; only these are checked"
    write_json(file, to_sheet(read_predictions(predictions_file(runs[0], split))))
    return Submission(file, check_answer_sheet(file, questions) if questions else None, note)


def check_submission(file: Path, *, split: str = "test", task: str = "", data: Path | None = None) -> Submission:
    """Check a zip of GLUE's tables, or a JSON file of answers to the questions of `task` at `data`."""
    if file.is_dir():
        usual = file / "submission.zip"
        raise ConfigError("is-a-folder", f"{file} is a folder; name a file, such as {usual}", option="check")
    is_glue = file.suffix != ".json"
    _check_options(is_glue=is_glue, task=task, data=data)
    if is_glue:
        return Submission(file, Findings(check_zip(file), []))
    if data is None:
        raise ConfigError("incomplete-options", f"{file} is checked against questions: name task and data")
    return Submission(file, check_answer_sheet(file, read_questions(task, data, split)))


def _check_options(*, is_glue: bool, task: str, data: Path | None) -> None:
    if is_glue and (task or data):
        raise ConfigError(
            "conflicting-options", "task and data are for SQuAD and RACE; GLUE does not need them: leave them out"
        )
    if bool(task) != (data is not None):
        raise ConfigError("incomplete-options", "task and data go together: name both or neither")


def _is_for_glue(run: Path) -> bool:
    """Whether a run is submitted as a GLUE table, else as answers to questions; other tasks have no submission."""
    report = read_report(run)
    is_glue = report["task"] in {sheet.task for sheet in SHEETS.values()}
    if not is_glue and report.get("facts", {}).get("kind") not in ("spans", "choices"):
        raise ConfigError(
            "wrong-task",
            f"{run} is of task {report['task']}, without a submission format (GLUE, SQuAD and multiple choice have); "
            f"its answers are in {run / 'predictions'}",
        )
    return is_glue
