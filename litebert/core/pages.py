"""Markdown pages edited by programs and people: each program owns the section between its two markers."""

from pathlib import Path

from litebert.core.errors import DataError
from litebert.core.files import atomic_path


def write_part(page: Path, name: str, text: str) -> None:
    """Put `text` between the markers of section `name`; a page without them gets them at its end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text("utf-8") if page.is_file() else "# Results\n"
    if (old.count(begin), old.count(end)) not in ((0, 0), (1, 1)) or old.find(end) < old.find(begin):
        raise DataError("bad-markers", f"{page} must have one '{begin}' followed by one '{end}'; fix these markers")
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}\n{end}\n"
    before, after = old.partition(begin)[0], old.partition(end)[2]
    with atomic_path(page) as temporary:
        temporary.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", "utf-8")
