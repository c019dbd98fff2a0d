"""Converts the multiple-choice layouts of known data sets to one form: context, question, choices and label.

HellaSwag (ctx, endings), SWAG (ending0 to ending3), ARC and CommonsenseQA (a question with a stem; choices with names),
OpenBookQA (question_stem), PIQA (goal, sol1, sol2), MedQA (texts by letter), COPA (choice1, choice2, asks for cause or
effect), SIQA (answerA to answerC, labels from 1), WinoGrande (option1, option2, labels from 1), DREAM (dialogues with
their questions). PIQA and SIQA keep labels in a separate file, such as train-labels.lst.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.list_cells import parse_list
from litebert.tasks.files.tables import Row, Table, parse_value, read_table, read_text

CHOICES = ("choices", "options", "endings", "candidates", "choice", "alternatives", "answers")
NAMES = "names of choices"  # the column with the file's names of the choices: A, B, C or 1, 2, 3
_EACH = re.compile(r"(sol|solution|choice|answer|ending|option|alternative)_?([0-9a-eA-E])")
_COPA = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


def read_choice_table(file: Path, encoding: str, choices: str | None) -> Table:
    """One question per row, with a list of texts in the column `choices`; other columns are unchanged."""
    table = _read_dream(file, encoding) if file.suffix.lower() == ".json" else None
    table = table or read_table(file, encoding=encoding)
    return lay_out(_add_labels(table), choices)


def lay_out(table: Table, choices: str | None = None) -> Table:
    """The table in one form; `choices` names the field of all choices, or one field per choice, comma-separated."""
    rows = [dataclasses.replace(row, cells=_lay_out_row(row, choices)) for row in table.rows]
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    return dataclasses.replace(table, columns=tuple(columns), rows=rows)


def _lay_out_row(row: Row, named: str | None) -> dict[str, Any]:
    cells = dict(row.cells)
    if isinstance(cells.get("question"), dict):  # ARC's and CommonsenseQA's own files
        cells |= cells["question"]
        cells["question"] = cells.pop("stem", "")
    fields = [] if named is None else [name.strip() for name in named.split(",")]
    missing = next((name for name in fields if name not in cells), None)
    if missing is not None:
        raise DataError(
            "unknown-column",
            f"{row.where}: no field '{missing}' for the choices; it has {', '.join(cells)}",
            option="choices",
        )
    if not fields:
        whole = next(
            (name for name in CHOICES if isinstance(cells.get(name), list | dict) or parse_list(cells.get(name))), None
        )
        fields = [whole] if whole else sorted(name for name in cells if _EACH.fullmatch(name))
    values = [cells[name] if name == "choices" else cells.pop(name) for name in fields]  # keeps the field's position
    if not fields:
        return cells
    # several fields: a label may also be the name of a field
    cells["choices"], names = _read_choices(values[0]) if len(fields) == 1 else (values, fields)
    if names:
        cells[NAMES] = names
    if cells.get("question") in _COPA and fields == ["choice1", "choice2"]:
        cells["question"] = _COPA[cells["question"]]
    if fields == ["answerA", "answerB", "answerC"]:
        cells[NAMES] = ["1", "2", "3"]  # SIQA counts from 1
    if fields == ["option1", "option2"] and "sentence" in cells:
        cells[NAMES] = ["1", "2"]  # so does WinoGrande
    return {name: _join_lines(value) if name not in ("choices", NAMES) else value for name, value in cells.items()}


def _read_choices(value: Any) -> tuple[Any, list[str] | None]:
    """The texts of the choices, and their names if the file has them."""
    if isinstance(value, dict) and isinstance(value.get("text"), list) and isinstance(value.get("label"), list):
        return value["text"], list(map(str, value["label"]))
    if isinstance(value, dict) and len(value) > 1 and all(isinstance(text, str) for text in value.values()):  # MedQA
        return list(value.values()), list(value)
    found = parse_list(value)
    if found and all(isinstance(one, dict) and "text" in one for one in found):
        names = [str(one["label"]) for one in found if "label" in one]
        return [one["text"] for one in found], names if len(names) == len(found) else None
    return found if found is not None else value, None


def _join_lines(value: Any) -> Any:
    """A list of lines, such as the turns of a dialogue, as one text; the list may be written into a cell."""
    lines = parse_list(value)
    return "\n".join(lines) if lines and all(isinstance(line, str) for line in lines) else value


def _read_dream(file: Path, encoding: str) -> Table | None:
    """DREAM's own files: a list of [lines of a dialogue, its questions, its id]; None for other JSON."""
    text = read_text(file, encoding)
    if not re.match(r"\s*\[\s*\[\s*\[", text):
        return None
    rows: list[Row] = []
    for number, dialogue in enumerate(parse_value(text, str(file), "is the list complete?")):
        where = f"{file}: dialogue {number + 1}"
        if not (isinstance(dialogue, list) and len(dialogue) == 3 and isinstance(dialogue[1], list)):
            raise DataError(
                "bad-layout", f"{where}: expected a list of lines, a list of questions and an id, as in DREAM"
            )
        lines, questions, identity = dialogue
        for index, question in enumerate(questions):
            rows.append(
                Row({"context": lines, "id": f"{identity}-{index}", **question}, f"{where}, question {index + 1}")
            )
    if not rows:
        raise DataError("empty-file", f"{file}: no questions found")
    return Table(file, tuple(rows[0].cells), rows)


def _add_labels(table: Table) -> Table:
    """The table with labels from the file stored next to it, one label per line."""
    file = table.path.with_name(f"{table.path.stem}-labels.lst")
    if "label" in table.columns or not file.is_file():
        return table
    labels = read_text(file).split()
    if len(labels) != len(table.rows):
        raise DataError(
            "row-count-mismatch",
            f"{file}: {len(labels):,} labels, but {table.path.name} has {len(table.rows):,} questions",
        )
    rows = [
        dataclasses.replace(row, cells={**row.cells, "label": label})
        for row, label in zip(table.rows, labels, strict=True)
    ]
    return dataclasses.replace(table, columns=(*table.columns, "label"), rows=rows)


def find_by_name(value: Any, names: Sequence[str] | None) -> int | None:
    """The index of the choice with this name."""
    return names.index(str(value)) if names is not None and str(value) in names else None
