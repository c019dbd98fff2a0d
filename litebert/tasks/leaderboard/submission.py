"""GLUE leaderboard submissions: a zip of eleven tables with their official names, and a check of such a zip."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_path
from litebert.tasks.files.glue import BINARY, ENTAILMENT, NLI, read_glue
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.predictions import Prediction, are_of, predictions_file, read_predictions
from litebert.tasks.report import may_have_answered, read_report
from litebert.tasks.texts import TextExample


@dataclass(frozen=True)
class Sheet:
    """The specification of one table of a submission."""

    task: str
    split: str
    num_rows: int
    labels: tuple[str, ...]  # empty: a number between 0 and 5


# With the number of rows of each official test set, without headers.
SHEETS = {
    "CoLA": Sheet("cola", "test", 1063, BINARY),
    "SST-2": Sheet("sst-2", "test", 1821, BINARY),
    "MRPC": Sheet("mrpc", "test", 1725, BINARY),
    "STS-B": Sheet("sts-b", "test", 1379, ()),
    "QQP": Sheet("qqp", "test", 390_965, BINARY),
    "MNLI-m": Sheet("mnli", "test_matched", 9796, NLI),
    "MNLI-mm": Sheet("mnli", "test_mismatched", 9847, NLI),
    "QNLI": Sheet("qnli", "test", 5463, ENTAILMENT),
    "RTE": Sheet("rte", "test", 3000, ENTAILMENT),
    "WNLI": Sheet("wnli", "test", 146, BINARY),
    "AX": Sheet("mnli", "ax", 1104, NLI),
}


class Ranked(NamedTuple):
    """A task whose rows compete: exactly one of the rivals, rows with the same first text, is positive."""

    positive: str
    negative: str
    column: int  # of the positive label's probability
    are_rivals: Callable[[str, str], bool] = lambda *_: True  # compares their second texts


def differ_in_one_place(first: str, second: str) -> bool:
    """Whether most words of two WNLI sentences are equal, so that they differ in the name for the same pronoun."""
    words, others = (sentence.lower().rstrip(".!").split() for sentence in (first, second))
    ahead = sum(1 for _ in takewhile(_are_equal, zip(words, others, strict=False)))
    rest = list(zip(reversed(words[ahead:]), reversed(others[ahead:]), strict=False))
    behind = sum(1 for _ in takewhile(_are_equal, rest))
    return 2 * (ahead + behind) >= min(len(words), len(others))


def _are_equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


# The paper's tricks for the test sets: a QNLI question, or a WNLI sentence with its pronoun, has exactly one
# right candidate among its rows.
RANKED = {
    "qnli": Ranked("entailment", "not_entailment", 0),
    "wnli": Ranked("1", "0", 1, differ_in_one_place),
}
HEADER = "index\tprediction"


def gather_sheets(runs: Sequence[Path], *, ranked_by: Path | None = None) -> dict[str, str]:
    """The tables of runs, one per task; with GLUE's folder as `ranked_by`, WNLI and QNLI are answered by ranking."""
    sheets: dict[str, str] = {}
    tasks: set[str] = set()
    for run in runs:
        report = read_report(run)
        task = report["task"]
        mine = {name: sheet for name, sheet in SHEETS.items() if sheet.task == task}
        if not mine:
            raise ConfigError("wrong-task", f"{run} is fine-tuned for {task}, which is not a GLUE task")
        if task in tasks:
            raise ConfigError(
                "repeated-value",
                f"{run} is a second run for {task}; give one run per task, or make an ensemble of them",
            )
        tasks.add(task)
        for name, sheet in mine.items():
            file = predictions_file(run, sheet.split)
            if file.is_file():
                predictions = read_predictions(file)
                if ranked_by and task in RANKED:
                    test = read_glue(task, ranked_by, TableOptions()).test
                    if not are_of(predictions, test.get("test", [])) or not may_have_answered(report, test):
                        raise DataError(
                            "answers-mismatch",
                            f"{ranked_by}: its {name} test file is not the one that {run} predicted",
                            option="rank",
                        )
                    predictions = rank_rivals(predictions, test["test"], RANKED[task])
                sheets[name] = write_sheet(predictions)
    return sheets


def write_sheet(predictions: Sequence[Prediction]) -> str:
    """The text of a table, with rows numbered as in the test file."""
    answers = [f"{one.answer:.3f}" if isinstance(one.answer, float) else str(one.answer) for one in predictions]
    rows = [f"{number}\t{answer}" for number, answer in enumerate(answers)]
    return "\n".join([HEADER, *rows]) + "\n"


def write_zip(path: Path, sheets: Mapping[str, str]) -> None:
    """Write the zip of tables by name."""
    write_archive(path, {f"{name}.tsv": sheet for name, sheet in sheets.items()})


def write_archive(path: Path, texts: Mapping[str, str]) -> None:
    """Write a zip of texts by file name; the same texts give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(texts):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, texts[name])
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())


def check_zip(path: Path) -> list[str]:
    """The problems for which the leaderboard would reject the zip, one line each; empty if it is valid."""
    try:
        with zipfile.ZipFile(path) as archive:
            texts = {name: archive.read(name).decode("utf-8", errors="replace") for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, FileNotFoundError, NotImplementedError, RuntimeError) as error:
        raise DataError("corrupt-file", f"{path}: not a zip file ({error})") from None
    problems = [f"{name}.tsv is missing" for name in SHEETS if f"{name}.tsv" not in texts]
    for name, text in texts.items():
        sheet = SHEETS.get(name.removesuffix(".tsv"))
        if sheet is None:
            folder = " (tables must be at the top level of the zip)" if "/" in name else ""
            problems.append(f"{name} is not a GLUE table{folder}")
        else:
            problems += [f"{name}: {problem}" for problem in check_sheet(text, sheet)]
    return problems


def check_sheet(text: str, sheet: Sheet) -> list[str]:
    """The problems of one table, only the first of each kind."""
    lines = text.removesuffix("\n").split("\n")
    problems = [] if lines[0].strip("\r") == HEADER else [f"line 1 is '{lines[0][:40]}', not '{HEADER}'"]
    rows = lines[1:]
    if len(rows) != sheet.num_rows:
        problems.append(f"{len(rows):,} rows, but the test set has {sheet.num_rows:,}")
    for number, line in enumerate(rows):
        problem = _check_row(line.strip("\r").split("\t"), number, sheet)
        if problem:
            problems.append(f"line {number + 2}: {problem}")
            break
    return problems


def _check_row(cells: Sequence[str], number: int, sheet: Sheet) -> str:
    if len(cells) != 2:
        return f"expected 2 cells, got {len(cells)}"
    if cells[0] != str(number):
        return f"index is '{cells[0]}', expected {number}"
    if sheet.labels:
        is_valid = cells[1] in sheet.labels
        return "" if is_valid else f"'{cells[1]}' is not one of {', '.join(sheet.labels)}"
    try:
        is_valid = 0 <= float(cells[1]) <= 5
    except ValueError:
        is_valid = False
    return "" if is_valid else f"'{cells[1]}' is not a number from 0 to 5"


def rank_rivals(predictions: Sequence[Prediction], examples: Sequence[TextExample], ranked: Ranked) -> list[Prediction]:
    """The most likely rival gets the positive label, the others the negative one; rows without rivals keep theirs."""
    ranks = list(predictions)
    for rivals in group_rivals(examples, ranked.are_rivals):
        if len(rivals) > 1:
            best = max(rivals, key=lambda number: predictions[number].output[ranked.column])
            for number in rivals:
                answer = ranked.positive if number == best else ranked.negative
                ranks[number] = replace(predictions[number], answer=answer)
    return ranks


def group_rivals(examples: Sequence[TextExample], are_rivals: Callable[[str, str], bool]) -> list[list[int]]:
    """The indices of rows that compete with each other, directly or through others."""
    by_text: dict[str, list[list[int]]] = {}
    for number, example in enumerate(examples):
        groups = by_text.setdefault(example.text, [])
        mine = [g for g in groups if any(are_rivals(examples[n].text_b or "", example.text_b or "") for n in g)]
        groups[:] = [group for group in groups if group not in mine]
        groups.append([*(n for group in mine for n in group), number])
    return [sorted(group) for groups in by_text.values() for group in groups]
