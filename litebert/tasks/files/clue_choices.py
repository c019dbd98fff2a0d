"""CLUE's multiple choice, from its files as distributed: C3 (questions about a text) and CHID (idioms to fill in).

C3 has two files per split, m- (mixed texts) and d- (dialogues), in the layout of DREAM. CHID has JSON lines with ten
candidates and texts with blanks such as #idiom000378#; the answers are in a separate file.
"""

import ast
import csv
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from litebert.core.errors import DataError
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.splitting import hold_out
from litebert.tasks.files.tables import parse_value, read_text
from litebert.tasks.finetuning import Dataset
from litebert.tasks.kinds.choices import BLANK, ChoiceExample, Choices

Read = Callable[[Path, str], list[ChoiceExample]]

SPLITS = ("train", "dev", "test")
_TESTS = ("test", "test1.1", "test1.0")  # of several rounds; without answers
C3_PARTS = {"m": "mixed", "d": "dialogue"}  # the paper reports both
_IDIOM = re.compile(r"#idiom\d+#")
IDIOM_WINDOW = 60  # characters of text on either side of a blank
_OTHER_BLANK = "……"


def read_c3(path: Path, options: TableOptions) -> Dataset:
    """C3 from CLUE's folder, its own, or separate files."""
    return _read("c3", path, options, _find_c3, _read_c3_file)


def read_chid(path: Path, options: TableOptions) -> Dataset:
    """CHID from CLUE's folder, its own, or separate files. One example per blank."""
    return _read("chid", path, options, _find_chid, _read_chid_file)


def _read(name: str, path: Path, options: TableOptions, find: Callable[[Path, str], list[Path]], read: Read) -> Dataset:
    folder = next((path / f for f in (name, name.upper(), f"{name}_public") if (path / f).is_dir()), path)
    files = {split: find(folder, split) for split in SPLITS} if folder.is_dir() else {"train": [folder]}
    files |= {split: [file] for split, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    splits = {
        split: [one for file in found for one in read(file, options.encoding)]
        for split, found in files.items()
        if found
    }
    if not splits or ("train" not in splits and options.dev_share):
        usual = "m-train.json and d-train.json" if name == "c3" else "train.json"
        raise DataError("missing-file", f"{path}: no training file found (such as {usual}); name the file itself")
    notes: list[str] = []
    for split, questions in splits.items():
        unanswered = next((one for one in questions if one.label is None), None)
        if unanswered is not None and split != "test" and options.dev_share:
            raise DataError("missing-label", f"{unanswered.where}: the answer is missing; is this a test split?")
    if "dev" not in splits and options.dev_share:
        rows = splits["train"]
        splits["train"], splits["dev"] = hold_out(rows, options.dev_share, lambda one: one.group)
        held = f"{len(splits['dev']):,} of {len(rows):,} questions"
        notes.append(f"no dev file: {held} are held out for dev, grouped by passage")
    return Dataset.of(Choices(name), splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)])


def _find_c3(folder: Path, split: str) -> list[Path]:
    parts = [folder / f"{part}-{split}.json" for part in C3_PARTS]
    single = [folder / f"{stem}.json" for stem in (_TESTS if split == "test" else (split,))]
    return [file for file in parts if file.is_file()] or [file for file in single if file.is_file()][:1]


def _read_c3_file(file: Path, encoding: str) -> list[ChoiceExample]:
    level = C3_PARTS.get(file.name.split("-")[0], "") if "-" in file.name else ""
    documents = parse_value(read_text(file, encoding), str(file), "is the file complete?")
    if not isinstance(documents, list) or not documents:
        raise DataError("bad-layout", f"{file}: expected a list of texts with their questions; is this C3?")
    return [
        one
        for number, document in enumerate(documents, start=1)
        for one in _read_c3_text(document, level, f"{file}: text {number}")
    ]


def _read_c3_text(document: Any, level: str, where: str) -> Iterator[ChoiceExample]:
    match document:
        case [list(lines), list(questions), *rest] if all(isinstance(line, str) for line in lines):
            context = "\n".join(lines)
        case _:
            raise DataError("bad-layout", f"{where}: expected a list of lines, a list of questions and an id, as in C3")
    for number, question in enumerate(questions):
        place = f"{where}, question {number + 1}"
        match question:
            case {"question": str(text), "choice": list(choices)} if len(choices) > 1:
                answer, identity = question.get("answer"), question.get("id", f"{(rest or [where])[0]}-{number}")
            case _:
                raise DataError("bad-layout", f"{place}: expected 'question' and two or more texts in 'choice'")
        if answer not in (None, "", *choices):
            raise DataError("bad-label", f"{place}: the answer '{answer}' is not one of the choices; fix it")
        # always the text of a choice: "3" is not the choice with that number
        label = choices.index(answer) if answer in choices else None
        texts = tuple(map(str, choices))
        yield ChoiceExample(str(identity), context, text, texts, label, level, place, group=context)


def _find_chid(folder: Path, split: str) -> list[Path]:
    files = [folder / f"{stem}.json" for stem in (_TESTS if split == "test" else (split,))]
    return [file for file in files if file.is_file()][:1]


def _read_chid_file(file: Path, encoding: str) -> list[ChoiceExample]:
    answers = _read_idiom_answers(file, encoding)
    examples: list[ChoiceExample] = []
    for number, line in enumerate(read_text(file, encoding).split("\n"), start=1):
        if line.strip():
            examples += _read_idiom_texts(line, f"{file}:{number}", answers)
    if not examples:
        raise DataError("empty-file", f"{file}: no texts with blanks such as #idiom000378# found")
    return examples


def _read_idiom_texts(line: str, where: str, answers: Mapping[str, int]) -> Iterator[ChoiceExample]:
    # the first release had Python's dictionaries, with single quotation marks
    value = _parse_python(line) if line.startswith("{'") else parse_value(line, where, "is the file complete?")
    match value:
        case {"candidates": list(candidates), "content": list(texts)} if all(isinstance(one, str) for one in texts):
            choices = tuple(map(str, candidates))
        case _:
            raise DataError("bad-layout", f"{where}: expected 'candidates' and 'content'; is this CHID?")
    for text in texts:
        for blank in _IDIOM.finditer(text):
            label = answers.get(blank[0])
            if answers and label is None:
                raise DataError("missing-label", f"{where}: the file of answers lacks {blank[0]}; is it of this split?")
            if label is not None and not 0 <= label < len(choices):
                raise DataError(
                    "bad-label",
                    f"{where}: the answer to {blank[0]} is {label}, but there are {len(choices)} candidates",
                )
            before, after = (
                _IDIOM.sub(_OTHER_BLANK, part).replace(BLANK, " ")
                for part in (text[: blank.start()], text[blank.end() :])
            )
            question = f"{before[-IDIOM_WINDOW:]}{BLANK}{after[:IDIOM_WINDOW]}"
            # candidates belong to a group of texts, in which each idiom fills at most one blank
            yield ChoiceExample(blank[0], "", question, choices, label, where=where, group=where)


def _parse_python(line: str) -> Any:
    try:
        return ast.literal_eval(line)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _read_idiom_answers(file: Path, encoding: str) -> dict[str, int]:
    """The number of the right candidate for each blank, from train_answer.json or .csv next to train.json."""
    stem = file.with_suffix("").name
    found = [path for s in (".json", ".csv") if (path := file.with_name(f"{stem}_answer{s}")).is_file()]
    if not found:
        return {}
    text = read_text(found[0], encoding)
    if found[0].suffix == ".json":
        pairs = parse_value(text, str(found[0]), "is the file complete?")
        pairs = list(pairs.items()) if isinstance(pairs, dict) else []
    else:
        pairs = list(csv.reader(text.splitlines()))
    try:
        return {str(blank): int(answer) for blank, answer in pairs}
    except (TypeError, ValueError):
        raise DataError(
            "bad-answers", f"{found[0]}: expected the number of a candidate for each blank; is this CHID's file?"
        ) from None
