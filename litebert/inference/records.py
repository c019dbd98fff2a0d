"""Inputs and outputs of `litebert predict`: read files or Python values as examples, and turn answers into records."""

import string
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import DataError
from litebert.core.progress import ProgressBar
from litebert.inference.answering import read_answer, read_choice, to_choice_example, to_questions
from litebert.inference.cutting import describe_cut
from litebert.inference.fill_mask import MASK, count_masks, show_guess
from litebert.inference.predictor import Predictor, to_examples
from litebert.tasks.catalog import find_kind
from litebert.tasks.files.choice_files import build_choices, read_choices
from litebert.tasks.files.columnar import is_columnar
from litebert.tasks.files.columns import TAGGED_WORDS, Columns, find_columns, read_named_table
from litebert.tasks.files.conll import read_conll
from litebert.tasks.files.custom import read_rows
from litebert.tasks.files.fasttext import is_fasttext
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.files.slash_tags import is_slash_tagged, read_slash_tags
from litebert.tasks.files.tables import Row, decode, parse_json, read_table, read_text
from litebert.tasks.files.tagged_tables import is_table, join_word_rows, read_tagged_rows
from litebert.tasks.groups import Group
from litebert.tasks.kinds.choices import ChoiceExample
from litebert.tasks.kinds.embedding import EmbeddedText
from litebert.tasks.kinds.token_tags import TaggedWords
from litebert.tasks.predictions import Prediction, predict_answers
from litebert.tasks.squad.reading import Question, read_question_lines, read_squad
from litebert.tasks.texts import TextExample
from litebert.tasks.words import Cut, cut_text

STDIN = "standard input"
TABLES = (".csv", ".tsv", ".jsonl", ".json")
CHUNK = 8192  # texts that are sorted by length and answered together
GAPS_CHUNK = 1024
NUM_GUESSES = 5
NUM_SHOWN = 4  # numbers of a vector in the terminal's table


class Answered(NamedTuple):
    """An example's answer."""

    record: dict[str, Any]  # as written to JSON lines
    row: tuple[str, ...]  # as shown in the terminal's table


def iter_records(predictor: Predictor, examples: Sequence[Any], *, names_files: bool = False) -> Iterator[Answered]:
    """Answers in the order of the examples, chunk by chunk; all examples are checked before the first is computed.

    With `names_files` each record contains its file, because ids are numbered per file.
    """
    chunks = _iter_guesses if predictor.only_fills_gaps else _iter_answers
    for example, answered in chunks(predictor, examples):
        if names_files:
            answered.record["where"] = example.where
        yield answered


def _iter_answers(predictor: Predictor, examples: Sequence[Any]) -> Iterator[tuple[Any, Answered]]:
    num_cut: list[int] = []
    with ProgressBar("answering", total=len(examples), unit="texts", scale=1) as progress:
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            move_to = lambda done, start=start: progress.move_to(start + done)  # noqa: E731
            outputs = predictor.predict(chunk, report=move_to, report_cut=num_cut.extend)
            for example, one in zip(chunk, predict_answers(predictor.task, outputs, chunk), strict=True):
                yield example, _describe(predictor, example, one)
    if note := describe_cut(num_cut, predictor.form().max_length):
        print(f"note: {note}", file=sys.stderr)


def _describe(predictor: Predictor, example: Any, one: Prediction) -> Answered:
    labels = getattr(predictor.task, "labels", ())
    is_flat = isinstance(one.output, list) and bool(one.output) and isinstance(one.output[0], float)
    probabilities = one.output if is_flat else []
    record: dict[str, Any] = {"id": one.id, "answer": one.answer}
    if hasattr(example, "words"):
        record["words"] = list(example.words)
    if getattr(example, "offsets", ()):
        record["offsets"] = [list(place) for place in example.offsets]
    if probabilities and len(labels) == len(probabilities):
        record["probabilities"] = dict(zip(labels, probabilities, strict=True))
    best = f"{max(probabilities):.3f}" if probabilities else ""
    return Answered(record | _place_of(predictor, example, one), (_show(example, one.answer), best, _text_of(example)))


def _iter_guesses(predictor: Predictor, examples: Sequence[Any]) -> Iterator[tuple[Any, Answered]]:
    """The best guesses for each mask of each text; all texts are checked before the first is computed."""
    encoded = [_encode(predictor, example) for example in examples]
    with ProgressBar("guessing", total=len(examples), unit="texts", scale=1) as progress:
        for start in range(0, len(examples), GAPS_CHUNK):
            chunk = examples[start : start + GAPS_CHUNK]
            guesses = predictor.fill_gaps(encoded[start : start + GAPS_CHUNK], NUM_GUESSES)
            for example, gaps in zip(chunk, guesses, strict=True):
                words = [[(show_guess(predictor.tokenizer, guess), guess) for guess in gap] for gap in gaps]
                shown = [", ".join(f"{word} {guess.probability:.3f}" for word, guess in gap) for gap in words]
                found = [
                    [{"word": word, "piece": guess.piece, "probability": guess.probability} for word, guess in gap]
                    for gap in words
                ]
                yield example, Answered({"id": example.id, "gaps": found}, ("; ".join(shown), example.text))
            progress.move_to(start + len(chunk))


def _encode(predictor: Predictor, example: Any) -> Group:
    if example.text_b is not None:
        what = "got a pair of texts, but a model that is not fine-tuned only fills masks in single texts"
        raise DataError("pair-of-texts", f"{example.where}: {what}")
    if not count_masks(predictor.tokenizer, example.text):
        what = f"the text has no {MASK}, and a model that is not fine-tuned only fills masks"
        fix = f"write {MASK} in place of a word, or fine-tune the model"
        raise DataError("no-mask", f"{example.where}: {what}: {fix}")
    try:
        return predictor.encode_gaps([example.text])[0]
    except DataError as error:
        raise DataError(error.code, f"{example.where}: {error}") from None


def _show(example: Any, answer: Any) -> str:
    """An answer as text: tags with spaces, several labels with a bar, a choice with its text, a vector's start."""
    if isinstance(answer, list) and answer and isinstance(answer[0], float):
        return ", ".join(f"{number:.3f}" for number in answer[:NUM_SHOWN]) + f", ... ({len(answer)} numbers)"
    if isinstance(answer, list):
        return (" " if hasattr(example, "words") else "|").join(answer)
    if hasattr(example, "choices"):
        number = answer if isinstance(answer, int) else string.ascii_uppercase.index(answer)
        return f"{answer} ({example.choices[number]})"
    return str(answer)


def _text_of(example: Any) -> str:
    texts = [" ".join(example.words)] if hasattr(example, "words") else [example.text, getattr(example, "text_b", None)]
    return "\t".join(" ".join(text.split()) for text in texts if text is not None)  # one line each


def _place_of(predictor: Predictor, example: Any, one: Prediction) -> dict[str, Any]:
    """The position of an answer in its text, or the number of the choice."""
    if isinstance(example, Question):
        found = read_answer(predictor.task, one.output)._asdict()  # type: ignore[arg-type]
        return {name: value for name, value in found.items() if name != "text"}
    return read_choice(example.choices, one.output)._asdict() if isinstance(example, ChoiceExample) else {}


def read_inputs(predictor: Predictor, files: Sequence[Path], options: TableOptions) -> list[Any]:
    """Read the examples in files, or in standard input if there are none, for the model's task."""
    inputs = find_inputs(predictor)
    if not files:
        return list(inputs.read_lines(_read_stdin(options.encoding), STDIN, options))
    return [example for file in files for example in inputs.read_file(file, options)]


def to_inputs(predictor: Predictor, texts: Sequence[Any]) -> list[Any]:
    """Convert Python values to examples of the model's task: texts or pairs, sentences for tagging, (question,
    context), or (context, question, choices)."""
    return find_inputs(predictor).read_values(texts)


class Inputs(NamedTuple):
    """How one type of example is read."""

    read_lines: Callable[[str, str, TableOptions], Iterable[Any]]
    read_file: Callable[[Path, TableOptions], Iterable[Any]]
    read_values: Callable[[Sequence[Any]], list[Any]]


def find_inputs(predictor: Predictor) -> Inputs:
    """How inputs for a model are read."""
    if predictor.only_fills_gaps:
        return Inputs(_texts_of_lines, partial(_texts_of_file, num_texts=1), _texts_of_values)
    task = predictor.task
    example, splits_words = find_kind(task).example, getattr(task, "splits_words", False)
    table = {
        ChoiceExample: Inputs(
            lambda lines, where, options: build_choices(parse_json(Path(where), lines), options, has_labels=False),
            partial(read_choices, has_labels=False),
            lambda texts: [to_choice_example(*one) for one in texts],
        ),
        Question: Inputs(lambda lines, where, _: read_question_lines(lines, where), _questions_of_file, to_questions),
        TaggedWords: Inputs(
            partial(_sentences_of_lines, splits_words=splits_words),
            partial(_sentences_of_file, splits_words=splits_words),
            partial(_sentences_of_values, splits_words=splits_words),
        ),
        EmbeddedText: Inputs(_texts_of_lines, partial(_texts_of_file, num_texts=0), _texts_of_values),
        TextExample: Inputs(
            _texts_of_lines, partial(_texts_of_file, num_texts=getattr(task, "num_texts", 0)), _texts_of_values
        ),
    }
    return table[example]


def _read_stdin(encoding: str) -> str:
    if sys.stdin is None:  # closed by the parent process
        raise DataError("missing-input", "standard input is closed: pass a file")
    if sys.stdin.isatty():
        print("reading from the terminal, one input per line; end with Ctrl-D", file=sys.stderr)
    return decode(sys.stdin.buffer.read(), encoding, where=STDIN)


def _questions_of_file(file: Path, options: TableOptions) -> Iterable[Any]:
    """SQuAD's JSON, or lines of `question TAB context`."""
    if file.suffix.lower() in (".json", ".jsonl", ".parquet"):
        return [replace(question, answers=None) for question in read_squad(file, options.encoding)]
    return read_question_lines(read_text(file, options.encoding), str(file))


def _sentences_of_lines(lines: str, where: str, options: TableOptions, *, splits_words: Cut) -> Iterable[Any]:
    """One sentence per line, split into words like the training texts, or at white space."""
    del options  # a line has no columns
    for number, line in enumerate(lines.split("\n"), start=1):
        if line.strip():
            yield _cut_sentence(str(number), line, f"{where}:{number}", splits_words=splits_words)


def _sentences_of_values(texts: Sequence[Any], *, splits_words: Cut) -> list[Any]:
    return [
        _cut_sentence(str(n), one, f"texts[{n}]", splits_words=splits_words)
        if isinstance(one, str)
        else TaggedWords(str(n), tuple(one), where=f"texts[{n}]")
        for n, one in enumerate(texts)
    ]


def _cut_sentence(identity: str, text: str, where: str, *, splits_words: Cut) -> TaggedWords:
    """A plain text's words, with their places in it."""
    cut = cut_text(text, splits_words=splits_words)
    words = tuple(text[word.start : word.end] for word in cut)
    return TaggedWords(identity, words, where=where, offsets=tuple((word.start, word.end) for word in cut))


def _sentences_of_file(file: Path, options: TableOptions, *, splits_words: Cut) -> Iterable[Any]:
    """A table, CoNLL columns with or without tags, or one sentence per line, with or without tags (word/TAG)."""
    if file.suffix.lower() == ".txt":
        lines = read_text(file, options.encoding)
        if is_slash_tagged(lines):
            return [replace(sentence, label=None) for sentence in read_slash_tags(lines, file)]
        return _sentences_of_lines(lines, str(file), options, splits_words=splits_words)
    if is_table(file):
        table = join_word_rows(read_table(file, encoding=options.encoding), options, needs_tags=False)
        columns = replace(find_columns(table, options, needs_label=False, usual=TAGGED_WORDS), label=None)
        _tell_columns(file, columns, options)
        if splits_words and all(isinstance(row.cells.get(columns.text), str) for row in table.rows):
            table = replace(table, rows=[_split_text(row, columns.text, splits_words) for row in table.rows])
        return read_tagged_rows(table, columns, needs_tags=False)
    notes: list[str] = []
    sentences = read_conll(file, options, needs_tags=False, notes=notes)
    for note in notes:
        print(note, file=sys.stderr)
    return [replace(sentence, label=None) for sentence in sentences]


def _split_text(row: Row, column: str, splits_words: Cut) -> Row:
    """The row with its text split into words like the training texts."""
    text = row.cells[column]
    words = [text[word.start : word.end] for word in cut_text(text, splits_words=splits_words)]
    return replace(row, cells={**row.cells, column: words})


def _texts_of_lines(lines: str, where: str, options: TableOptions) -> Iterable[Any]:
    del options  # a line has no columns
    for number, line in enumerate(lines.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        texts = line.rstrip("\r").split("\t")
        if len(texts) > 2:
            raise DataError("wrong-input", f"{place}: expected one text, or two separated by a tab, got {len(texts)}")
        yield TextExample(str(number), texts[0], texts[1] if len(texts) == 2 else None, where=place)


def _texts_of_values(texts: Sequence[Any]) -> list[Any]:
    return [replace(one, where=f"texts[{one.id}]") for one in to_examples(texts)]


def _texts_of_file(file: Path, options: TableOptions, *, num_texts: int) -> Iterable[Any]:
    """A table, fastText lines, or one text per line (the two texts of a pair are separated by a tab)."""
    if not (file.suffix.lower() in TABLES or is_columnar(file) or options.text):
        lines = read_text(file, options.encoding)
        if not is_fasttext(lines):
            return _texts_of_lines(lines, str(file), options)
    table = read_named_table(file, options)
    columns = replace(find_columns(table, options, needs_label=False), label=None)
    if num_texts == 1 and options.text_b is None:
        columns = replace(columns, text_b=None)
    for note in table.notes:
        print(note, file=sys.stderr)
    _tell_columns(file, columns, options)
    return read_rows(table, columns)


def _tell_columns(file: Path, columns: Columns, options: TableOptions) -> None:
    if options.text is None:
        print(f"columns of {file.name}: {columns}", file=sys.stderr)
