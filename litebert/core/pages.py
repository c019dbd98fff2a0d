"""Markdown pages edited by programs and people: each program owns the section between its two markers."""

import re
import textwrap
from pathlib import Path

from litebert.core.errors import DataError
from litebert.core.files import atomic_path

_WIDTH = 118


def write_part(page: Path, name: str, text: str) -> None:
    """Put `text`, wrapped, between the markers of section `name`; a page without them gets them at its end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text("utf-8") if page.is_file() else "# Results\n"
    if (old.count(begin), old.count(end)) not in ((0, 0), (1, 1)) or old.find(end) < old.find(begin):
        raise DataError("bad-markers", f"{page} must have one '{begin}' followed by one '{end}'; fix these markers")
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}\n{end}\n"
    before, after = old.partition(begin)[0], old.partition(end)[2]
    with atomic_path(page) as temporary:
        temporary.write_text(f"{before}{begin}\n{wrap_prose(text.strip())}\n{end}{after}", "utf-8")


def wrap_prose(text: str) -> str:
    """Wrap the long lines of paragraphs and lists; tables, pictures, headings, comments and code stay."""
    lines, is_code = [], False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        if len(line) <= _WIDTH or is_code or line.startswith(("|", "!", "#", "<", "```")):
            lines.append(line)
            continue
        indent = " " * len(re.match(r"(\s*[-*] )?", line)[0])  # type: ignore[index]
        line = re.sub(r"(?<=\S) (?=([-+*#>]+|\d+[.)])( |$))", "\0", line)  # at the start of a line it would be a list
        wrapped = textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace("\0", " ") for part in wrapped]
    return "\n".join(lines)
