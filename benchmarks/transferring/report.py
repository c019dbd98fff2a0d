"""Report the results of `transfer.py`: a table, a figure, and how everything was trained."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from transferring.cases import BEGINNINGS, CASES, CONTROL, TIMES_LONGER, Case
from transferring.lessons import NUM_MEASUREMENTS, OUTCOME

FIGURE = Path("images") / "transfer.png"  # next to the page
MIN_SEEDS = 3  # with fewer, two initializations would too often be separated by luck


class Row(NamedTuple):
    """A task's row in the tables; scores by initialization, in percent."""

    case: Case
    metric: str
    num_train: int
    num_dev: int
    by_chance: float
    by_luck: float  # the score that luck can reach: up to here, no learning is evident
    scores: dict[str, list[float]]
    recipe: dict[str, float]  # how both initializations were trained
    control: tuple[float, ...] = ()  # scores of random weights with longer training

    @property
    def medians(self) -> dict[str, float]:
        return {beginning: float(np.median(scores)) for beginning, scores in self.scores.items()}

    @property
    def gain(self) -> float:
        return self.medians["pretrained"] - self.medians["random"]

    @property
    def verdict(self) -> str:
        """The conclusion: a difference counts if the runs of both initializations do not overlap."""
        random, pretrained = self.scores["random"], self.scores["pretrained"]
        if max(self.medians.values()) <= self.by_luck:
            return "both at chance"
        if len(random) < MIN_SEEDS:
            return "too few seeds"
        if min(pretrained) > max(random):
            return "helps"
        return "harms" if max(pretrained) < min(random) else "no clear difference"


def write_report(out: Path, page: Path) -> None:
    """Write the tables and the figure: between the page's marks, or into a new page."""
    from litebert.core.pages import write_part

    facts = read_facts(out)
    rows = read_rows(facts)
    if not rows:
        raise SystemExit(f"{out} has no task with scores from both beginnings: run it first")
    figure = page.parent / FIGURE
    draw_figure(rows, figure)
    section = write_section(rows, list(facts.values()))
    write_part(page, "transfer", section)
    print(section)
    print(f"written to {page} and {figure}")


def read_facts(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The content of a folder's files, by task and initialization; all must be from the same checkpoint."""
    files = [out / f"{case.name}-{beginning}.json" for case in CASES for beginning in case.beginnings]
    read = [json.loads(file.read_text("utf-8")) for file in files if file.is_file()]
    for key, known in (("weights", "checkpoints"), ("shape", "shapes")):
        values = {json.dumps(facts[key]) for facts in read if facts[key] is not None}
        if len(values) > 1:
            raise SystemExit(f"{out} mixes runs of {len(values)} {known}: begin in a new folder")
    return {(facts["case"]["name"], facts["beginning"]): facts for facts in read}


def read_rows(facts: dict[tuple[str, str], dict[str, Any]]) -> list[Row]:
    """The tasks with scores from both initializations, in the order of the cases."""
    rows = []
    for case in CASES:
        both = [facts[case.name, beginning] for beginning in BEGINNINGS if (case.name, beginning) in facts]
        if len(both) == len(BEGINNINGS):
            if any(both[0][key] != both[1][key] for key in ("case", "recipe", "num_train", "num_dev")):
                raise SystemExit(f"{case.name}: its beginnings were not trained alike; begin in a new folder")
            rows.append(read_row(both, facts.get((case.name, CONTROL))))
    return rows


def read_row(both: Sequence[dict[str, Any]], control: dict[str, Any] | None) -> Row:
    outcomes = {one["beginning"]: one[OUTCOME] for one in both}
    first = both[0]
    seeds = [seed for seed in first[OUTCOME]["scores"] if all(seed in one["scores"] for one in outcomes.values())]
    return Row(
        Case(**first["case"]),
        first[OUTCOME]["metric"],
        first["num_train"],
        first["num_dev"],
        100 * first[OUTCOME]["by_chance"],
        100 * first[OUTCOME]["by_luck"],
        {beginning: [100 * one["scores"][seed] for seed in seeds] for beginning, one in outcomes.items()},
        first["recipe"],
        tuple(100 * score for score in control[OUTCOME]["scores"].values()) if control else (),
    )


def write_section(rows: Sequence[Row], facts: Sequence[dict[str, Any]]) -> str:
    """The Markdown of all rows, with the notes needed to read it."""
    pretrained = next(one for one in facts if one["weights"])
    shape, minutes = pretrained["shape"], sum(one[OUTCOME]["processor_minutes"] for one in facts)
    lines = [
        "## What pre-training is worth",
        "",
        f"The same fine-tuning from `{pretrained['checkpoint']}` and from random weights of its shape (H "
        f"{shape['hidden_size']}, {shape['num_layers']} layers, V {shape['vocab_size']:,}, "
        f"{pretrained[OUTCOME]['num_parameters'] / 1e6:.1f}M parameters with a head; initializer: "
        f"{shape['initializer']}). Medians over the seeds, lowest and highest in brackets, in percent, on dev: "
        f"the best of {NUM_MEASUREMENTS} measurements of each run. *By chance*: the score without "
        "reading the text, and in brackets the highest score that luck explains.",
        "",
        "| task | metric | examples | dev | by chance | seeds | random weights | pre-trained | gain | pre-training |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
        *(write_line(row) for row in rows),
        "",
        f"![Scores of both initializations]({FIGURE.as_posix()})",
        "",
        "*Helps*: every seed beats every seed of random weights (with three seeds each, luck alone does "
        "this once in twenty).",
        "",
        *write_training(rows),
        *write_control(rows),
        f"{minutes:.0f} processor minutes in all:",
        "",
        "```sh",
        "python benchmarks/transfer.py run CHECKPOINT --out runs/transfer",
        "cp runs/transfer/*.json docs/transfer/",
        "python benchmarks/transfer.py report docs/transfer --page docs/results.md",
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
    """How both initializations were trained."""
    return [
        "Both are trained with the two-core recipe, with other numbers of epochs:",
        "",
        "| task | epochs | batch | tokens at most | learning rate | dropout |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {row.case.title} | {row.recipe['epochs']:g} | {row.recipe['batch_size']} | "
            f"{row.recipe['max_length']} | {row.recipe['learning_rate']:.1e} | {row.recipe['dropout_rate']:g} |"
            for row in rows
        ),
        "",
    ]


def write_control(rows: Sequence[Row]) -> list[str]:
    """Whether random weights lacked time; empty if no control is finished."""
    told = [row for row in rows if row.control]
    if not told:
        return []
    return [
        f"Had random weights too little time? With {TIMES_LONGER} times the epochs, at the same rate, they reach",
        "",
        *(
            f"- {row.case.title}, {TIMES_LONGER * row.case.epochs} epochs: {write_scores(row.control)}, "
            f"{np.median(row.control) - row.medians['random']:+.1f} compared with {row.case.epochs} epochs; "
            f"pre-trained, in {row.case.epochs}: {write_scores(row.scores['pretrained'])}; {compare_control(row)}."
            for row in told
        ),
        "",
    ]


def compare_control(row: Row) -> str:
    """A sentence on the gap that longer training does not close."""
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
    """For each task both medians with all seeds, and the score that luck can reach."""
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
