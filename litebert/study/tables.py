"""Builds a study's table for HTML, Markdown, CSV and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litebert.study.claims import Outcome, Verdict
from litebert.study.metrics import Metric, describe
from litebert.study.results import Results

SIGNS: dict[Outcome, str] = {
    "agrees": "✓",
    "leans": "~",
    "opposes": "~",
    "disagrees": "✗",
    "unlearned": "○",
    "missing": "–",
}
_UNSURE: dict[Outcome, str] = {
    "leans": "towards the paper",
    "opposes": "away from it",
    "unlearned": "because the models learned too little",
}
BASELINE = "baseline"
AT_LEVEL = "○"


@dataclass(frozen=True)
class TableCell:
    """A metric of an arm as text; empty strings for missing values."""

    ours: str = ""
    spread: str = ""  # over seeds
    difference: str = ""  # from the reference arm
    paper: str = ""
    paper_difference: str = ""
    mark: str = ""  # not above the baseline


@dataclass(frozen=True)
class TableRow:
    """The row of an arm."""

    title: str
    note: str
    is_reference: bool
    cells: Sequence[TableCell]


def list_rows(results: Results) -> list[TableRow]:
    """The rows of the table, with a cell per column; the last row is the baselines (bag of words, constant label)."""
    rows = [
        TableRow(
            results.title(arm),
            results.study.arms[arm].note,
            arm == results.study.reference,
            [_build_cell(results, arm, metric) for metric in results.columns],
        )
        for arm in results.arms
    ]
    levels = {name: results.level(name) for name in results.columns}
    baselines = [TableCell(_show(describe(name), level)) for name, level in levels.items()]
    return [*rows, TableRow(BASELINE, "", False, baselines)] if any(cell.ours for cell in baselines) else rows


def _build_cell(results: Results, arm: str, name: str) -> TableCell:
    metric, cell, paper = describe(name), results.cell(arm, name), results.published(arm, name)
    is_reference = arm == results.study.reference
    difference = None if is_reference else results.difference(arm, name)
    paper_difference = None if is_reference else results.published_difference(arm, name)
    deviation = cell.deviation if cell and not metric.is_exact else None
    return TableCell(
        metric.show(cell.mean) if cell else "",
        metric.show(deviation) if deviation is not None else "",
        metric.show(difference, is_signed=True) if difference is not None else "",
        # published scores have our number of decimals; sizes and ratios were rounded to fewer
        f"{paper:g}" if paper is not None and metric.digits > 1 else _show(metric, paper),
        metric.show(paper_difference, is_signed=True) if paper_difference is not None else "",
        AT_LEVEL if results.is_above_level(arm, name) is False else "",
    )


def _show(metric: Metric, value: float | None) -> str:
    return "" if value is None else metric.show(value)


def count_outcomes(verdicts: Sequence[Verdict]) -> str:
    """A sentence with the number of claims that agree."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in SIGNS}
    measured = len(verdicts) - counts["missing"]
    if not measured:
        return "None of the paper's claims was measured."
    is_exact = all(describe(verdict.claim.metric).is_exact for verdict in verdicts)
    parts = [f"{counts['agrees']} of {measured} claims agree{'' if is_exact else ' beyond the spread'}"]
    unsure = [f"{counts[outcome]} {words}" for outcome, words in _UNSURE.items() if counts[outcome]]
    if unsure:
        parts.append(f"{sum(counts[outcome] for outcome in _UNSURE)} inconclusive ({', '.join(unsure)})")
    if counts["disagrees"]:
        parts.append(f"{counts['disagrees']} {'disagrees' if counts['disagrees'] == 1 else 'disagree'}")
    if counts["missing"]:
        parts.append(f"{counts['missing']} more {'was' if counts['missing'] == 1 else 'were'} not measured")
    return "; ".join(parts) + "."


def list_facts(results: Results) -> list[tuple[str, str]]:
    """Facts about the runs: text, length, time, machine."""
    reports = results.reports
    facts = []
    for name in dict.fromkeys(name for report in reports for name in report["corpora"]):
        corpus = next(report["corpora"][name] for report in reports if name in report["corpora"])
        words = results.study.at(results.scale).corpora.get(name, "")
        facts.append(
            (
                f"Corpus “{name}”",
                f"{corpus['documents']:,} documents, {corpus['tokens']:,} tokens, vocabulary {corpus['vocab_size']:,}; "
                f"{_describe_building(corpus)}; "
                f"held out {corpus['held_out_documents']:,} documents, {corpus['held_out_tokens']:,} tokens"
                f"{f'. The study asks for {words}' if words else ''}",
            )
        )
    trained = [report for report in reports if report["timed"].get("hours", 0.0) >= 0.005]  # excludes untrained arms
    tokens = [report["tokens"] for report in trained]
    if tokens:
        low, high = min(tokens) / 1e6, max(tokens) / 1e6
        span = f"{low:,.1f}M" if round(low, 1) == round(high, 1) else f"{low:,.1f}M to {high:,.1f}M"
        facts.append(("Read", f"{span} tokens per arm and seed"))
        hours = [report["timed"]["hours"] for report in trained]
        clock = "processor hours" if all(report["machine"]["device"] == "cpu" for report in trained) else "hours"
        each = f"{min(hours):,.2f} to {max(hours):,.2f} each"
        facts.append(("Time", f"{sum(hours):,.1f} {clock} of training in all, {each}"))
    measuring = sum(report["timed"].get("measuring_hours", 0.0) for report in reports)
    if measuring >= 0.05:
        facts.append(
            ("Measuring" if trained else "Time", f"{measuring:,.1f} processor hours of measuring and fine-tuning")
        )
    seeds = sorted({report["seed"] for report in reports})
    facts.append(("Runs", f"{len(reports)}, with seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"))
    machines = dict.fromkeys(
        f"{m['cores']} cores ({m['processor']}), {m['threads']} thread{'s' * (m['threads'] > 1)} per arm, "
        f"{m['device']}; litebert {m['litebert']}, torch {m['torch']}"
        for m in (report["machine"] for report in reports)
    )
    facts.append(("Machine", "; ".join(machines)))
    return facts


def _describe_building(corpus: Mapping[str, Any]) -> str:
    names = corpus["file_names"]
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    files = f"{corpus['files']} file{'s' * (corpus['files'] > 1)}" + f" ({span})" * (corpus["files"] == len(names))
    first = corpus["first_sentences"]
    return f"{files}, the first {first} sentences of each document" if first else f"{files}, whole documents"


def list_values(results: Results, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """All values as plain data."""
    table, base = [], results.study.reference
    for arm in results.arms:
        for name in results.columns:
            cell, paper = results.cell(arm, name), results.published(arm, name)
            if cell or paper is not None:
                table.append(
                    {
                        "arm": arm,
                        "title": results.title(arm),
                        "metric": name,
                        "unit": describe(name).unit,
                        "mean": cell.mean if cell else None,
                        "deviation": cell.deviation if cell else None,
                        "half_width": results.half_width(name, arm) if cell else None,
                        "values": list(cell.values) if cell else [],
                        "seeds": list(cell.seeds) if cell else [],
                        "difference": results.difference(arm, name),
                        "difference_half_width": None if arm == base else results.half_width_between(name, arm, base),
                        "published": paper,
                        "published_difference": results.published_difference(arm, name),
                        "without_network": results.level(name),
                    }
                )
    return {
        "study": results.study.name,
        "title": results.study.title,
        "source": results.study.source,
        "scale": results.scale,
        "reference": base,
        "table": table,
        "claims": [
            {"text": v.claim.text, "metric": v.claim.metric, "ours": v.ours, "paper": v.paper, "outcome": v.outcome}
            for v in verdicts
        ],
    }
