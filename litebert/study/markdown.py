"""Writes a report as Markdown: the section "studies" of docs/results.md or another page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litebert.core.pages import wrap_prose
from litebert.study.metrics import describe
from litebert.study.results import list_commands
from litebert.study.tables import BASELINE, SIGNS, TableCell, count_outcomes, list_facts, list_rows

if TYPE_CHECKING:
    from litebert.study.report import Section

_HEADER = """## Studies

Written by `litebert study report`; do not edit. Ours is the mean over seeds ± standard deviation; in brackets the
difference from the reference arm (bold). ○ marks scores that are not above the baseline (unigram, bag of words or
constant answer). A claim *agrees* if the direction is the paper's and the 95 % interval excludes the other side;
within the interval the result is inconclusive. Differences between arms are taken seed by seed, on the same held-out
text; intervals of single values include the choice of that text. There is no correction for multiple comparisons:
expect one false positive in twenty claims. Scores at laptop scale are far below the papers': compare differences. In
the commands, TEXT is a folder of text and DATA the folder of the tasks' files ([studies.md](studies.md)). The number
of threads per arm (`--jobs`) changes the last digits.
"""


VERDICTS = "figures/verdicts.png"


def write_markdown(sections: Sequence["Section"], *, pictures: str) -> str:
    """Write all sections; `pictures` is the relative path to the folder of the figures."""
    overview = [_write_overview(sections, pictures)] if has_overview(sections) else []
    return wrap_prose("\n".join([_HEADER, *overview, *(_write_section(section, pictures) for section in sections)]))


def has_overview(sections: Sequence["Section"]) -> bool:
    """Whether a report has several studies to summarize."""
    return len(sections) > 1 and any(verdict.margin is not None for section in sections for verdict in section.verdicts)


def _write_overview(sections: Sequence["Section"], pictures: str) -> str:
    """One table of all measured claims, what may be concluded from each study, and a picture."""
    lines = ["### All claims", "", "| study | claim | paper | ours | |", "|---|---|---|---|---|"]
    for section in sections:
        name = section.results.study.source
        for verdict in section.verdicts:
            if verdict.outcome != "missing":
                cells = (
                    name,
                    verdict.claim.text,
                    verdict.paper,
                    verdict.ours,
                    f"{SIGNS[verdict.outcome]} {verdict.words}",
                )
                lines.append(f"| {' | '.join(cells)} |")
                name = ""
    lines += ["", f"![Every measured claim: how far it holds, compared with its interval]({pictures}{VERDICTS})", ""]
    conclusions = [s.results for s in sections if s.results.conclusion]
    if conclusions:
        lines += ["What a reader may conclude, and what not:", ""]
        lines += [f"- **{results.study.source}.** {results.conclusion}" for results in conclusions]
        lines.append("")
    return "\n".join(lines)


def _write_section(section: "Section", pictures: str) -> str:
    results = section.results
    lines = [f"### {results.study.title} ({results.study.source}, {results.scale} scale)", "", results.study.about, ""]
    if section.verdicts:
        lines += [count_outcomes(section.verdicts), "", *_write_claims(section), ""]
    if results.remarks:
        lines += [results.remarks.strip(), ""]
    lines += [*_write_table(section), ""]
    for number, panels in enumerate(section.figures, start=1):
        titles = "; ".join(panel.title for panel in panels)
        lines += [f"![{titles}]({pictures}{section.picture(number)})", ""]
    lines += [f"- {note}" for note in results.notes]
    lines += [f"- {name}: {value}" for name, value in list_facts(results)]
    lines += ["", "```", *list_commands(results), "```", ""]
    return "\n".join(lines)


def _write_claims(section: "Section") -> list[str]:
    lines = ["| | claim | metric | ours | paper | |", "|---|---|---|---|---|---|"]
    for verdict in section.verdicts:
        numbers = verdict.measured_by, verdict.ours, verdict.paper
        lines.append(f"| {' | '.join([SIGNS[verdict.outcome], verdict.claim.text, *numbers, verdict.words])} |")
    return lines


def _write_table(section: "Section") -> list[str]:
    results = section.results
    titles = [describe(name).label for name in results.columns]
    lines = [f"| | | {' | '.join(titles)} |", f"|---|---|{'---|' * len(titles)}"]
    for row in list_rows(results):
        title = f"**{row.title}**" if row.is_reference else row.title
        title += f" ({row.note})" if row.note else ""
        ours, paper = ([_join(cell, is_paper=is_paper) for cell in row.cells] for is_paper in (False, True))
        if any(ours):
            lines.append(f"| {title} | {'' if row.title == BASELINE else 'ours'} | {' | '.join(ours)} |")
            title = ""
        if any(paper):
            lines.append(f"| {title} | paper | {' | '.join(paper)} |")
    return lines


def _join(cell: TableCell, *, is_paper: bool) -> str:
    if is_paper:
        return f"{cell.paper} ({cell.paper_difference})" if cell.paper_difference else cell.paper
    value = f"{cell.ours} ± {cell.spread}" if cell.spread else cell.ours
    value = f"{value} {cell.mark}" if cell.mark else value
    return f"{value} ({cell.difference})" if cell.difference else value
