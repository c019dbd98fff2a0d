"""WikiExtractor files: articles between <doc ...> and </doc>, one paragraph per line.

As in BERT, only text passages are kept: titles, headings, lists and remains of tables are left out (and counted).
"""

import html
import re
from collections.abc import Iterator

from litebert.corpus.notes import Notes

# WikiExtractor ends a heading with a full stop; a paragraph as short as this is hardly ever anything else
_HEADING_CHARACTERS = 50
_CHINESE_HEADING_CHARACTERS = 25
# Without a full stop, a line is a list item unless it is long
_ITEM_CHARACTERS = 100

_TITLE = re.compile(r' title="(.*)"[^"]*>')
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’»」』)\]）]*$")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_BREAK = re.compile(r"<(?:br|li|p|div|hr)\b[^<>]{0,200}>", re.IGNORECASE)
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|:]*)\]\]|\[\[[^\[\]]*\]\]")
_FILE = re.compile(r"(?im)^\[\[(?:File|Image|檔案|文件|图像|圖像|Category|分類|分类):.*$")
_VARIANT = re.compile(r"-\{(?:zh[-a-z]*:)?([^{};:]*)[^{}]*\}-")
# "(; born 1942)" and "（）" are remains of a pronunciation; searching for the pairs first is five times faster
_HOLLOW_PAIRS = ("()", "( ", "(,", "(;", "(:", "（")
_EMPTIED_BRACKETS = re.compile(r"[(（][ \t,;:，、；：]*[)）] ?|([(（])[ \t,;，、；]+")
_FORMULA = "formula_"  # followed by its number


def iter_articles(text: str, first_line: int, notes: Notes) -> Iterator[tuple[int, list[str]]]:
    """The line number and the paragraphs of each article; text that was cut inside one begins with the rest of it."""
    line = first_line
    for piece in text.split("</doc>"):
        before, mark, rest = piece.rpartition("<doc ")
        header, _, body = rest.partition("\n") if mark else ("", "", rest)
        if before.strip():  # an article whose </doc> is missing
            num_blank = before[: len(before) - len(before.lstrip())].count("\n")
            yield line + num_blank, list(_passages(before, None, notes))
        if mark or body.strip():
            title = _TITLE.search(header)
            yield line + before.count("\n"), list(_passages(body, html.unescape(title[1]) if title else None, notes))
        line += piece.count("\n")


def _passages(body: str, title: str | None, notes: Notes) -> Iterator[str]:
    paragraphs = list(filter(None, map(str.strip, clean_markup(body).split("\n"))))
    if paragraphs and title is not None and paragraphs[0] == clean_markup(title):
        paragraphs = paragraphs[1:]
    for paragraph in paragraphs:
        if _FORMULA in paragraph:
            notes.count("wiki_formula_paragraphs")
        elif _is_passage(paragraph):
            yield paragraph
        else:
            notes.count("wiki_headings_and_items")


def _is_passage(text: str) -> bool:
    if not _SENTENCE_END.search(text[-6:]):
        return len(text) > _ITEM_CHARACTERS
    if not text.endswith("."):
        return True
    return len(text) > (_CHINESE_HEADING_CHARACTERS if _CHINESE.search(text) else _HEADING_CHARACTERS)


def clean_markup(text: str) -> str:
    """Text without what WikiExtractor leaves behind: entities, tags, links, variants, emptied brackets."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub(" ", text))
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    if "[[" in text:
        text = _LINK.sub(r"\1", _FILE.sub("", text)).replace("[[", "").replace("]]", "")
    if "-{" in text:
        text = _VARIANT.sub(r"\1", text)
    if any(pair in text for pair in _HOLLOW_PAIRS):
        text = _EMPTIED_BRACKETS.sub(r"\1", text)
    return text
