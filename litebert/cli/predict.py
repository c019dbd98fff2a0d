"""`litebert predict`: texts in, a model's answers out."""

import json
import string
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litebert.cli.words import (
    CheckpointPath,
    ChoicesField,
    Encoding,
    EngineWord,
    HasHeader,
    Layers,
    Patience,
    TextBColumn,
    TextColumn,
    Threads,
)
from litebert.core.errors import DataError

if TYPE_CHECKING:
    from litebert.inference.predictor import Predictor
    from litebert.tasks.columns import Columns
    from litebert.tasks.predictions import Prediction
    from litebert.tasks.reading import TableOptions
    from litebert.tasks.tables import Row

STDIN = "standard input"
TABLES = (".csv", ".tsv", ".jsonl", ".json")
CHUNK = 8192  # texts that are sorted by length and answered together, before any is printed


def predict_texts(
    checkpoint: CheckpointPath,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of texts, one a line, or tables; standard input without any.")
    ] = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    encoding: Encoding = "utf-8",
    header: HasHeader = None,
    choices: ChoicesField = None,
    as_table: Annotated[bool, typer.Option("--table", help="Print a table instead of JSON lines.")] = False,
    engine: EngineWord = None,
    threads: Threads = 0,
    patience: Patience = 0,
    layers: Layers = 0,
) -> None:
    """Let a model answer texts: one a line (a tab inside a pair), or tables (.csv, .tsv, .jsonl, ...).

    One that was only pre-trained guesses the words at [MASK].
    """
    from litebert.cli.gaps import print_guesses
    from litebert.core.progress import ProgressBar
    from litebert.inference.cutting import describe_cut
    from litebert.inference.predictor import load
    from litebert.tasks.predictions import predict_answers
    from litebert.tasks.reading import TableOptions

    predictor = load(checkpoint, engine=engine, threads=threads, patience=patience, layers=layers)
    has_files = len(files or []) > 1
    options = TableOptions(text=text, text_b=text_b, encoding=encoding, has_header=header, choices=choices)
    examples = list(_iter_examples(predictor, files or [], options))
    if predictor.only_fills_gaps:
        print_guesses(predictor, examples, as_table=as_table, has_files=has_files)
        return
    num_cut: list[int] = []
    with ProgressBar("answering", total=len(examples), unit="texts", scale=1) as progress:
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            move_to = lambda done, start=start: progress.move_to(start + done)  # noqa: E731
            outputs = predictor.predict(chunk, report=move_to, report_cut=num_cut.extend)
            predictions = predict_answers(predictor.task, outputs, chunk)
            _print_answers(predictor, chunk, predictions, as_table=as_table, has_files=has_files)
    if note := describe_cut(num_cut, predictor.form().max_length):
        print(f"note: {note}", file=sys.stderr)


def _iter_examples(predictor: "Predictor", files: Sequence[Path], options: "TableOptions") -> Iterator[Any]:
    from litebert.tasks.choices import Choices
    from litebert.tasks.squad.task import SpanTask
    from litebert.tasks.token_tags import TokenTags

    task = None if predictor.only_fills_gaps else predictor.task
    if isinstance(task, Choices):
        read_lines, read_file = _choices_of_lines, _choices_of_file
    elif isinstance(task, SpanTask):
        read_lines, read_file = _questions_of_lines, _questions_of_file
    elif isinstance(task, TokenTags):
        read_lines = partial(_sentences_of_lines, splits_words=task.splits_words)
        read_file = partial(_sentences_of_file, splits_words=task.splits_words)
    else:
        num_texts = 1 if task is None else getattr(task, "num_texts", 0)
        read_lines, read_file = _texts_of_lines, partial(_texts_of_file, num_texts=num_texts)
    if not files:
        yield from read_lines(_read_stdin(options.encoding), STDIN, options)
    for file in files:
        yield from read_file(file, options)


def _read_stdin(encoding: str) -> str:
    from litebert.tasks.tables import decode

    if sys.stdin is None:  # closed by whoever started us
        raise DataError("there is no standard input: name a file")
    if sys.stdin.isatty():
        print("reading from the terminal, one a line; end with Ctrl-D", file=sys.stderr)
    return decode(sys.stdin.buffer.read(), encoding, where=STDIN)


def _choices_of_lines(lines: str, where: str, options: "TableOptions") -> Iterable[Any]:
    from litebert.tasks.choice_files import build_choices
    from litebert.tasks.tables import parse_json

    return build_choices(parse_json(Path(where), lines), options, has_labels=False)


def _choices_of_file(file: Path, options: "TableOptions") -> Iterable[Any]:
    from litebert.tasks.choice_files import read_choices

    return read_choices(file, options, has_labels=False)


def _questions_of_lines(lines: str, where: str, options: "TableOptions") -> Iterable[Any]:
    from litebert.tasks.squad.reading import read_question_lines

    del options  # a line has no columns
    return read_question_lines(lines, where)


def _questions_of_file(file: Path, options: "TableOptions") -> Iterable[Any]:
    """SQuAD's JSON, or lines of `question TAB context`."""
    from litebert.tasks.squad.reading import read_question_lines, read_squad
    from litebert.tasks.tables import read_text

    if file.suffix.lower() in (".json", ".jsonl", ".parquet"):
        return [replace(question, answers=None) for question in read_squad(file, options.encoding)]
    return read_question_lines(read_text(file, options.encoding), str(file))


def _sentences_of_lines(lines: str, where: str, options: "TableOptions", *, splits_words: bool) -> Iterable[Any]:
    """A sentence a line; cut into words as the training texts were, or at white space."""
    from litebert.tasks.token_tags import TaggedWords
    from litebert.tasks.words import find_words

    del options  # a line has no columns
    for number, line in enumerate(lines.split("\n"), start=1):
        if line.strip():
            found = [line[word.start : word.end] for word in find_words(line)] if splits_words else line.split()
            yield TaggedWords(str(number), tuple(found), where=f"{where}:{number}")


def _sentences_of_file(file: Path, options: "TableOptions", *, splits_words: bool) -> Iterable[Any]:
    """A table, CoNLL columns with or without tags, or a sentence a line."""
    from litebert.tasks.columns import TAGGED_WORDS, find_columns
    from litebert.tasks.conll import read_conll
    from litebert.tasks.tables import read_table, read_text
    from litebert.tasks.tagged_tables import is_table, join_word_rows, read_tagged_rows

    if file.suffix.lower() == ".txt":
        lines = read_text(file, options.encoding)
        return _sentences_of_lines(lines, str(file), options, splits_words=splits_words)
    if is_table(file):
        table = join_word_rows(read_table(file, encoding=options.encoding), options, needs_tags=False)
        columns = replace(find_columns(table, options, needs_label=False, usual=TAGGED_WORDS), label=None)
        _tell_columns(file, columns, options)
        if splits_words and all(isinstance(row.cells.get(columns.text), str) for row in table.rows):
            table = replace(table, rows=[_split_text(row, columns.text) for row in table.rows])
        return read_tagged_rows(table, columns, needs_tags=False)
    notes: list[str] = []
    sentences = read_conll(file, options, needs_tags=False, notes=notes)
    for note in notes:
        print(note, file=sys.stderr)
    return [replace(sentence, label=None) for sentence in sentences]


def _split_text(row: "Row", column: str) -> "Row":
    """The row with the words of its text, cut as the training texts were."""
    from litebert.tasks.words import find_words

    text = row.cells[column]
    return replace(row, cells={**row.cells, column: [text[word.start : word.end] for word in find_words(text)]})


def _texts_of_lines(lines: str, where: str, options: "TableOptions") -> Iterable[Any]:
    from litebert.tasks.texts import TextExample

    del options  # a line has no columns
    for number, line in enumerate(lines.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        texts = line.rstrip("\r").split("\t")
        if len(texts) > 2:
            raise DataError(f"{place}: {len(texts)} texts with tabs between them; one or a pair can be answered")
        yield TextExample(str(number), texts[0], texts[1] if len(texts) == 2 else None, where=place)


def _texts_of_file(file: Path, options: "TableOptions", *, num_texts: int) -> Iterable[Any]:
    """A table, or a text a line (a tab between the two of a pair)."""
    from litebert.tasks.columnar import is_columnar
    from litebert.tasks.columns import find_columns, read_named_table
    from litebert.tasks.custom import read_rows
    from litebert.tasks.tables import read_text

    if not (file.suffix.lower() in TABLES or is_columnar(file) or options.text):
        return _texts_of_lines(read_text(file, options.encoding), str(file), options)
    table = read_named_table(file, options)
    columns = replace(find_columns(table, options, needs_label=False), label=None)
    if num_texts == 1 and options.text_b is None:
        columns = replace(columns, text_b=None)
    for note in table.notes:
        print(note, file=sys.stderr)
    _tell_columns(file, columns, options)
    return read_rows(table, columns)


def _tell_columns(file: Path, columns: "Columns", options: "TableOptions") -> None:
    if options.text is None:
        print(f"columns of {file.name}: {columns}", file=sys.stderr)


def _print_answers(
    predictor: "Predictor",
    examples: Sequence[Any],
    predictions: "Sequence[Prediction]",
    *,
    as_table: bool,
    has_files: bool,
) -> None:
    """A line for each; of several files, `where` says which, since each counts its ids from one."""
    labels = getattr(predictor.task, "labels", None)
    for example, one in zip(examples, predictions, strict=True):
        probabilities = one.output if isinstance(one.output, list) and _is_flat(one.output) else []
        if as_table:
            best = f"{max(probabilities):.3f}" if probabilities else ""
            print(f"{_show(example, one.answer)}\t{best}\t{_text_of(example)}")
            continue
        record: dict[str, Any] = {"id": one.id, "answer": one.answer}
        if has_files:
            record["where"] = example.where
        if hasattr(example, "words"):
            record["words"] = list(example.words)
        if labels and probabilities:
            record["probabilities"] = dict(zip(labels, probabilities, strict=True))
        print(json.dumps(record | _place_of(predictor, example, one), ensure_ascii=False))


def _show(example: Any, answer: Any) -> str:
    """An answer for a person: tags as words, several labels with a bar between them, a choice with its text."""
    if isinstance(answer, list):
        return (" " if hasattr(example, "words") else "|").join(answer)
    if hasattr(example, "choices"):
        number = answer if isinstance(answer, int) else string.ascii_uppercase.index(answer)
        return f"{answer} ({example.choices[number]})"
    return str(answer)


def _text_of(example: Any) -> str:
    texts = [" ".join(example.words)] if hasattr(example, "words") else [example.text, getattr(example, "text_b", None)]
    return "\t".join(" ".join(text.split()) for text in texts if text is not None)  # one line each


def _place_of(predictor: "Predictor", example: Any, one: "Prediction") -> dict[str, Any]:
    """Where an answer stands in its text; which of the choices it is."""
    from litebert.inference.answering import read_answer, read_choice
    from litebert.tasks.choices import Choices
    from litebert.tasks.squad.task import SpanTask

    if isinstance(predictor.task, SpanTask):
        return {k: v for k, v in read_answer(predictor.task, one.output)._asdict().items() if k != "text"}
    if isinstance(predictor.task, Choices):
        return read_choice(example.choices, one.output)._asdict()
    return {}


def _is_flat(output: list[Any]) -> bool:
    return bool(output) and isinstance(output[0], float)
