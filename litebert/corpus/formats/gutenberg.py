"""Project Gutenberg books: the text between licence header and footer, without headings, credits and illustrations."""

import html
import re
from collections.abc import Iterator

from litebert.corpus.formats.layout import wrapped_paragraphs
from litebert.corpus.notes import Notes, Problem

_NAMED = re.compile(r"(?i)Project Gutenberg(?:'s|’s)? (?:EBook|E-?text|of)\b|START OF TH(?:IS|E) PROJECT GUTENBERG")
_HEAD_CHARACTERS = 1 << 16

# The marker may span two lines; books before 2000 end their header with the "small print"
_STARTS = (
    re.compile(r"(?i)\*{3}\s*START OF TH(?:IS|E) PROJECT GUTENBERG[^*]{0,400}\*{2,}"),
    re.compile(r"(?i)\*END[* ]*THE SMALL PRINT[^\n]*"),
)
_ENDS = (
    re.compile(r"(?i)\*{3}\s*END OF TH(?:IS|E) PROJECT GUTENBERG"),
    re.compile(r"(?im)^[ \t*]*End of (?:The |this )?Project Gutenberg"),
    re.compile(r"(?i)\*{3}START\*\*THE SMALL PRINT"),
    re.compile(r"(?i)\*{3,} ?This file should be named"),
)

_CREDIT = re.compile(
    r"(?i)^(?:\[?transcriber|\[?transcribed|produced by|e-?text prepared|prepared by|scanned|html version|"
    r"this (?:e-?text|e-?book|file) was (?:produced|prepared|transcribed)|"
    r"note: project gutenberg|\[?illustration|\[note)"
)
_DIVISION = re.compile(
    r"(?i)(?:chapter|part|book|vol(?:ume)?|section|act|scene|letter|canto|stave)\b[^a-z]{0,3}.{0,40}"
)
_LAST_NOTES = re.compile(r"(?im)^[ \t*\[]*Transcriber[’']?s?[’']? Notes?\b")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<!--.{0,200}?-->")
_PROJECT = re.compile(r"(?i)project gutenberg|www\.gutenberg")
_EMPHASIS = re.compile(r"(?<![^\W_])_([^_]{1,400})_(?![^\W_])")
_INLINE_NOTE = re.compile(r"\[(?:Illustration|Footnote|Sidenote)[^\[\]]{0,2000}\]\s?|\{\d+\}\s?", re.IGNORECASE)
_LAST_CHARACTER = re.compile(r"[\w\d)\]*]$")


def is_gutenberg(text: str) -> bool:
    """Whether this text begins like a Project Gutenberg book."""
    return bool(_NAMED.search(text, 0, 4000)) and any(start.search(text[:_HEAD_CHARACTERS]) for start in _STARTS)


def book_paragraphs(text: str, name: str, notes: Notes) -> Iterator[str]:
    """The paragraphs of the book itself, each on one line."""
    body = _body(text.replace("\r", ""))
    if body is None:
        what = "no licence header found; if this is not a Project Gutenberg file, choose another format"
        notes.report(Problem("licence", f"{name}:1", what))
        return
    for paragraph in wrapped_paragraphs(body):
        cleaned = paragraph
        if "&" in cleaned or "<" in cleaned:  # some "plain text" was converted from HTML, incompletely
            cleaned = " ".join(_TAG.sub(" ", html.unescape(cleaned)).split())
        cleaned = _EMPHASIS.sub(r"\1", _INLINE_NOTE.sub("", cleaned)).strip()
        if _is_passage(cleaned):
            yield cleaned
        else:
            notes.count("gutenberg_headings")


def _body(text: str) -> str | None:
    """The text between licence header and footer; None without a header."""
    starts = [match.end() for start in _STARTS if (match := start.search(text, 0, _HEAD_CHARACTERS))]
    if not starts:
        return None
    first = max(starts)
    ends = [match.start() for end in _ENDS if (match := end.search(text, first))]
    body = text[first : min(ends, default=len(text))]
    notes = _LAST_NOTES.search(body, len(body) * 9 // 10)
    return body[: notes.start()] if notes else body


def _is_passage(paragraph: str) -> bool:
    """Whether this is prose, which ends in punctuation and has lower-case letters, unlike titles and credits."""
    return (
        bool(paragraph)
        and not _LAST_CHARACTER.search(paragraph)
        and any(character.islower() for character in paragraph)
        and not _CREDIT.search(paragraph)
        and not _DIVISION.fullmatch(paragraph)
        and not _PROJECT.search(paragraph)
    )
