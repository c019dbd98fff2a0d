"""Reads multiple choice: RACE's folders or its one-file form, and users' tables with any number of choices.

The layouts of other data sets are in `choice_layouts`.
"""

import json
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.core.ranges import read_whole_number
from litebert.tasks.files.choice_layouts import CHOICES, NAMES, find_by_name, lay_out, read_choice_table
from litebert.tasks.files.columns import check_group
from litebert.tasks.files.custom import forget_partial
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.list_cells import parse_list
from litebert.tasks.files.reading import TableOptions, find_files, find_split
from litebert.tasks.files.splitting import hold_out
from litebert.tasks.files.tables import Row, Table, parse_value, read_text, tells_label
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.choices import ChoiceExample, Choices

LEVELS = ("middle", "high")
_REMEDY = "is the file complete?"
ONE_FILE = "all.txt"  # one article per line, the format of RACE in the official ALBERT code
# the usual names of a field, the likeliest first, tried if none is given
CONTEXT = ("context", "article", "passage", "paragraph", "premise", "text", "ctx", "dialogue", "sent1", "sentence")
QUESTION = ("question", "query", "prompt", "goal", "sent2", "question_stem")
LABEL = ("label", "answer", "correct", "target", "answerKey", "gold")


@dataclass(frozen=True)
class Fields:
    """The fields of passage, question and label; the choices are found in each row."""

    context: str | None
    question: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"passage": self.context, "question": self.question, "label": self.label}
        return ", ".join(f"no {part}" if name is None else f"{part} = '{name}'" for part, name in parts.items())


def race_reader(levels: Sequence[str] = LEVELS) -> Callable[[Path, TableOptions], Dataset]:
    """The reader of the official folders: train, dev and test, each with one folder per level."""

    def read(path: Path, options: TableOptions) -> Dataset:
        root = path / "RACE" if (path / "RACE").is_dir() else path
        splits = {
            split: read_race(root / split, levels) for split in ("train", "dev", "test") if (root / split).is_dir()
        }
        if not splits or (options.dev_share and not splits.keys() >= {"train", "dev"}):
            raise DataError(
                "missing-folder",
                f"{path}: expected RACE's folders train and dev, each containing {' and '.join(levels)}",
            )
        name = "race" if tuple(levels) == LEVELS else f"race-{levels[0]}"
        return Dataset.of(Choices(name, has_letters=True), splits)

    return read


def read_race(folder: Path, levels: Sequence[str] = LEVELS) -> list[ChoiceExample]:
    """The questions of one split, level by level, with articles in numerical order."""
    examples: list[ChoiceExample] = []
    for level in levels:
        if not (folder / level).is_dir():
            raise DataError(
                "missing-folder",
                f"{folder}: folder '{level}' is missing; each split of RACE has {' and '.join(LEVELS)}",
            )
        for where, article in _iter_articles(folder / level):
            examples += _read_article(article, level, where)
    if not examples:
        raise DataError("empty-file", f"{folder}: no questions found")
    return examples


def read_choice_dataset(path: Path, options: TableOptions) -> Dataset:
    """Read a user's questions from a folder with train, dev and test files, or from separate files."""
    find = partial(find_split, suffixes=(".jsonl", ".json", ".parquet", ".csv", ".tsv"))
    splits: dict[str, list[ChoiceExample]] = {}
    told: list[Fields] = []
    notes: list[str] = []
    for split, file in find_files(path, options, find, usual="train.jsonl").items():
        table = read_choice_table(file, options.encoding, options.choices)
        needs_label = split != "test"
        fields = find_fields(table, options, needs_label=needs_label)
        if fields not in told:
            notes.append(f"fields of {file.name}: {fields}")
            told.append(fields)
        check_group(table, options, is_needed=split == "train")
        questions = _read_rows(table, fields, needs_label=needs_label, group=options.group)
        splits[split] = questions if needs_label else forget_partial(questions, notes)
    if "dev" not in splits and options.dev_share:
        notes.append(_hold_out(splits, options))
    counts = sorted({len(example.choices) for examples in splits.values() for example in examples})
    notes.append(f"choices per question: {', '.join(map(str, counts))}")
    return Dataset.of(Choices("choice"), splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def read_choices(path: Path, options: TableOptions, *, has_labels: bool) -> list[ChoiceExample]:
    """The questions of a file of JSON lines."""
    table = read_choice_table(path, options.encoding, options.choices)
    return _build_choices(table, options, has_labels=has_labels)


def build_choices(table: Table, options: TableOptions, *, has_labels: bool) -> list[ChoiceExample]:
    """One question per row; labels are only read if `has_labels`."""
    return _build_choices(lay_out(table, options.choices), options, has_labels=has_labels)


def _build_choices(table: Table, options: TableOptions, *, has_labels: bool) -> list[ChoiceExample]:
    fields = find_fields(table, options, needs_label=has_labels)
    return _read_rows(table, fields if has_labels else replace(fields, label=None), needs_label=has_labels)


def find_fields(table: Table, options: TableOptions, *, needs_label: bool) -> Fields:
    """The fields as named by the user; the others by their usual names.

    If no label is required, `label` is None when its field is missing or empty in every row.
    """
    named = (options.text, options.text_b, options.label)
    free = [name for name in table.columns if name not in named]
    context = _check_named(table, options.text, "text") or _guess(free, CONTEXT)
    question = _check_named(table, options.text_b, "text_b") or _guess(free, QUESTION)
    label = options.label or _guess(free, LABEL)
    if needs_label:
        _check_named(table, options.label, "label")
    elif label is not None and not any(tells_label(row, label) for row in table.rows):
        label = None
    if needs_label and label is None:
        has = ", ".join(table.columns)
        raise DataError(
            "ambiguous-column",
            f"{table.path}: cannot tell which field is the label; name one of {has}",
            option="label",
        )
    return Fields(context, question, label)


def _check_named(table: Table, name: str | None, option: str) -> str | None:
    if name is not None and name not in table.columns:
        raise DataError(
            "unknown-column",
            f"{table.path}: no field '{name}'; it has {', '.join(table.columns)}",
            option=option,
        )
    return name


def _guess(free: Sequence[str], usual: Sequence[str]) -> str | None:
    return next((name for name in usual if name in free), None)


def _read_rows(table: Table, fields: Fields, *, needs_label: bool, group: str | None = None) -> list[ChoiceExample]:
    questions = [_read_row(row, number, fields, needs_label) for number, row in enumerate(table.rows)]
    return [replace(one, group=row.group(group)) for one, row in zip(questions, table.rows, strict=True)]


def _read_row(row: Row, number: int, fields: Fields, needs_label: bool) -> ChoiceExample:
    choices = row.cells.get("choices")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(choice, str) for choice in choices):
        raise DataError(
            "unknown-column",
            f"{row.where}: no choices found: expected a list of two or more texts in {' or '.join(CHOICES)}, or fields "
            f"such as choice1 and choice2; name the field or fields",
            option="choices",
        )
    texts = [_read_text(row, name) for name in (fields.context, fields.question)]
    if not any(text.strip() for text in texts):
        raise DataError(
            "unknown-column",
            f"{row.where}: no passage ({', '.join(CONTEXT)}) and no question ({', '.join(QUESTION)}) found",
        )
    label, right = fields.label, None
    if label is not None and (needs_label or tells_label(row, label)):
        value, names = row.cells.get(label), row.cells.get(NAMES)
        right = find_by_name(value, names)
        if right is None:
            right = _read_label(value, choices, f"{row.where}: {label}")
    return ChoiceExample(row.identity(number), texts[0], texts[1], tuple(choices), right, where=row.where)


def _read_text(row: Row, name: str | None) -> str:
    """The text of a passage or a question; empty if there is none."""
    value = row.cells.get(name) if name else None
    has_objects = any(isinstance(one, dict) for one in parse_list(value) or ())
    if isinstance(value, list | dict) or has_objects:  # lists of lines are already joined
        raise DataError(
            "wrong-input",
            f"{row.where}: '{name}' is {str(value)[:40]}, not text or a list of lines; write it as one text",
        )
    return "" if value is None else str(value)


def _read_label(value: Any, choices: Sequence[str], where: str) -> int:
    """The index of the right choice, which a file gives as a number from 0, as a letter, or as the choice itself."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return value
    by_letter = _find_letter(value, choices)
    by_letter = _find_digits(value, choices) if by_letter is None else by_letter
    by_text = choices.index(value) if isinstance(value, str) and value in choices else None
    if by_letter is not None and by_text not in (None, by_letter):
        kind = "number" if str(value).strip().isdecimal() else "letter"
        raise DataError(
            "ambiguous-label",
            f"{where}: {json.dumps(value)} is ambiguous: the {kind} of choice {by_letter} and the text of choice "
            f"{by_text}; give the number of the right choice",
        )
    number = by_letter if by_text is None else by_text
    if number is not None:
        return number
    last = len(choices) - 1
    letter = f" or a letter from A to {string.ascii_uppercase[last]}" if last < 26 else ""
    raise DataError(
        "bad-label", f"{where}: {json.dumps(value)} is not one of the choices; give a number from 0 to {last}{letter}"
    )


def _read_race_answer(value: Any, choices: Sequence[str], where: str) -> int:
    """The index of a RACE answer, read as a letter even if that letter is also the text of another option."""
    by_letter = _find_letter(value, choices)
    return _read_label(value, choices, where) if by_letter is None else by_letter


def _find_letter(value: Any, choices: Sequence[str]) -> int | None:
    letters = string.ascii_uppercase[: len(choices)]
    is_letter = isinstance(value, str) and len(value) == 1 and value.upper() in letters
    return letters.index(value.upper()) if is_letter else None


def _find_digits(value: Any, choices: Sequence[str]) -> int | None:
    """A number from 0 stored as text, as in HellaSwag and in CSV."""
    number = read_whole_number(value.strip()) if isinstance(value, str) else None
    return number if number is not None and number < len(choices) else None


def _iter_articles(folder: Path) -> list[tuple[str, Any]]:
    """(place, article) of a level, stored as one file per article or one line per article."""
    files = [file for file in folder.glob("*.txt") if file.name != ONE_FILE]
    if files:
        ordered = sorted(files, key=lambda file: (len(file.name), file.name))  # 9.txt before 10.txt
        return [(str(file), parse_value(read_text(file), str(file), _REMEDY)) for file in ordered]
    if not (folder / ONE_FILE).is_file():
        raise DataError("missing-file", f"{folder}: contains neither numbered .txt files nor {ONE_FILE}")
    lines = read_text(folder / ONE_FILE).split("\n")
    places = [(f"{folder / ONE_FILE}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    return [(place, parse_value(line, place, _REMEDY)) for place, line in places]


def _read_article(article: Any, level: str, where: str) -> list[ChoiceExample]:
    if not isinstance(article, dict) or not isinstance(article.get("article"), str):
        raise DataError(
            "bad-layout", f"{where}: expected an object with 'article', 'questions' and 'options'; is this RACE?"
        )
    questions, options, answers = (article.get(name) for name in ("questions", "options", "answers"))
    if not isinstance(questions, list) or not isinstance(options, list) or len(questions) != len(options):
        raise DataError("bad-layout", f"{where}: 'questions' and 'options' must be lists of the same length")
    if answers is not None and (not isinstance(answers, list) or len(answers) != len(questions)):
        raise DataError(
            "bad-layout", f"{where}: 'answers' must be a list of {len(questions)} answers, one per question"
        )
    identity = article.get("id") or f"{level}{Path(where).name}"
    examples = []
    for number, (question, choices) in enumerate(zip(questions, options, strict=True)):
        place = f"{where}: question {number + 1}"
        if not isinstance(question, str) or not isinstance(choices, list) or len(choices) < 2:
            raise DataError("bad-layout", f"{place}: expected a question text and two or more options")
        label = None if answers is None else _read_race_answer(answers[number], choices, f"{place}: its answer")
        examples.append(
            ChoiceExample(
                f"{identity}-{number}", article["article"], question, tuple(map(str, choices)), label, level, place
            )
        )
    return examples


def _hold_out(splits: dict[str, list[ChoiceExample]], options: TableOptions) -> str:
    """Hold out a fixed share of the training questions for dev; questions about one passage stay together."""
    rows = splits["train"]
    splits["train"], splits["dev"] = hold_out(rows, options.dev_share, lambda row: row.context or row.question)
    how = f"grouped by passage and '{options.group}'" if options.group else "grouped by passage"
    return f"no dev file: {len(splits['dev']):,} of {len(rows):,} questions are held out for dev, {how}"
