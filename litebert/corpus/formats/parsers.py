"""Parsing text into documents: one parser per format, and guessing the format of a file.

lines      one sentence per line, a blank line between documents; kept as is
prose      one paragraph per line
wrapped    hard-wrapped lines, a blank line between paragraphs
wiki       WikiExtractor's <doc ...> ... </doc>                                      formats/wiki.py
gutenberg  a Project Gutenberg book without licence, headings and illustrations      formats/gutenberg.py
jsonl      one JSON object per line, the text in one field (a Parquet file is read as this)
race       the same with the text in "article"
squad      a SQuAD JSON file; the paragraphs of an article form a document
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple, get_args

from litebert.corpus.chunks import Stretch
from litebert.corpus.formats.gutenberg import book_paragraphs, is_gutenberg
from litebert.corpus.formats.layout import guess_layout, join_wrapped, wrapped_paragraphs
from litebert.corpus.formats.wiki import iter_articles
from litebert.corpus.notes import Notes, Problem
from litebert.text.sentences import split_sentences

Format = Literal["lines", "prose", "wrapped", "wiki", "gutenberg", "jsonl", "race", "squad"]
FORMATS: tuple[Format, ...] = get_args(Format)

# Text without document boundaries (a book, a dump without blank lines) is cut into documents of about this many
# characters, so that no document grows without bound and some can go to the validation split
DOCUMENT_CHARACTERS = 1 << 18
# Longer sentences are cut at a space: encoders need memory in proportion to the sentence
SENTENCE_CHARACTERS = 1 << 13
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
_JSON_ARRAY = re.compile(rb"\s*\[\s*\{\s*\"")
_CHARSET = re.compile(rb"(?i)character set encoding:\s*(?:ISO-?8859-1|ISO-?Latin-?1|Windows-1252|cp1252)")


class Document(NamedTuple):
    """One or more sentences; `id` names the file and line that they came from."""

    id: str
    sentences: tuple[str, ...]


def guess_format(head: bytes) -> Format:
    """The format of a file whose text begins with `head`."""
    head = head.removeprefix(_UTF8_MARK)
    start = head.lstrip()
    if start.startswith(b"<doc "):
        return "wiki"
    if start.startswith(b"{"):
        if b'"paragraphs"' in start and b'"data"' in start:
            return "squad"
        return "race" if b'"article"' in start and b'"questions"' in start else "jsonl"
    if _JSON_ARRAY.match(start):
        return "jsonl"  # its parser reports what is wrong with it
    text = head.decode("utf-8", "replace")
    return "gutenberg" if is_gutenberg(text) else guess_layout(text)


def parse_stretch(stretch: Stretch, notes: Notes) -> Iterator[Document]:
    """The documents of a stretch of a file; `notes` collects its problems."""
    for problem in stretch.problems:
        notes.report(problem)
    if not stretch.data.strip():
        return
    if stretch.data.startswith(_UTF16_MARKS):
        notes.report(Problem("encoding", f"{stretch.name}:1", "UTF-16 text; convert it to UTF-8 first"))
        return
    for id_, sentences in _PARSERS[stretch.format](stretch, notes):
        kept = tuple(filter(None, map(str.strip, sentences)))
        if max(map(len, kept), default=0) > SENTENCE_CHARACTERS:
            notes.count("long_sentences_cut", sum(len(sentence) > SENTENCE_CHARACTERS for sentence in kept))
            kept = tuple(piece for sentence in kept for piece in _cut_sentence(sentence) if piece)
        if kept:
            yield Document(id_, kept)
        else:
            notes.count("empty_documents")


def _cut_sentence(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > SENTENCE_CHARACTERS:
        limit = start + SENTENCE_CHARACTERS
        space = sentence.rfind(" ", start + SENTENCE_CHARACTERS // 2, limit)
        end = space if space >= 0 else limit
        yield sentence[start:end].strip()
        start = end
    yield sentence[start:].strip()


_Parsed = Iterator[tuple[str, Iterable[str]]]  # the id and the sentences of each document


def _parse_lines(stretch: Stretch, notes: Notes) -> _Parsed:
    for is_filled, group in groupby(_decode(stretch, notes), key=_is_filled):
        if is_filled:
            yield from _bounded_documents(stretch, group)


def _parse_prose(stretch: Stretch, notes: Notes) -> _Parsed:
    lines = filter(_is_filled, _decode(stretch, notes))
    for id_, paragraphs in _bounded_documents(stretch, lines):
        yield id_, _split_all(paragraphs)


def _parse_wrapped(stretch: Stretch, notes: Notes) -> _Parsed:
    groups = groupby(_decode(stretch, notes), key=_is_filled)
    blocks = (list(group) for is_filled, group in groups if is_filled)
    paragraphs = ((block[0][0], join_wrapped([text for _, text in block])) for block in blocks)
    for id_, texts in _bounded_documents(stretch, paragraphs):
        yield id_, _split_all(texts)


def _parse_wiki(stretch: Stretch, notes: Notes) -> _Parsed:
    text = "\n".join(line for _, line in _decode(stretch, notes))
    for number, paragraphs in iter_articles(text, stretch.first_line, notes):
        yield f"{stretch.name}:{number}", _split_all(paragraphs)


def _parse_gutenberg(stretch: Stretch, notes: Notes) -> _Parsed:
    charset = "utf-8"
    try:
        stretch.data.decode()
    except UnicodeDecodeError:
        # old books declare Latin-1 (many of them were converted to UTF-8 since, without a change of the declaration)
        charset = "cp1252" if _CHARSET.search(stretch.data, 0, 1 << 16) else charset
    text = "\n".join(text for _, text in _decode(stretch, notes, charset=charset))
    paragraphs = enumerate(book_paragraphs(text, stretch.name, notes), 1)
    for id_, texts in _bounded_documents(stretch, paragraphs):
        yield id_, _split_all(texts)


def _parse_jsonl(stretch: Stretch, notes: Notes) -> _Parsed:
    if stretch.first_line == 1 and _JSON_ARRAY.match(stretch.data.removeprefix(_UTF8_MARK)):
        what = "a JSON array, but one object per line is needed (convert it with jq -c '.[]')"
        notes.report(Problem("broken_json", f"{stretch.name}:1", what))
        return
    for number, line in filter(_is_filled, _decode(stretch, notes)):
        where = f"{stretch.name}:{number}"
        try:
            text = _text_of(json.loads(line), stretch.field)
        except (ValueError, RecursionError) as error:
            notes.report(Problem("broken_json", where, f"not a usable JSON record ({error})"))
        else:
            yield where, _split_all(wrapped_paragraphs(text) if guess_layout(text) == "wrapped" else text.split("\n"))


def _parse_race(stretch: Stretch, notes: Notes) -> _Parsed:
    return _parse_jsonl(replace(stretch, field="article"), notes)


def _parse_squad(stretch: Stretch, notes: Notes) -> _Parsed:
    try:
        articles = json.loads(stretch.data)["data"]
        documents = [[_text_of(paragraph, "context") for paragraph in a["paragraphs"]] for a in articles]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        notes.report(Problem("broken_json", f"{stretch.name}:{line}", f"not a SQuAD file ({error!r})"))
        return
    for number, paragraphs in enumerate(documents):
        yield f"{stretch.name}#{number}", _split_all(paragraphs)


_PARSERS = {
    "lines": _parse_lines,
    "prose": _parse_prose,
    "wrapped": _parse_wrapped,
    "wiki": _parse_wiki,
    "gutenberg": _parse_gutenberg,
    "jsonl": _parse_jsonl,
    "race": _parse_race,
    "squad": _parse_squad,
}


def _text_of(record: Any, field: str) -> str:
    """The text of a JSON record; raises ValueError with the reason if there is none."""
    if not isinstance(record, dict) or field not in record:
        found = ", ".join(record) if isinstance(record, dict) else f"a {type(record).__name__}"
        raise ValueError(f"no field '{field}'; choose a field among: {found}")
    text = record[field]
    if not isinstance(text, str):
        raise ValueError(f"field '{field}' contains a {type(text).__name__}, not text")
    if "\0" in text:
        raise ValueError(f"field '{field}' contains a NUL character")
    text.encode()  # \ud800 in JSON is half a character: a UnicodeEncodeError is a ValueError
    return text


_Line = tuple[int, str]  # number, text


def _decode(stretch: Stretch, notes: Notes, *, charset: str = "utf-8") -> Iterable[_Line]:
    """The numbered lines of a stretch; a line that cannot be decoded is reported and left out."""
    data = stretch.data.removeprefix(_UTF8_MARK) if stretch.first_line == 1 else stretch.data
    if b"\0" not in data:
        try:
            return enumerate(data.decode(charset).split("\n"), stretch.first_line)
        except UnicodeDecodeError:
            pass
    return _decode_each(data, stretch, notes, charset)


def _decode_each(data: bytes, stretch: Stretch, notes: Notes, charset: str) -> Iterator[_Line]:
    for number, line in enumerate(data.split(b"\n"), stretch.first_line):
        where = f"{stretch.name}:{number}"
        if b"\0" in line:
            notes.report(Problem("nul", where, "a NUL byte"))
            continue
        try:
            text = line.decode(charset)
        except UnicodeDecodeError as error:
            what = f"byte 0x{line[error.start]:02x} at column {error.start + 1} is not {charset.upper()}"
            notes.report(Problem("encoding", where, what))
        else:
            yield number, text


def _is_filled(line: _Line) -> bool:
    return bool(line[1].strip())


def _bounded_documents(stretch: Stretch, lines: Iterable[_Line]) -> Iterator[tuple[str, list[str]]]:
    """Lines collected into documents of bounded size, each with its id."""
    texts: list[str] = []
    first = size = 0
    for number, text in lines:
        first = first or number
        texts.append(text)
        size += len(text)
        if size >= DOCUMENT_CHARACTERS:
            yield f"{stretch.name}:{first}", texts
            texts, first, size = [], 0, 0
    if texts:
        yield f"{stretch.name}:{first}", texts


def _split_all(paragraphs: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(split_sentences, paragraphs))
