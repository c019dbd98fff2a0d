"""Report the results of all contenders from the files of `measure`: table, Markdown, curves over processor time."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from litebert.core.pages import write_part
from litebert.plots.curves import Curve, build_figure

FIGURE = Path("images") / "learning.png"  # next to the page
HOW = ("", "CPU min", "min", "load", "steps", "tokens")
WORDS = ("n-grams, all [MASK]", "n-grams, 80/10/10", "tokens, all [MASK]", "tokens, 80/10/10")
COLUMNS = (*WORDS, "SOP, all", "SOP, openings", "SOP, others")
PARTS = ("any", "lead", "inner")


@dataclass(frozen=True)
class Outcome:
    """A finished run: its settings and its final evaluation."""

    facts: dict[str, Any]

    @property
    def contender(self) -> str:
        """The settings shared by runs that differ only in seed and budget."""
        who, setting = self.facts["who"], self.facts["setting"]
        if who == "litebert":
            return " ".join([who, *setting["changes"]])
        rate, std = setting["learning_rate"], setting["initializer_range"]
        compiled = ", compiled" if setting["is_compiled"] else ""
        return f"{who}{compiled} (lr {rate:g}, std {std:g}, batch {setting['batch']})"

    @property
    def group(self) -> str:
        return f"{self.contender}, {self.facts['cpu_minutes']:g} CPU minutes"

    @property
    def name(self) -> str:
        return f"{self.group}, seed {self.facts['seed']}"

    @property
    def asked(self) -> str:
        return f"{self.facts['pairs']:,} pairs of {self.facts['length']} tokens"

    @property
    def scores(self) -> list[dict[str, Any]]:
        """The scores for the table's columns."""
        ngrams, pieces = self.facts["measured"]["mlm"], self.facts["single_pieces"]
        order = self.facts["measured"]["sop"]["head"]
        words = [asked[how] for asked in (ngrams, pieces) for how in ("hidden", "usual")]
        return words + [order[part] for part in PARTS]

    @property
    def wall_minutes(self) -> float:
        """The total of all its sessions, including measuring, saving, and time lost when it was killed."""
        return float(sum(sitting["wall_minutes"] for sitting in self.facts["sittings"]))

    @property
    def mean_load(self) -> float:
        total = sum(sitting["wall_minutes"] * sitting["mean_load"] for sitting in self.facts["sittings"])
        return float(total / max(self.wall_minutes, 1e-9))


def report(kept: Path, page: Path | None) -> None:
    """Print the table of all runs in `kept`; with a page, write its section and the figure next to it."""
    outcomes = [Outcome(json.loads(file.read_text("utf-8"))) for file in sorted(kept.glob("*.json"))]
    if not outcomes:
        raise SystemExit(f"{kept}: no run was measured yet; measure first")
    if len({outcome.asked for outcome in outcomes}) > 1:
        raise SystemExit(f"{kept}: its runs were not asked the same; measure them again")
    outcomes.sort(key=lambda outcome: (-outcome.facts["cpu_minutes"], outcome.contender, outcome.facts["seed"]))
    rows = [describe(outcome) for outcome in outcomes]
    lines = [*summarize(outcomes), *baselines(outcomes[0])]
    print_table(rows, lines, outcomes[0].asked)
    if page:
        draw(outcomes, page.parent / FIGURE)
        write_part(page, "learning", write_section(rows, lines, outcomes))
        print(f"written to {page} and {page.parent / FIGURE}")


def describe(outcome: Outcome) -> list[str]:
    """One row of the table."""
    return [
        outcome.name,
        f"{outcome.facts['cpu_minutes_used']:.1f}",
        f"{outcome.wall_minutes:.0f}",
        f"{outcome.mean_load:.1f}",
        f"{outcome.facts['steps']:,}",
        f"{outcome.facts['tokens'] / 1e6:.1f}M",
        *map(percent, outcome.scores),
    ]


def summarize(outcomes: list[Outcome]) -> list[list[str]]:
    """The mean over seeds, for each contender with several finished runs of the same budget."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, []).append(outcome)
    lines = []
    for name, group in groups.items():
        if len(group) > 1:
            means = [
                mean(score["value"] for score in column) for column in zip(*(o.scores for o in group), strict=True)
            ]
            cells = [f"{share:.1%}" for share in means]
            lines.append([f"{name}: mean of {len(group)} seeds", *cells])
    return lines


def baselines(outcome: Outcome) -> list[list[str]]:
    """Baselines on the same tokens and pairs."""
    words, order = outcome.facts["measured"]["mlm"], outcome.facts["measured"]["sop"]["baseline"]
    others = [""] * (len(COLUMNS) - 1)
    return [
        [f"always '{words['frequent_piece']}'", percent(words["frequent"]), *others],
        ["bigram: most frequent successor of the token to the left", percent(words["left_neighbour"]), *others],
        ["bag of words", *[""] * len(WORDS), *(percent(order[part]) for part in PARTS)],
    ]


def percent(score: dict[str, Any]) -> str:
    return (
        f"{score['value']:.1%} ({100 * score['low']:.1f}-{100 * score['high']:.1f})" if score["total"] else "no pairs"
    )


def print_table(rows: list[list[str]], lines: list[list[str]], asked: str) -> None:
    console = Console(width=220)
    table = Table(title=f"Held-out text, {asked}", title_justify="left")
    for column in (*HOW, *COLUMNS):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        table.add_row(*row)
    table.add_section()
    for name, *cells in lines:
        table.add_row(name, *[""] * (len(HOW) - 1), *cells, style="dim")
    console.print(table)
    console.print(
        "% right with the 95 % interval by document; 80/10/10: a tenth stays, another is replaced", markup=False
    )


def write_section(rows: list[list[str]], lines: list[list[str]], outcomes: list[Outcome]) -> str:
    """The Markdown of all rows, with the notes needed to read it."""
    header = [*HOW, *COLUMNS]
    padded = [[name, *[""] * (len(HOW) - 1), *cells] for name, *cells in lines]
    table = [header, ["---", *["---:"] * (len(header) - 1)], *rows, *padded]
    return "\n".join(
        [
            "## What an hour of training teaches",
            "",
            "The recipe `cpu-small`, here with sentence order (`segments.task=sop init.new_positions=drawn`), compared "
            "with a plain training script and `transformers`' ALBERT of the same shape, on the same text with the same "
            f"processor time. Accuracy on held-out text ({outcomes[0].asked}) with the 95 % interval by document. 15 % "
            "of the tokens are predicted: n-grams of whole words as in ALBERT, or single tokens as `transformers`' "
            "collator chooses them. All are replaced by [MASK], or a tenth is kept and a tenth replaced by random "
            "tokens (*80/10/10*), so that some can be copied. *Openings* are pairs at the beginning of a document. 120 "
            f"CPU minutes are an hour of two cores ({', '.join(name_processors(outcomes))}); *min* is wall time, "
            "*load* the machine's mean load.",
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "",
            f"![Accuracy over processor minutes]({FIGURE.as_posix()})",
            "",
            "```sh",
            *(write_command(outcome) for outcome in outcomes),
            "python benchmarks/learning.py measure --corpus CORPUS --out OUT --into docs/learning",
            "python benchmarks/learning.py report docs/learning --page docs/results.md",
            "```",
        ]
    )


def name_processors(outcomes: list[Outcome]) -> list[str]:
    return sorted({sitting["processor"] for outcome in outcomes for sitting in outcome.facts["sittings"]})


def write_command(outcome: Outcome) -> str:
    """The command that made a run, without machine-specific paths."""
    facts = outcome.facts
    who = "ours" if facts["who"] == "litebert" else "transformers"
    common = f"{who} --corpus CORPUS --out OUT --seed {facts['seed']} --cpu-minutes {facts['cpu_minutes']:g}"
    return f"python benchmarks/learning.py {common} {write_setting(facts['setting'])}".rstrip()


def write_setting(setting: dict[str, Any]) -> str:
    if "changes" in setting:
        return " ".join(["--", *setting["changes"]] if setting["changes"] else [])
    words = (
        f"--learning-rate {setting['learning_rate']} --std {setting['initializer_range']} --batch {setting['batch']}"
    )
    return f"{words} --length {setting['length']}{' --compile' if setting['is_compiled'] else ''}"


def draw(outcomes: list[Outcome], file: Path) -> None:
    """One panel per measure, one line per run."""
    curves = {outcome.name: outcome.facts["curve"] for outcome in outcomes}
    metrics = [name for name in next(iter(curves.values()))[0] if name != "cpu_minutes"]
    runs = {
        name: {
            metric: Curve(np.array([p["cpu_minutes"] for p in points]), np.array([p[metric] for p in points]))
            for metric in metrics
        }
        for name, points in curves.items()
    }
    figure = build_figure(runs, metrics)
    for panel in figure.axes:
        panel.set_xlabel("CPU minutes")
        if panel.get_title().startswith("sentence order"):
            panel.set_ylim(0.4, 0.7)  # so that noise around 0.5 does not look like a trend
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
