"""What the runs of `transfer.py` allow to say: a table, a figure, and how everything was trained."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from transferring.cases import BEGINNINGS, CASES, CONTROL, TIMES_LONGER, Case
from transferring.lessons import FACTS_FILE, MAX_SEARCHED, read_costs

FIGURE = Path("images") / "transfer.png"  # beside the page
MIN_SEEDS = 3  # of fewer, luck would set two beginnings apart too often


class Row(NamedTuple):
    """What the tables say of one task; scores by beginning, in percent."""

    case: Case
    metric: str
    num_train: int
    num_dev: int
    by_chance: float
    by_luck: float  # what luck reaches: a score up to here has learned nothing that can be seen
    scores: dict[str, list[float]]
    rates: dict[str, float]  # the learning rate of each beginning
    recipe: dict[str, float]  # learning_rate, batch_size, epochs of the recipe itself
    control: tuple[float, ...] = ()  # scores of random weights that had more time

    @property
    def medians(self) -> dict[str, float]:
        return {beginning: float(np.median(scores)) for beginning, scores in self.scores.items()}

    @property
    def gain(self) -> float:
        return self.medians["pretrained"] - self.medians["random"]

    @property
    def verdict(self) -> str:
        """What the runs allow to say: a difference counts if the runs of both beginnings do not overlap."""
        random, pretrained = self.scores["random"], self.scores["pretrained"]
        if max(self.medians.values()) <= self.by_luck:
            return "both at chance"
        if len(random) < MIN_SEEDS:
            return "too few seeds"
        if min(pretrained) > max(random):
            return "helps"
        return "harms" if max(pretrained) < min(random) else "no clear difference"


def write_report(out: Path, page: Path) -> None:
    """The tables and the figure, in the page between its marks, or in a new page."""
    from litebert.core.pages import write_part

    rows = read_rows(out)
    if not rows:
        raise SystemExit(f"{out} has no task that is finished from both beginnings: run it first")
    figure = page.parent / FIGURE
    draw_figure(rows, figure)
    section = write_section(rows, out)
    write_part(page, "transfer", section)
    print(section)
    print(f"written to {page} and {figure}")


def read_rows(out: Path) -> list[Row]:
    """What is finished from both beginnings, in the order of the cases; the same checkpoint must have made all."""
    rows: list[Row] = []
    weights: set[str] = set()
    for name in (case.name for case in CASES):
        facts = {beginning: read_facts(out / name / beginning) for beginning in (*BEGINNINGS, CONTROL)}
        if all(facts[beginning] for beginning in BEGINNINGS):
            known = [one for one in facts.values() if one]
            if any(one["case"] != known[0]["case"] for one in known):
                raise SystemExit(f"{out / name}: its beginnings had not the same examples; begin in a new folder")
            weights |= {one["weights"] for one in known}
            rows.append(read_row(out / name, facts))
    if len(weights) > 1:
        raise SystemExit(f"{out} mixes runs of {len(weights)} checkpoints: begin in a new folder")
    return rows


def read_facts(folder: Path) -> dict[str, Any]:
    """What a finished beginning says of itself; nothing of one that is not."""
    file = folder / FACTS_FILE
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


def read_row(folder: Path, facts: dict[str, dict[str, Any]]) -> Row:
    found = [{file.parent.name for file in (folder / one).glob("seed-*/report.json")} for one in BEGINNINGS]
    seeds = sorted(set.intersection(*found))  # of one beginning there may be more, while it is running
    first = json.loads((folder / "random" / seeds[0] / "report.json").read_text("utf-8"))
    (dev,) = first["dev"].values()
    longer = [file.parent.name for file in sorted((folder / CONTROL).glob("seed-*/report.json"))]
    return Row(
        Case(**facts["random"]["case"]),
        first["metric"],
        first["num_train_examples"],
        dev["num_examples"],
        100 * dev["chance"]["score"],
        100 * (dev["chance"]["score"] + dev["chance"]["margin"]),
        {beginning: read_scores(folder / beginning, seeds) for beginning in BEGINNINGS},
        {beginning: facts[beginning]["search"]["learning_rate"] for beginning in BEGINNINGS},
        facts["random"]["recipe"],
        tuple(read_scores(folder / CONTROL, longer)) if facts[CONTROL] else (),
    )


def read_scores(folder: Path, seeds: Sequence[str]) -> list[float]:
    reports = [json.loads((folder / seed / "report.json").read_text("utf-8")) for seed in seeds]
    return [100 * next(iter(report["dev"].values()))["scores"][report["metric"]] for report in reports]


def write_section(rows: Sequence[Row], out: Path) -> str:
    """The Markdown of all rows, with what must be known to read it."""
    first = next(iter(out.glob(f"*/pretrained/{FACTS_FILE}")))
    facts = json.loads(first.read_text("utf-8"))
    report = json.loads(next(first.parent.glob("seed-*/report.json")).read_text("utf-8"))
    shape = facts["shape"]
    lines = [
        "## What pre-training is worth",
        "",
        f"The same fine-tuning from `{facts['checkpoint']}` and from random weights of its shape (H "
        f"{shape['hidden_size']}, {shape['num_layers']} passes, V {shape['vocab_size']:,}, "
        f"{report['num_parameters'] / 1e6:.1f}M parameters with a head; begun as its pre-training was: "
        f"{shape['initializer']}). Medians over the seeds, lowest and highest in brackets, in percent, on dev: "
        "the best of five measurements of each run. *By chance*: what is scored without reading, and what luck "
        "reaches.",
        "",
        "| task | metric | examples | dev | by chance | seeds | random weights | pre-trained | gain | pre-training |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
        *(write_line(row) for row in rows),
        "",
        f"![Scores from both beginnings]({FIGURE.as_posix()})",
        "",
        "*Helps*: every seed beats every seed of random weights (of three and three, luck does that once in twenty).",
        "",
        *write_training(rows),
        *write_control(rows),
        f"{sum(read_costs(out)) / 60:.0f} processor minutes in all:",
        "",
        "```sh",
        "python benchmarks/transfer.py run CHECKPOINT --out runs/transfer",
        "python benchmarks/transfer.py report runs/transfer --page docs/results.md",
        "```",
    ]
    return "\n".join(lines) + "\n"


def write_line(row: Row) -> str:
    cells = [
        row.case.title,
        row.metric.replace("_", " "),
        f"{row.num_train:,}",
        f"{row.num_dev:,}",
        f"{row.by_chance:.1f} ({row.by_luck:.1f})",
        f"{len(row.scores['random'])}",
        *(write_scores(row.scores[beginning]) for beginning in BEGINNINGS),
        f"{row.gain:+.1f}",
        row.verdict,
    ]
    return f"| {' | '.join(cells)} |"


def write_scores(scores: Sequence[float]) -> str:
    return f"{np.median(scores):.1f} ({min(scores):.1f}–{max(scores):.1f})"


def write_training(rows: Sequence[Row]) -> list[str]:
    """How the runs were trained, beside the recipe that they change."""
    return [
        "Trained by the two-core recipe but for epochs and learning rates, as below; *recipe's* are its own. Each "
        "beginning has the best of three rates, a third of the recipe's, the recipe's and three times it, by one seed "
        "on a tenth of the training examples (of SQuAD: articles) that the search does not learn from; it learns at "
        f"most {MAX_SEARCHED:,} of the others, for a third of the steps or more. Dev chooses nothing.",
        "",
        "| task | batch | epochs | recipe's | recipe's rate | random weights | pre-trained |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {row.case.title} | {row.recipe['batch_size']} | {row.case.epochs} | {row.recipe['epochs']:g} | "
            f"{row.recipe['learning_rate']:.1e} | {row.rates['random']:.1e} | {row.rates['pretrained']:.1e} |"
            for row in rows
        ),
        "",
    ]


def write_control(rows: Sequence[Row]) -> list[str]:
    """Whether random weights had too little time; nothing where no control is finished."""
    told = [row for row in rows if row.control]
    if not told:
        return []
    return [
        f"Had random weights too little time? With {TIMES_LONGER} times the epochs, at the same rate, they reach",
        "",
        *(
            f"- {row.case.title}, {TIMES_LONGER * row.case.epochs} epochs: {write_scores(row.control)}, "
            f"{np.median(row.control) - row.medians['random']:+.1f} beside {row.case.epochs} epochs; pre-trained, in "
            f"{row.case.epochs}: {write_scores(row.scores['pretrained'])}; {compare_control(row)}."
            for row in told
        ),
        "",
    ]


def compare_control(row: Row) -> str:
    """What more time does not make up for, in words."""
    pretrained = row.scores["pretrained"]
    if max(*row.medians.values(), float(np.median(row.control))) <= row.by_luck:
        return "all at chance"
    if min(len(row.control), len(pretrained)) < MIN_SEEDS:
        return "too few seeds to say more"
    if min(pretrained) > max(row.control):
        return "every pre-trained seed is still above"
    if max(pretrained) < min(row.control):
        return "time does more than pre-training"
    return "time makes up for it" if row.verdict == "helps" else "no clear difference"


def draw_figure(rows: Sequence[Row], path: Path) -> None:
    """For each task both medians with all seeds, and what luck reaches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 1.2 + 0.42 * len(rows)), layout="constrained")
    panel = figure.add_subplot()
    colors = {"random": "#999999", "pretrained": "#1f6fb4"}
    for place, row in enumerate(rows):
        panel.plot(list(row.medians.values()), [place] * 2, color="#cccccc", linewidth=3, zorder=1)
        panel.barh(
            place, row.by_luck, height=0.7, color="#f2ece0", zorder=0, label="reached by luck" if not place else None
        )
        for beginning, scores in row.scores.items():
            label = BEGINNINGS[beginning] if not place else None
            panel.plot(scores, [place] * len(scores), "|", color=colors[beginning], markersize=9, zorder=2)
            panel.plot(row.medians[beginning], place, "o", color=colors[beginning], markersize=7, zorder=3, label=label)
    panel.set_yticks(range(len(rows)), [f"{row.case.title}, {row.metric.replace('_', ' ')}" for row in rows])
    panel.invert_yaxis()
    lowest = min(0.0, *(score for row in rows for scores in row.scores.values() for score in scores))
    panel.set_xlim(lowest - 2, 100)
    panel.set_xlabel("percent, on dev; a mark for each seed")
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
