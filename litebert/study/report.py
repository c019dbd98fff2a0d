"""Writes the report of studies as a page, Markdown, CSV, JSON and figures."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path, write_json
from litebert.core.pages import write_part
from litebert.study.claims import Verdict, judge_all
from litebert.study.figures import draw_svg, draw_verdicts, write_figure, write_png
from litebert.study.markdown import VERDICTS, has_overview, write_markdown
from litebert.study.metrics import describe
from litebert.study.panels import Panel, list_panels
from litebert.study.results import Results, list_commands, read_results
from litebert.study.spec import reading_order
from litebert.study.tables import SIGNS, count_outcomes, list_facts, list_rows, list_values

_TEMPLATE = "page.html.j2"
PAGE, MARKDOWN, CSV, JSON, FIGURES = "index.html", "results.md", "results.csv", "results.json", "figures"


@dataclass(frozen=True)
class Section:
    """A study with its verdicts and the panels of its figures."""

    results: Results
    verdicts: Sequence[Verdict]
    figures: Sequence[Sequence[Panel]]

    @property
    def name(self) -> str:
        return f"{self.results.study.name}-{self.results.scale}"

    def picture(self, number: int) -> str:
        """The path of a figure relative to the report's folder."""
        return f"{FIGURES}/{self.name}-{number}.png"


def write_report(folders: Sequence[Path], out: Path, markdown: Path | None = None) -> list[Section]:
    """Write the report of the studies in some folders to `out`, its Markdown to `markdown` if given."""
    sections = gather_sections(folders)
    for section in sections:
        for number, panels in enumerate(section.figures, start=1):
            write_png(panels, out / section.picture(number))
    if has_overview(sections):
        write_figure(draw_verdicts([(s.results.study.source, s.verdicts) for s in sections]), out / VERDICTS)
    _write_text(out / PAGE, build_page(sections))
    target = markdown or out / MARKDOWN
    write_part(target, "studies", write_markdown(sections, pictures=_path_between(target.parent, out)))
    _write_csv(out / CSV, sections)
    write_json(out / JSON, [list_values(section.results, section.verdicts) for section in sections])
    return sections


def gather_sections(folders: Sequence[Path]) -> list[Section]:
    """The studies of some folders in reading order, without duplicates."""
    sections = [build_section(results) for folder in folders for results in read_results(folder)]
    names = [section.name for section in sections]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            "repeated-value", f"{', '.join(twice)} is in two of the folders: a report has each study once"
        )
    return sorted(sections, key=lambda section: reading_order(section.name))


def build_section(results: Results) -> Section:
    figures = [panels for figure in results.study.figures if (panels := list_panels(figure, results))]
    return Section(results, judge_all(results), figures)


def build_page(sections: Sequence[Section]) -> str:
    """One self-contained HTML page."""
    try:
        import jinja2
    except ImportError as error:
        raise ConfigError("missing-package", "the report needs jinja2: pip install 'litebert[plots]'") from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((files("litebert.study") / _TEMPLATE).read_text("utf-8"))
    return template.render(sections=[_describe_section(section) for section in sections], signs=SIGNS)


def _describe_section(section: Section) -> dict[str, Any]:
    results = section.results
    return {
        "id": section.name,
        "study": results.study,
        "scale": results.scale,
        "summary": count_outcomes(section.verdicts),
        "verdicts": section.verdicts,
        "columns": [describe(name).label for name in results.columns],
        "rows": list_rows(results),
        "reference": results.title(results.study.reference),
        "figures": [[(panel.title, draw_svg(panel)) for panel in panels] for panels in section.figures],
        "facts": list_facts(results),
        "notes": results.notes,
        "commands": list_commands(results),
        "remarks": [part for part in results.remarks.split("\n\n") if part.strip()],
    }


def _path_between(start: Path, end: Path) -> str:
    """The relative path from one folder to another, for links."""
    relative = Path(os.path.relpath(end.resolve(), start.resolve())).as_posix()
    return "" if relative == "." else f"{relative}/"


def _write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, "utf-8")


def _write_csv(path: Path, sections: Sequence[Section]) -> None:
    """Write one line per study, arm and metric."""
    rows = [
        {"study": values["study"], "scale": values["scale"], **{key: _flatten(value) for key, value in row.items()}}
        for section in sections
        for values in [list_values(section.results, section.verdicts)]
        for row in values["table"]
    ]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["study"])
        writer.writeheader()
        writer.writerows(rows)


def _flatten(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value
