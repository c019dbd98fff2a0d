"""Reads SQuAD's JSON, 1.1 and 2.0: articles with paragraphs, and paragraphs with questions and answers.

CMRC 2018's own layout is read too: a list of contexts, each with its questions, whose answers are texts without places.

Every answer is checked against its paragraph here, once; other modules trust the offsets.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from litebert.core.errors import DataError
from litebert.tasks.files.columnar import is_columnar
from litebert.tasks.files.misplaced import Misplaced
from litebert.tasks.files.tables import parse_value, read_table, read_text


class Answer(NamedTuple):
    """A span of a paragraph: context[start : start + len(text)]."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Question:
    """A question about a paragraph, with its gold answers."""

    id: str
    text: str
    context: str  # the paragraph; its questions share the same string object
    # empty: unanswerable; None: unknown
    answers: tuple[Answer, ...] | None = field(default=None, metadata={"is_shown": False})  # `label` is
    article: int = field(default=0, metadata={"is_shown": False})  # index of the paragraph's article
    where: str = ""  # file and location, for messages

    def to_input(self) -> dict[str, str]:
        """The question as server input."""
        return {"question": self.text, "context": self.context}

    @property
    def has_answer(self) -> bool:
        return bool(self.answers)

    @property
    def label(self) -> list[str] | None:
        """The distinct gold answers; [""] if it is unanswerable, None if unknown."""
        if self.answers is None:
            return None
        return list(dict.fromkeys(answer.text for answer in self.answers)) or [""]


def read_squad(path: Path, encoding: str = "utf-8", misplaced: Misplaced | None = None) -> list[Question]:
    """Read the questions of a file in order; errors name the place where it is not SQuAD's JSON.

    JSON lines and Parquet of the `datasets` library are also read. A wrong offset is an error, unless
    `misplaced` fixes it (if the text occurs elsewhere) or skips the answer, and its question if no answer is left.
    """
    misplaced = misplaced or Misplaced()
    is_rows = path.suffix.lower() == ".jsonl" or is_columnar(path)
    rows = _iter_rows(path, encoding, misplaced) if is_rows else _iter_questions(path, encoding, misplaced)
    questions: list[Question] = []
    place_by_id: dict[str, str] = {}
    for question in rows:
        if not question.context.strip():
            raise DataError(
                "empty-cell", f"{question.where}: the context is empty; restore the text or remove the question"
            )
        if question.id in place_by_id:
            first = place_by_id[question.id]
            raise DataError(
                "duplicate-id", f"{question.where}: id '{question.id}' is already used by {first}; ids must be unique"
            )
        place_by_id[question.id] = question.where
        questions.append(question)
    if not questions:
        raise DataError("empty-file", f"{path}: no questions found; is this the right file?")
    return questions


def read_question_lines(text: str, where: str) -> list[Question]:
    """Read questions to answer, one per line: the question, a tab, the context."""
    questions = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        question, tab, context = line.rstrip("\r").partition("\t")
        if not tab or not context.strip():
            raise DataError("bad-layout", f"{where}:{number}: expected a question, a tab and its context")
        questions.append(Question(str(number), question, context, where=f"{where}:{number}"))
    return questions


def check_answers(questions: Sequence[Question], *, allows_none: bool) -> None:
    """Raise on questions without answers, and on unanswerable ones unless they are allowed."""
    for question in questions:
        if question.answers is None:
            raise DataError(
                "no-labels",
                f"{question.where}: 'answers' is missing; is this a test split? It can be predicted, not scored",
            )
        if question.answers == () and not allows_none:
            raise DataError(
                "no-labels",
                f"{question.where}: the question has no answer, which SQuAD 1.1 does not allow; use the task squad-v2",
            )


def split_articles(questions: Sequence[Question], share: float) -> tuple[list[Question], list[Question]]:
    """(kept, held out): whole articles from the end are held out, with about `share` of all questions.

    The first article is always kept, so nothing is held out if there is only one.
    """
    sizes = Counter(question.article for question in questions)
    num_missing = max(1, int(len(questions) * share))
    held: set[int] = set()
    for article in sorted(sizes, reverse=True)[:-1]:
        if num_missing <= 0:
            break
        held.add(article)
        num_missing -= sizes[article]
    kept = [question for question in questions if question.article not in held]
    return kept, [question for question in questions if question.article in held]


def _iter_questions(path: Path, encoding: str, misplaced: Misplaced) -> Iterator[Question]:
    whole = parse_value(read_text(path, encoding), str(path), "is the file complete?")
    if isinstance(whole, list) and whole:
        yield from _iter_cmrc(whole, path, misplaced)
        return
    for number, article in enumerate(_take(whole, "data", list, str(path))):
        where = f"{path}: data[{number}]"
        for index, paragraph in enumerate(_take(article, "paragraphs", list, where)):
            place = f"{where}.paragraphs[{index}]"
            context = _take(paragraph, "context", str, place)
            for position, value in enumerate(_take(paragraph, "qas", list, place)):
                yield from _read_question(value, context, number, f"{place}.qas[{position}]", misplaced)


def _iter_cmrc(contexts: Sequence[Any], path: Path, misplaced: Misplaced) -> Iterator[Question]:
    """CMRC's contexts, an article each; an answer is placed where its text occurs first, as BERT's Chinese scripts do.

    An answer with another text than the context's is an error of the file, as a wrong offset is.
    """
    for number, value in enumerate(contexts):
        where = f"{path}: [{number}]"
        context = _take(value, "context_text", str, where)
        for index, asked in enumerate(_take(value, "qas", list, where)):
            place = f"{where}.qas[{index}]"
            question = {"id": _take(asked, "query_id", str, place), "question": _take(asked, "query_text", str, place)}
            if "answers" in asked:
                texts = [one for one in _take(asked, "answers", list, place) if isinstance(one, str)]
                question["answers"] = [{"text": text, "answer_start": context.find(text)} for text in texts]
            yield from _read_question(question, context, number, place, misplaced)


def _iter_rows(path: Path, encoding: str, misplaced: Misplaced) -> Iterator[Question]:
    """Parse rows of one question with its context; answer texts and starts are two lists."""
    titles: dict[str, int] = {}
    for row in read_table(path, encoding=encoding).rows:
        context = _take(row.cells, "context", str, row.where)
        value = dict(row.cells)
        if isinstance(value.get("answers"), dict):
            texts = _take(value["answers"], "text", list, f"{row.where}: answers")
            starts = _take(value["answers"], "answer_start", list, f"{row.where}: answers")
            if len(texts) != len(starts):
                raise DataError("bad-layout", f"{row.where}: {len(texts)} answer texts but {len(starts)} answer starts")
            value["answers"] = [{"text": t, "answer_start": s} for t, s in zip(texts, starts, strict=True)]
        article = titles.setdefault(str(value.get("title", context)), len(titles))
        yield from _read_question(value, context, article, row.where, misplaced)


def _read_question(value: Any, context: str, article: int, where: str, misplaced: Misplaced) -> Iterator[Question]:
    """The question; nothing if all of its answers were skipped."""
    identity = value.get("id") if isinstance(value, dict) else None
    if isinstance(identity, int):
        identity = str(identity)
    if not isinstance(identity, str):
        raise DataError("missing-id", f"{where}: 'id' is missing; predictions are listed by question id")
    text = _take(value, "question", str, where)
    answers = _read_answers(value, context, where, misplaced)
    if answers != () or not value.get("answers"):
        yield Question(identity, text, context, answers, article, where)


def _read_answers(value: dict[str, Any], context: str, where: str, misplaced: Misplaced) -> tuple[Answer, ...] | None:
    is_impossible = value.get("is_impossible", False)
    if "answers" not in value:
        return () if is_impossible else None
    found = [
        _read_answer(answer, context, f"{where}.answers[{index}]", misplaced)
        for index, answer in enumerate(_take(value, "answers", list, where))
    ]
    answers = tuple(answer for answer in found if answer is not None)
    if answers and is_impossible:
        raise DataError(
            "conflicting-answers", f"{where}: is_impossible is true but there are answers; fix one of the two"
        )
    return answers


def _read_answer(value: Any, context: str, where: str, misplaced: Misplaced) -> Answer | None:
    answer = Answer(_take(value, "text", str, where), _take(value, "answer_start", int, where))
    if not answer.text.strip():
        raise DataError(
            "conflicting-answers",
            f"{where}: the answer text is empty; for a question without an answer, leave 'answers' empty",
        )
    if answer.start >= 0 and context[answer.start : answer.end] == answer.text:
        return answer
    nearest = misplaced.find_nearest(context, answer.text, answer.start)
    if nearest is not None:
        return Answer(answer.text, nearest)
    place = context.find(answer.text)
    remedy = f"it is at character {place}" if place >= 0 else "it does not occur there at all"
    misplaced.skip(
        DataError(
            "misplaced-answer", f"{where}: '{answer.text}' is not at character {answer.start} of the context; {remedy}"
        )
    )
    return None


def _take(value: Any, name: str, kind: type, where: str) -> Any:
    if not isinstance(value, dict):
        raise DataError("bad-layout", f"{where}: expected an object with '{name}'; is this SQuAD's JSON?")
    if name not in value:
        raise DataError("bad-layout", f"{where}: '{name}' is missing; is this SQuAD's JSON?")
    if not isinstance(value[name], kind) or isinstance(value[name], bool):
        words = {str: "text", int: "an integer", list: "a list"}
        raise DataError("bad-layout", f"{where}: '{name}' is {json.dumps(value[name])[:40]}, not {words[kind]}")
    return value[name]
