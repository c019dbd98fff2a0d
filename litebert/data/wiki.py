"""WikiExtractor files: articles between <doc ...> and </doc>, a paragraph a line.

As BERT did, only text passages are kept: titles, headings, lists and table remains are left out (and counted).
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from litebert.data.problems import Notes

# WikiExtractor ends a heading with a full stop; a paragraph of its own this short is hardly ever anything else
_HEADING_CHARACTERS = 50
_CHINESE_HEADING_CHARACTERS = 25
# Without a full stop, a line is an item of a list unless it is long
_ITEM_CHARACTERS = 100

_TITLE = re.compile(r' title="(.*)"[^"]*>')
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’»」』)\]）]*\s*$")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|:]*)\]\]|\[\[[^\[\]]*\]\]")
_VARIANT = re.compile(r"-\{(?:zh[-a-z]*:)?([^{};:]*)[^{}]*\}-")
_EMPTY_BRACKETS = re.compile(r" ?(?:\([\s,;:]*\)|（[\s,;:，、；：]*）)")
_BRACKET_START = re.compile(r"(?<=[(（])[\s,;，、；]+")
_FORMULA = re.compile(r"formula_\d+")


class _Line(NamedTuple):
    number: int
    text: str


def iter_articles(lines: Iterable[tuple[int, str]], notes: Notes) -> Iterator[tuple[int, list[str]]]:
    """The line number and the paragraphs of each article; a file cut inside an article begins with the rest of it."""
    number, title, paragraphs = 0, None, []  # type: int, str | None, list[str]
    for line_number, line in lines:
        text = line.strip()
        if text.startswith("<doc "):
            number, title, paragraphs = line_number, _title(text), []
        elif text.startswith("</doc>"):
            if number:
                yield number, list(_passages(paragraphs, title, notes))
            number, paragraphs = 0, []
        elif text:
            number = number or line_number
            paragraphs.append(text)
    if paragraphs:
        yield number, list(_passages(paragraphs, title, notes))


def _title(line: str) -> str | None:
    match = _TITLE.search(line)
    return html.unescape(match[1]) if match else None


def _passages(paragraphs: list[str], title: str | None, notes: Notes) -> Iterator[str]:
    if paragraphs and title is not None and html.unescape(paragraphs[0]) == title:
        paragraphs = paragraphs[1:]
    for paragraph in paragraphs:
        text = clean_markup(paragraph)
        if _FORMULA.search(text):
            notes.count("wiki_formula_paragraphs")
        elif _is_passage(text):
            yield text
        else:
            notes.count("wiki_headings_and_items")


def _is_passage(text: str) -> bool:
    if not _SENTENCE_END.search(text):
        return len(text) > _ITEM_CHARACTERS
    if not text.endswith("."):
        return True
    return len(text) > (_CHINESE_HEADING_CHARACTERS if _CHINESE.search(text) else _HEADING_CHARACTERS)


def clean_markup(text: str) -> str:
    """A paragraph without what WikiExtractor leaves behind: entities, tags, links, variants, emptied brackets."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    if "[[" in text:
        text = _LINK.sub(r"\1", text)
    if "-{" in text:
        text = _VARIANT.sub(r"\1", text)
    if "(" in text or "（" in text:
        text = _BRACKET_START.sub("", _EMPTY_BRACKETS.sub("", text))
    return text.strip()
