"""Reads SQuAD from the official folder or a user's files as a dataset."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from litebert.core.errors import DataError
from litebert.tasks.files.first_rows import show_first_rows
from litebert.tasks.files.misplaced import Misplaced
from litebert.tasks.files.reading import TableOptions, find_files, find_split
from litebert.tasks.finetuning import Dataset
from litebert.tasks.squad.reading import Question, check_answers, read_squad, split_articles
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.words import has_no_spaces

CMRC_FILES = ("cmrc2018_{split}.json",)  # dev and train of the authors' repository; CLUE has train.json and dev.json
DRCD_FILES = ("DRCD_{split}ing.json", "DRCD_{split}.json")  # DRCD_training.json, DRCD_dev.json, DRCD_test.json


def squad_reader(task: SpanTask, names: Sequence[str] = ()) -> Callable[[Path, TableOptions], Dataset]:
    """The reader of a task's files: the official folder, whose files may have other `names`, or separate files."""
    names = names or (f"{{split}}-v{task.version}.json",)

    def read(path: Path, options: TableOptions) -> Dataset:
        files = find_files(
            path, options, partial(_find_split, names=names), usual=f"{names[0].format(split='train')}, train.json"
        )
        notes: list[str] = []
        splits: dict[str, list[Question]] = {}
        for split, file in files.items():
            misplaced = Misplaced(options.on_error)
            splits[split] = read_squad(file, options.encoding, misplaced)
            notes += misplaced.tell(file.name)
        if "dev" not in splits and options.dev_share:
            splits["train"], splits["dev"] = _hold_out(splits["train"], options, files["train"], notes)
        for split, questions in splits.items():
            # a test split, or a file to predict, may have no answers
            may_be_silent = split == "test" or not options.dev_share
            if not (may_be_silent and all(question.answers is None for question in questions)):
                check_answers(questions, allows_none=task.version == "2.0")
        contexts = dict.fromkeys(question.context for questions in splits.values() for question in questions)
        units = task.units
        if units == "words" and has_no_spaces(contexts):
            units = "characters"
            notes.append(
                "F1 compares answers by characters, as the CMRC 2018 script does, because the texts are written "
                "without spaces between words"
            )
        return Dataset.of(
            replace(task, units=units), splits, [*notes, *show_first_rows(splits, is_learned=options.is_learned)]
        )

    return read


def _find_split(folder: Path, split: str, names: Sequence[str]) -> Path | None:
    official = [folder / name.format(split=split) for name in names]
    found = next((file for file in official if file.is_file()), None)
    return found or find_split(folder, split, (".json", ".jsonl", ".parquet"))


def _hold_out(
    questions: list[Question], options: TableOptions, path: Path, notes: list[str]
) -> tuple[list[Question], list[Question]]:
    kept, held = split_articles(questions, options.dev_share)
    if not held:
        raise DataError(
            "too-few-examples",
            f"{path}: cannot hold out a dev split, which needs at least two articles; give a dev file",
            option="dev",
        )
    notes.append(f"no dev file: {len(held):,} of {len(questions):,} questions are held out for dev, grouped by article")
    return kept, held
