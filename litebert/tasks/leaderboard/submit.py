"""Submissions: the answers of finished runs as GLUE's zip of tables, CLUE's zip of files, or SQuAD's and RACE's JSON,
and what is wrong with them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from litebert.core.errors import ConfigError
from litebert.core.files import write_json
from litebert.tasks.leaderboard.answer_sheets import (
    Findings,
    check_answer_sheet,
    keep_held_out,
    read_questions,
    to_sheet,
)
from litebert.tasks.leaderboard.clue_submission import (
    CLUE_TASKS,
    check_clue_files,
    check_clue_zip,
    gather_clue,
    is_clue_zip,
)
from litebert.tasks.leaderboard.submission import SHEETS, check_zip, gather_sheets, write_archive, write_zip
from litebert.tasks.predictions import predictions_file, read_predictions
from litebert.tasks.report import read_report

Board = Literal["glue", "clue", "answers"]


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
    """Write the answers of GLUE or CLUE runs, or of one run of SQuAD or multiple choice, and check them.

    Answers to questions are checked against those of `task` at `data`, the others always. With the folder of GLUE as
    `rank`, WNLI and QNLI are answered by ranking, and with that of CLUE, CHID.
    """
    board = _find_board(runs, out)
    usual = "submission.json" if board == "answers" else "submission.zip"
    file = out or Path(usual)
    if file.is_dir():
        raise ConfigError("is-a-folder", f"{file} is a folder; name a file, such as {file / usual}", option="out")
    if file.exists() and not overwrite:
        raise ConfigError(
            "output-exists", f"{file} already exists: choose another name, or overwrite it", option="overwrite"
        )
    _check_options(board, task=task, data=data)
    if board == "clue":
        if data and rank and data != rank:
            raise ConfigError("conflicting-options", "data and rank are the same folder of CLUE: give one of them")
        texts = gather_clue(runs, data or rank, is_ranked=rank is not None)
        findings = Findings(check_clue_files(texts, data or rank), [])  # before anything is written
        write_archive(file, texts)
        return Submission(file, findings)
    if board == "glue":
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
    """Check a zip of GLUE's or CLUE's files, or a JSON file of answers to the questions of `task` at `data`."""
    if file.is_dir():
        usual = file / "submission.zip"
        raise ConfigError("is-a-folder", f"{file} is a folder; name a file, such as {usual}", option="check")
    board: Board = "answers" if file.suffix == ".json" else "clue" if is_clue_zip(file) else "glue"
    _check_options(board, task=task, data=data)
    if board == "clue":
        return Submission(file, Findings(check_clue_zip(file, data), []))
    if board == "glue":
        return Submission(file, Findings(check_zip(file), []))
    if data is None:
        raise ConfigError("incomplete-options", f"{file} is checked against questions: name task and data")
    return Submission(file, check_answer_sheet(file, read_questions(task, data, split)))


def _check_options(board: Board, *, task: str, data: Path | None) -> None:
    if board == "clue":
        if task:
            raise ConfigError("conflicting-options", "task is for SQuAD and RACE: leave it out")
        return
    if board == "glue" and (task or data):
        raise ConfigError(
            "conflicting-options", "task and data are for SQuAD and RACE; GLUE does not need them: leave them out"
        )
    if bool(task) != (data is not None):
        raise ConfigError("incomplete-options", "task and data go together: name both or neither")


def _find_board(runs: Sequence[Path], out: Path | None) -> Board:
    """Where runs are submitted: as tables to GLUE, as files to CLUE, or as answers to questions.

    CLUE's questions can also be answered by themselves; then they are answers like SQuAD's.
    """
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
