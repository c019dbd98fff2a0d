"""From the text of a file to documents: one parser a format, and the guess which format a file has.

lines      a sentence a line, a blank line between documents; kept as is
prose      a paragraph a line
wrapped    hard-wrapped lines, a blank line between paragraphs
wiki       WikiExtractor's <doc ...> ... </doc>                                   data/wiki.py
gutenberg  a Project Gutenberg book; licence, headings and illustrations left out  data/gutenberg.py
jsonl      a JSON object a line, the text in one field (a Parquet file arrives as this)
race       the same with the text in "article"
squad      a SQuAD JSON file; the paragraphs of an article are a document
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple, get_args

from litebert.corpus.chunks import Segment
from litebert.corpus.gutenberg import book_paragraphs, is_gutenberg
from litebert.corpus.layout import guess_layout, join_wrapped, wrapped_paragraphs
from litebert.corpus.notes import Notes, Problem
from litebert.corpus.wiki import iter_articles
from litebert.text.sentences import split_sentences

Format = Literal["lines", "prose", "wrapped", "wiki", "gutenberg", "jsonl", "race", "squad"]
FORMATS: tuple[Format, ...] = get_args(Format)

# Text without document ends (a book, a dump without blank lines) becomes documents of about this many characters,
# so that none grows without bound and some can go to the validation split
DOCUMENT_CHARACTERS = 1 << 18
# No sentence is longer; what is gets cut at a space. Encoders need memory in proportion to the sentence.
SENTENCE_CHARACTERS = 1 << 13
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
_JSON_ARRAY = re.compile(rb"\s*\[\s*\{\s*\"")
_CHARSET = re.compile(rb"(?i)character set encoding:\s*(?:ISO-?8859-1|ISO-?Latin-?1|Windows-1252|cp1252)")


class Document(NamedTuple):
    """A text of one or more sentences; `id` says where it came from."""

    id: str
    sentences: tuple[str, ...]


_Line = tuple[int, str]  # number, text


def guess_format(head: bytes) -> Format:
    """The format of a file whose text begins with `head`."""
    head = head.removeprefix(_UTF8_MARK)
    start = head.lstrip()
    if start.startswith(b"<doc "):
        return "wiki"
    if start.startswith(b"{"):
        return _guess_json_format(start)
    if _JSON_ARRAY.match(start):
        return "jsonl"  # whose parser says what is wrong with it
    text = head.decode("utf-8", "replace")
    return "gutenberg" if is_gutenberg(text) else guess_layout(text)


def _guess_json_format(start: bytes) -> Format:
    if b'"paragraphs"' in start and b'"data"' in start:
        return "squad"
    return "race" if b'"article"' in start and b'"questions"' in start else "jsonl"


def parse_segment(segment: Segment, notes: Notes) -> Iterator[Document]:
    """The documents of a stretch of a file; what is bad in it goes to `notes`."""
    for problem in segment.problems:
        notes.report(problem)
    if not segment.data.strip():
        return
    if segment.data.startswith(_UTF16_MARKS):
        notes.report(Problem("encoding", f"{segment.name}:1", "UTF-16 text; convert it to UTF-8 first"))
        return
    for id_, sentences in _PARSERS[segment.format](segment, notes):
        kept = _bounded_sentences(sentences, notes)
        if kept:
            yield Document(id_, kept)
        else:
            notes.count("empty_documents")


_Parsed = Iterator[tuple[str, Iterable[str]]]


def _parse_lines(segment: Segment, notes: Notes) -> _Parsed:
    """Blank lines end documents; inside, each line is a sentence."""
    for is_filled, group in groupby(_decode(segment, notes), key=_is_filled):
        if is_filled:
            yield from _bounded_documents(segment, group)


def _parse_prose(segment: Segment, notes: Notes) -> _Parsed:
    lines = filter(_is_filled, _decode(segment, notes))
    for id_, paragraphs in _bounded_documents(segment, lines):
        yield id_, _split_all(paragraphs)


def _parse_wrapped(segment: Segment, notes: Notes) -> _Parsed:
    groups = groupby(_decode(segment, notes), key=_is_filled)
    blocks = (list(group) for is_filled, group in groups if is_filled)
    paragraphs = ((block[0][0], join_wrapped([text for _, text in block])) for block in blocks)
    for id_, texts in _bounded_documents(segment, paragraphs):
        yield id_, _split_all(texts)


def _parse_wiki(segment: Segment, notes: Notes) -> _Parsed:
    text = "\n".join(line for _, line in _decode(segment, notes))
    for number, paragraphs in iter_articles(text, segment.first_line, notes):
        yield f"{segment.name}:{number}", _split_all(paragraphs)


def _parse_gutenberg(segment: Segment, notes: Notes) -> _Parsed:
    text = "\n".join(text for _, text in _decode(segment, notes, charset=_declared_charset(segment.data)))
    paragraphs = enumerate(book_paragraphs(text, segment.name, notes), 1)
    for id_, texts in _bounded_documents(segment, paragraphs):
        yield id_, _split_all(texts)


def _parse_jsonl(segment: Segment, notes: Notes) -> _Parsed:
    if segment.first_line == 1 and _JSON_ARRAY.match(segment.data.removeprefix(_UTF8_MARK)):
        what = "a JSON array; one object a line is wanted (jq -c '.[]' makes them)"
        notes.report(Problem("broken_json", f"{segment.name}:1", what))
        return
    for number, line in filter(_is_filled, _decode(segment, notes)):
        where = f"{segment.name}:{number}"
        try:
            text = _field_of(json.loads(line), segment.field)
        except (ValueError, RecursionError) as error:
            notes.report(Problem("broken_json", where, f"no usable JSON record ({error})"))
        else:
            yield where, _split_all(wrapped_paragraphs(text) if guess_layout(text) == "wrapped" else text.split("\n"))


def _parse_race(segment: Segment, notes: Notes) -> _Parsed:
    return _parse_jsonl(replace(segment, field="article"), notes)


def _parse_squad(segment: Segment, notes: Notes) -> _Parsed:
    try:
        articles = json.loads(segment.data)["data"]
        documents = [[_field_of(paragraph, "context") for paragraph in a["paragraphs"]] for a in articles]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        notes.report(Problem("broken_json", f"{segment.name}:{line}", f"no SQuAD file ({error!r})"))
        return
    for number, paragraphs in enumerate(documents):
        yield f"{segment.name}#{number}", _split_all(paragraphs)


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


def _field_of(record: Any, field: str) -> str:
    if not isinstance(record, dict) or field not in record:
        names = ", ".join(record) if isinstance(record, dict) else f"a {type(record).__name__}"
        raise ValueError(f"no field '{field}', choose with --field; found: {names}")
    text = record[field]
    if not isinstance(text, str):
        raise ValueError(f"field '{field}' holds a {type(text).__name__}, not text")
    if "\0" in text:
        raise ValueError(f"field '{field}' holds a NUL character")
    text.encode()  # \ud800 in JSON is half a character: a UnicodeEncodeError is a ValueError
    return text


def _decode(segment: Segment, notes: Notes, *, charset: str = "utf-8") -> Iterable[_Line]:
    """The lines of a segment; a line that is no text is reported and left out."""
    data = segment.data
    if segment.first_line == 1:
        data = data.removeprefix(_UTF8_MARK)
    if b"\0" in data:
        return _decode_each(data, segment, notes, charset)
    try:
        lines = data.decode(charset).split("\n")
    except UnicodeDecodeError:
        return _decode_each(data, segment, notes, charset)
    return enumerate(lines, segment.first_line)


def _decode_each(data: bytes, segment: Segment, notes: Notes, charset: str) -> Iterator[_Line]:
    for number, line in enumerate(data.split(b"\n"), segment.first_line):
        where = f"{segment.name}:{number}"
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


def _declared_charset(data: bytes) -> str:
    """Old Gutenberg books say that they are Latin-1 (many of them since converted to UTF-8, without saying so)."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252" if _CHARSET.search(data, 0, 1 << 16) else "utf-8"
    return "utf-8"


def _is_filled(line: _Line) -> bool:
    return bool(line[1].strip())


def _bounded_documents(segment: Segment, lines: Iterable[_Line]) -> Iterator[tuple[str, list[str]]]:
    """Lines gathered into documents of a bounded size, each with its id."""
    texts: list[str] = []
    first = size = 0
    for number, text in lines:
        first = first or number
        texts.append(text)
        size += len(text)
        if size >= DOCUMENT_CHARACTERS:
            yield f"{segment.name}:{first}", texts
            texts, first, size = [], 0, 0
    if texts:
        yield f"{segment.name}:{first}", texts


def _split_all(paragraphs: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(split_sentences, paragraphs))


def _bounded_sentences(sentences: Iterable[str], notes: Notes) -> tuple[str, ...]:
    """The sentences that are not empty, the too long ones in pieces."""
    stripped = tuple(filter(None, map(str.strip, sentences)))
    if max(map(len, stripped), default=0) <= SENTENCE_CHARACTERS:
        return stripped
    notes.count("long_sentences_cut", sum(len(sentence) > SENTENCE_CHARACTERS for sentence in stripped))
    return tuple(piece for sentence in stripped for piece in _cut_sentence(sentence) if piece)


def _cut_sentence(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > SENTENCE_CHARACTERS:
        limit = start + SENTENCE_CHARACTERS
        space = sentence.rfind(" ", start + SENTENCE_CHARACTERS // 2, limit)
        end = space if space >= 0 else limit
        yield sentence[start:end].strip()
        start = end
    yield sentence[start:].strip()
