"""`litebert predict`: texts in, a fine-tuned model's answers out."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litebert.cli.finetune import (
    CheckpointPath,
    Encoding,
    EngineWord,
    Layers,
    Patience,
    TextBColumn,
    TextColumn,
    Threads,
)
from litebert.core.errors import DataError

if TYPE_CHECKING:
    from litebert.infer.predictor import Predictor
    from litebert.tasks.predictions import Prediction

CHUNK = 8192  # texts that are sorted by length and answered together, before any is printed


def predict_texts(
    checkpoint: CheckpointPath,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of texts, one a line, or tables; standard input without any.")
    ] = None,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    encoding: Encoding = "utf-8",
    as_table: Annotated[bool, typer.Option("--table", help="Print a table instead of JSON lines.")] = False,
    engine: EngineWord = None,
    threads: Threads = 0,
    patience: Patience = 0,
    layers: Layers = 0,
) -> None:
    """Let a fine-tuned model answer texts: one a line (a tab between the two of a pair), or .csv, .jsonl, .parquet."""
    from litebert.core.progress import Progress
    from litebert.infer.predictor import load
    from litebert.tasks.predictions import predict_answers

    predictor = load(checkpoint, engine=engine, threads=threads, patience=patience, layers=layers)
    examples = list(_iter_examples(predictor, files or [], text, text_b, encoding))
    with Progress("answering", total=len(examples), unit="texts", scale=1) as progress:
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            move_to = lambda done, start=start: progress.move_to(start + done)  # noqa: E731
            outputs = predictor.predict(chunk, report=move_to)
            _print_answers(predictor, chunk, predict_answers(predictor.task, outputs, chunk), as_table)


def _iter_examples(
    predictor: "Predictor", files: Sequence[Path], text: str | None, text_b: str | None, encoding: str
) -> Iterator[Any]:
    from litebert.tasks.choices import Choices
    from litebert.tasks.squad.task import SpanTask
    from litebert.tasks.tables import read_text

    if isinstance(predictor.task, SpanTask | Choices):
        yield from _iter_questions(predictor, files, text, text_b, encoding)
        return
    if not files:
        if sys.stdin.isatty():
            print("reading texts from the terminal, one a line; end with Ctrl-D", file=sys.stderr)
        yield from _examples_of_lines(predictor, sys.stdin.read().split("\n"), "standard input")
    for file in files:
        if file.suffix in (".csv", ".jsonl", ".json", ".parquet") or text is not None:
            yield from _examples_of_table(predictor, file, text, text_b, encoding)
        else:
            yield from _examples_of_lines(predictor, read_text(file, encoding).split("\n"), str(file))


def _iter_questions(
    predictor: "Predictor", files: Sequence[Path], text: str | None, text_b: str | None, encoding: str
) -> Iterator[Any]:
    """Questions about texts: lines of `question TAB context`, or SQuAD's JSON; multiple choice in JSON lines."""
    from litebert.tasks.choice_files import build_choices
    from litebert.tasks.choices import Choices
    from litebert.tasks.reading import ReadOptions
    from litebert.tasks.squad.reading import read_question_lines, read_squad
    from litebert.tasks.tables import parse_json_lines, read_table, read_text

    options = ReadOptions(text=text, text_b=text_b, encoding=encoding)
    is_choice = isinstance(predictor.task, Choices)
    if not files:
        lines, name = sys.stdin.read(), "standard input"
        if is_choice:
            yield from build_choices(parse_json_lines(Path(name), lines), options, has_labels=False)
        else:
            yield from read_question_lines(lines, name)
    for file in files:
        if is_choice:
            yield from build_choices(read_table(file, encoding=encoding), options, has_labels=False)
        elif file.suffix in (".json", ".jsonl", ".parquet"):
            yield from read_squad(file)
        else:
            yield from read_question_lines(read_text(file, encoding), str(file))


def _examples_of_lines(predictor: "Predictor", lines: Sequence[str], where: str) -> Iterator[Any]:
    from litebert.tasks.texts import TextExample
    from litebert.tasks.token_tags import TaggedWords, TokenTags

    takes_words = isinstance(predictor.task, TokenTags)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        if takes_words:
            yield TaggedWords(str(number), tuple(line.split()), where=place)
            continue
        texts = line.rstrip("\r").split("\t")
        if len(texts) > 2:
            raise DataError(f"{place}: {len(texts)} texts with tabs between them; one or a pair can be answered")
        yield TextExample(str(number), texts[0], texts[1] if len(texts) == 2 else None, where=place)


def _examples_of_table(
    predictor: "Predictor", file: Path, text: str | None, text_b: str | None, encoding: str
) -> Iterator[Any]:
    from litebert.tasks.custom import find_columns, read_rows, read_tagged
    from litebert.tasks.reading import ReadOptions
    from litebert.tasks.tables import read_table
    from litebert.tasks.token_tags import TokenTags

    options = ReadOptions(text=text, text_b=text_b, encoding=encoding)
    if isinstance(predictor.task, TokenTags):
        yield from read_tagged(file, options, has_tags=False)
        return
    has_header = text is None or not text.isdecimal()
    table = read_table(file, encoding=encoding, has_header=has_header)
    yield from read_rows(table, find_columns(table, options, needs_label=False))


def _print_answers(
    predictor: "Predictor", examples: Sequence[Any], predictions: "Sequence[Prediction]", as_table: bool
) -> None:
    labels = getattr(predictor.task, "labels", None)
    for example, one in zip(examples, predictions, strict=True):
        shown = " ".join(one.answer) if isinstance(one.answer, list) else one.answer
        if as_table:
            words = " ".join(example.words) if hasattr(example, "words") else getattr(example, "text", "")
            best = f"{max(one.output):.3f}" if isinstance(one.output, list) and _is_flat(one.output) else ""
            print(f"{shown}\t{best}\t{words}")
            continue
        record: dict[str, Any] = {"id": one.id, "answer": one.answer}
        if labels and isinstance(one.output, list) and _is_flat(one.output):
            record["probabilities"] = dict(zip(labels, one.output, strict=True))
        print(json.dumps(record | _place_of(predictor, example, one), ensure_ascii=False))


def _place_of(predictor: "Predictor", example: Any, one: "Prediction") -> dict[str, Any]:
    """Where an answer stands in its text; which of the choices it is."""
    from litebert.infer.answering import read_answer, read_choice
    from litebert.tasks.choices import Choices
    from litebert.tasks.squad.task import SpanTask

    if isinstance(predictor.task, SpanTask):
        return {k: v for k, v in read_answer(predictor.task, one.output)._asdict().items() if k != "text"}
    if isinstance(predictor.task, Choices):
        return read_choice(example.choices, one.output)._asdict()
    return {}


def _is_flat(output: list[Any]) -> bool:
    return bool(output) and isinstance(output[0], float)
