"""CLUE leaderboard submissions: a zip with a file of answers per task, and a check of such a zip.

Labels are JSON lines in the order of the test file, answers to questions one JSON object. TNEWS and IFLYTEK want the
codes of labels. The leaderboard accepts any of the files. See https://www.cluebenchmarks.com.
"""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import parse_json_value
from litebert.tasks.catalog import read_dataset
from litebert.tasks.files.chinese_tags import CLUENER_KINDS
from litebert.tasks.files.clue import BINARY, NLI, TNEWS
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.tables import cell_text, read_table
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.token_tags import TaggedWords, find_spans
from litebert.tasks.predictions import Prediction, predictions_file, read_predictions
from litebert.tasks.report import read_report
from litebert.tasks.words import cut_text

IFLYTEK = tuple(map(str, range(119)))  # the codes of its labels


@dataclass(frozen=True)
class ClueSheet:
    """The specification of one file of a submission."""

    task: str
    num_rows: tuple[int, ...] = ()  # of the test files of CLUE 1.0 and 1.1; empty: not known
    labels: tuple[Any, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)  # of labels that the file wants as codes


_CODES = {name: code for code, name in TNEWS.items()}
# Row counts: the table of CLUE's test sets in alibaba/EasyNLP (benchmarks/clue); WSC 290 in CLUE 1.0; CLUENER 1,345
CLUE_SHEETS = {
    "afqmc_predict.json": ClueSheet("afqmc", (3861,), BINARY),
    "tnews11_predict.json": ClueSheet("tnews", (10_000,), tuple(TNEWS), _CODES),
    "iflytek_predict.json": ClueSheet("iflytek", (2600,), IFLYTEK),
    "cmnli_predict.json": ClueSheet("cmnli", (13_880,), NLI),
    "ocnli_50k_predict.json": ClueSheet("ocnli", (3000,), NLI),
    "cluewsc11_predict.json": ClueSheet("cluewsc", (2574, 290), ("true", "false")),
    "csl_predict.json": ClueSheet("csl", (3000,), BINARY),
    "cmrc2018_predict.json": ClueSheet("cmrc2018"),
    "chid11_predict.json": ClueSheet("chid", labels=tuple(range(10))),
    "c311_predict.json": ClueSheet("c3", labels=tuple(range(4))),
    "cluener_predict.json": ClueSheet("cluener", (1345,)),
}
# The files for the test sets of CLUE 1.0 where 1.1 has others
_FIRST_ROUND = {name: name.replace("11_", "10_") for name in CLUE_SHEETS if "11_" in name}
_MAX_BYTES = 200_000_000  # of all files of a submission; the test sets have some 40,000 rows
# what zipfile raises for files that are cut or changed somewhere
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError)
_OBJECTS = ("cmrc2018", "chid")  # one JSON object from ids to answers
CLUE_TASKS = frozenset(sheet.task for sheet in CLUE_SHEETS.values())


def gather_clue(runs: Sequence[Path], data: Path | None, *, is_ranked: bool = False) -> dict[str, str]:
    """The files of runs, one per task. CLUENER needs the `data` for its texts, and so does the ranking of CHID."""
    sheets: dict[str, str] = {}
    for run in runs:
        report = read_report(run)
        task = report["task"]
        name = next((name for name, sheet in CLUE_SHEETS.items() if sheet.task == task), None)
        if name is None:
            raise ConfigError("wrong-task", f"{run} is fine-tuned for {task}, which is not a task of CLUE")
        if name in sheets:
            raise ConfigError(
                "repeated-value",
                f"{run} is a second run for {task}; give one run per task, or make an ensemble of them",
            )
        predictions = read_predictions(predictions_file(run, "test"))
        if task == "chid" and is_ranked:
            predictions = fill_each_once(predictions, _read_test(task, data, predictions))
        if task in _OBJECTS:
            answers = {one.id: one.answer for one in predictions}
            sheets[name] = json.dumps(answers, ensure_ascii=False, indent=1) + "\n"
            continue
        if task == "cluener":
            rows = _list_names(predictions, _read_test(task, data, predictions))
        else:
            rows = _list_labels(CLUE_SHEETS[name], report["facts"], predictions)
        sheets[name] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return sheets


def _read_test(task: str, data: Path | None, predictions: Sequence[Prediction]) -> Sequence[Any]:
    """The rows of CLUE's test file, which must be those that a run answered."""
    if data is None:
        raise ConfigError("incomplete-options", f"the file of {task} needs the test file: give the data", option="data")
    examples = _list_test(task, data)
    if [one.id for one in examples] != [one.id for one in predictions]:
        raise DataError(
            "answers-mismatch",
            f"{data}: its {task} test file has {len(examples):,} rows, not the {len(predictions):,} that the run "
            f"predicted",
            option="data",
        )
    return examples


def _list_test(task: str, data: Path) -> Sequence[Any]:
    return read_dataset(task, data, TableOptions(dev_share=0.0, is_learned=False)).test.get("test", [])


def _list_labels(sheet: ClueSheet, facts: Mapping[str, Any], predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    codes = sheet.codes
    if sheet.task == "iflytek":
        names = facts["labels"]  # in the order of their codes
        if len(names) != len(IFLYTEK):
            raise DataError(
                "bad-label",
                f"the model knows {len(names)} labels of IFLYTEK, not 119: without all of them their codes are unknown",
            )
        codes = dict(zip(names, IFLYTEK, strict=True))
    return [{"id": _read_id(one), "label": codes.get(str(one.answer), one.answer)} for one in predictions]


def _list_names(predictions: Sequence[Prediction], sentences: Sequence[TaggedWords]) -> list[dict[str, Any]]:
    """CLUENER's form: {"name": {"Ada": [[0, 2]]}}, with inclusive ends."""
    rows: list[dict[str, Any]] = []
    texts = read_table(Path(sentences[0].where.rpartition(":")[0])).rows  # the sentences have lost their spaces
    for one, row in zip(predictions, texts, strict=True):
        text = cell_text(row, "text")
        places = cut_text(text, splits_words="characters")
        names: dict[str, dict[str, list[list[int]]]] = {}
        for span in find_spans(cast(list[str], one.answer)):
            start, end = places[span.start].start, places[span.end - 1].end
            names.setdefault(span.kind, {}).setdefault(text[start:end], []).append([start, end - 1])
        rows.append({"id": _read_id(one), "text": text, "label": names})
    return rows


def _read_id(prediction: Prediction) -> int | str:
    return int(prediction.id) if prediction.id.isdecimal() else prediction.id


def fill_each_once(predictions: Sequence[Prediction], examples: Sequence[ChoiceExample]) -> list[Prediction]:
    """CHID as its baseline answers it: within a group each idiom fills at most one blank, the likeliest pairs first."""
    answers = list(predictions)
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(example.group, []).append(number)
    for numbers in groups.values():
        outputs = np.array([predictions[number].output for number in numbers])  # (blanks, C)
        for _ in numbers:
            blank, choice = np.unravel_index(int(outputs.argmax()), outputs.shape)
            answers[numbers[blank]] = replace(answers[numbers[blank]], answer=int(choice))
            outputs[blank, :] = -np.inf
            outputs[:, choice] -= 1  # an idiom is used again only if there are more blanks than candidates
    return answers


def check_clue_zip(path: Path, data: Path | None = None) -> list[str]:
    """The problems of a zip, as `check_clue_files` lists them."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MAX_BYTES:
                raise DataError("corrupt-file", f"{path}: more than {_MAX_BYTES:,} bytes are no answers to CLUE")
            texts = {name: archive.read(name).decode("utf-8", errors="replace") for name in archive.namelist()}
    except (*_ZIP_ERRORS, NotImplementedError, RuntimeError) as error:
        raise DataError("corrupt-file", f"{path}: not a zip file ({error})") from None
    return check_clue_files(texts, data)


def check_clue_files(texts: Mapping[str, str], data: Path | None = None) -> list[str]:
    """The problems for which the leaderboard would reject or misread files, one line each; empty if they are valid.

    With the `data`, every answer is compared with the rows of the test files.
    """
    first_round = {first: name for name, first in _FIRST_ROUND.items()}
    problems = [] if texts else ["the zip is empty"]
    for name, text in texts.items():
        sheet = CLUE_SHEETS.get(first_round.get(name, name))
        if sheet is None:
            folder = " (files must be at the top level of the zip)" if "/" in name else ""
            problems.append(f"{name} is not a file of CLUE{folder}")
            continue
        ids = None if data is None else [one.id for one in _list_test(sheet.task, data)]
        problems += [f"{name}: {problem}" for problem in check_clue_sheet(text, sheet, ids)]
    return problems


def check_clue_sheet(text: str, sheet: ClueSheet, ids: Sequence[str] | None = None) -> list[str]:
    """The problems of one file, only the first of each kind; `ids` are those of the test file."""
    if sheet.task in _OBJECTS:
        return _check_object(text, sheet, ids)
    rows: list[Any] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            rows.append(parse_json_value(line, "it"))
        except DataError:
            return [f"line {number} is not JSON"]
        problem = _check_row(rows[-1], sheet)
        if problem:
            return [f"line {number}: {problem}"]
    found = [str(row["id"]) for row in rows]
    problems = []
    if ids is not None:
        wrong = next((n for n, pair in enumerate(zip(found, ids, strict=False), start=1) if pair[0] != pair[1]), None)
        if wrong is not None:
            problems.append(f"line {wrong}: id is '{found[wrong - 1]}', but the test file has '{ids[wrong - 1]}' there")
    elif len(set(found)) < len(found):
        problems.append("two lines have the same id")
    allowed = sheet.num_rows if ids is None else (len(ids),)
    if allowed and len(rows) not in allowed:
        problems.append(f"{len(rows):,} rows, but the test set has {' or '.join(f'{count:,}' for count in allowed)}")
    return problems


def _check_row(row: Any, sheet: ClueSheet) -> str:
    if not isinstance(row, dict) or "id" not in row or "label" not in row:
        return "expected an object with 'id' and 'label'"
    if sheet.task == "cluener":
        return _check_names(row)
    label = row["label"]
    is_valid = label in sheet.labels and not isinstance(label, bool)
    return "" if is_valid else f"{json.dumps(label, ensure_ascii=False)} is not one of {_list(sheet.labels)}"


def _check_names(row: Mapping[str, Any]) -> str:
    text, label = row.get("text"), row["label"]
    if not isinstance(text, str) or not isinstance(label, dict):
        return "expected 'text' and an object of names"
    for kind, names in label.items():
        if kind not in CLUENER_KINDS:
            return f"'{kind}' is not one of {_list(CLUENER_KINDS)}"
        for name, places in names.items() if isinstance(names, dict) else ():
            for place in places if isinstance(places, list) else [places]:
                match place:
                    case [int(start), int(end)] if text[start : end + 1] == name:
                        continue
                return f"'{name}' is not at {json.dumps(place)} of the text"
    return ""


def _check_object(text: str, sheet: ClueSheet, ids: Sequence[str] | None) -> list[str]:
    try:
        answers = parse_json_value(text, "it")
    except DataError:
        return ["not JSON"]
    if not isinstance(answers, dict):
        return ["expected one object from ids to answers"]
    problems = []
    for key, answer in answers.items():
        is_valid = answer in sheet.labels and not isinstance(answer, bool) if sheet.labels else isinstance(answer, str)
        if not is_valid:
            what = f"not one of {_list(sheet.labels)}" if sheet.labels else "not text"
            problems.append(f"the answer to '{key}' is {json.dumps(answer, ensure_ascii=False)[:40]}, {what}")
            break
    if ids is not None:
        missing, unknown = [one for one in ids if one not in answers], sorted(set(answers) - set(ids))
        if missing:
            problems.append(f"{len(missing):,} questions have no answer, such as '{missing[0]}'")
        if unknown:
            problems.append(f"{len(unknown):,} answers are to no question of the test file, such as '{unknown[0]}'")
    return problems


def _list(labels: Sequence[Any]) -> str:
    shown = [str(label) for label in labels]
    return f"{shown[0]} to {shown[-1]}" if len(shown) > 12 else ", ".join(shown)


def is_clue_zip(path: Path) -> bool:
    """Whether a zip has files under the names of a CLUE submission."""
    try:
        return any(name.endswith("_predict.json") for name in zipfile.ZipFile(io.BytesIO(path.read_bytes())).namelist())
    except _ZIP_ERRORS:
        return False
