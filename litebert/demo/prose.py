"""Extract sentences from a docstring or documentation page, dropping code and markup.

Simple rules on blocks of lines: code, signatures, tables, grammars and headings are dropped; bullets and indented
descriptions are kept if they read as sentences. Losing a sentence is cheap; a line of code would be noise.
"""

import re
from collections.abc import Iterator

from litebert.text.sentences import split_sentences

_BULLET = re.compile(r"\s*(?:[-*+•o]|\d{1,2}[.)]|\(\d{1,2}\)|[a-z][.)])\s+(?=\S)")
_FIELD = re.compile(r"\s*(?:[:@](?:param|arg|type|raises?|returns?|rtype|keyword|var|ivar)\b[^:]*:\s*)")
_DIRECTIVE = re.compile(r"^\s*\.\. ?\S+::.*$|^\s*\.\. .*$", re.MULTILINE)
_UNDERLINE = re.compile(r"\s*([=\-~*^#\"'`+.])\1{2,}\s*")
_TABLE = re.compile(r"\s*[+|].*|.*\s\|(?:\s|$).*|\s*[-=]{2,}(?:\s+[-=]{2,})+\s*")
_LABEL = re.compile(
    r"(?:Notes?|Warning|Tip|Caution|Attention|See also|Args|Arguments|Returns?|Raises|Example|NOTE):\s+"
)

_MARKUP = (
    (re.compile(r":[\w:+.-]+:`~?\.?([^`<]*?)(?:\s*<[^`]*>)?`"), r"\1"),  # :class:`~a.B`, :pep:`text <8>`
    (re.compile(r"``(.+?)``|`([^`]+)`_{0,2}"), lambda match: match[1] or match[2]),
    (re.compile(r"(?<!\w)(\*\*?)(?=[\w\[(])([^*]+?)(?<=[\w\])])\1(?!\w)"), r"\2"),  # *name*, **strong**
    (re.compile(r'"([^"\s]{1,60})"'), r"\1"),  # the documentation quotes code: "None", "__init__()"
    (re.compile(r"\s*\[\d+\]_?"), ""),  # footnotes
    (re.compile("`"), "'"),  # old quotes: `this'
    (re.compile(r"::"), ":"),  # introduces a code block
    (re.compile(r"(?<=\w)-\s*\n\s*(?=[a-z])"), "-"),  # a word that was wrapped at its hyphen
    (re.compile(r"\s+"), " "),
)
_WORD = re.compile(r"[A-Za-z][a-z]*(?:['’-][a-z]+)*[,.;:!?)]*")
_CODE = re.compile(r"[={}<>|\\`@#$^~\[\]*]|\w\(\w|__\w|\.\.|::|--|\w/\w|[:;.]\w+[:(]|_\(|\b\w+\.\w+\.\w+|\w_\w")
_MAX_CODE_SHARE = 0.2  # code characters per word of a sentence
_MIN_WORD_SHARE = 0.7
_MIN_WORDS = 4
_MAX_WORDS = 60


def iter_sentences(text: str) -> Iterator[str]:
    """The sentences of a documentation page in order, without markup."""
    for block in _iter_blocks(_DIRECTIVE.sub("", text.expandtabs())):
        paragraph = clean_markup(_LABEL.sub("", block, count=1))
        if not _can_be_prose(paragraph):
            continue
        for sentence in split_sentences(paragraph):
            if is_sentence(sentence):
                yield sentence if sentence[-1] in ".!?:" else f"{sentence}."


def clean_markup(text: str) -> str:
    """The words of a paragraph without reST roles, emphasis, literals and footnote marks, on one line."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def is_sentence(text: str) -> bool:
    """Whether this reads as a sentence of prose, not as code, a table row or a fragment."""
    words = text.split()
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS or not (text[0].isupper() or text[0].isdigit()):
        return False
    if "://" in text:  # links are noise, and the markup rules would mangle them
        return False
    num_plain = sum(_WORD.fullmatch(word) is not None for word in words)
    num_code = len(_CODE.findall(text))
    return num_plain >= _MIN_WORD_SHARE * len(words) and num_code <= _MAX_CODE_SHARE * len(words)


def _can_be_prose(paragraph: str) -> bool:
    return bool(paragraph) and ">>>" not in paragraph and "::=" not in paragraph and not paragraph.startswith("...")


def _iter_blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and fields without indentation; headings, tables and underlines are dropped."""
    for block in re.split(r"\n[ ]*\n", text):
        lines = block.splitlines()
        if any(_TABLE.fullmatch(line) for line in lines):
            continue
        lines = _drop_headings(lines)
        item: list[str] = []
        for line in lines:
            start = _BULLET.match(line) or _FIELD.match(line)
            if start or (item and _indentation(line) < _indentation(item[-1]) - 1):
                yield "\n".join(map(str.strip, item))
                item = []
            # keep the marker's width, so that lines indented below it belong to the same item
            item.append(" " * start.end() + line[start.end() :] if start else line)
        yield "\n".join(map(str.strip, item))


def _drop_headings(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if not _UNDERLINE.fullmatch(line):
            kept.append(line)
        elif kept:
            kept.pop()
    return kept


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
