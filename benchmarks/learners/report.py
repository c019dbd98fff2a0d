"""What the contenders have learned, by one held-out measure: table, Markdown, JSON, curves over processor time."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from learners.budget import read_record
from rich.console import Console
from rich.table import Table

from litebert.checkpoint import list_checkpoints, load_checkpoint
from litebert.core.files import write_json
from litebert.core.pages import write_part
from litebert.evaluate import IntrinsicOptions, evaluate_intrinsic
from litebert.intrinsic.batches import build_typesetter
from litebert.intrinsic.pairs import draw_order_pairs, draw_plain_pairs
from litebert.intrinsic.passages import open_passages
from litebert.intrinsic.reading import guess_words, read_pairs
from litebert.intrinsic.shallow import count_pieces
from litebert.plots.curves import Curve, build_figure
from litebert.text.tokenizer import load_tokenizer
from litebert.train.keeping import CHECKPOINTS

MEASURES = "measured"
FIGURE = Path("images") / "learning.png"  # beside the page
CURVE_SHARE = 4  # points of a curve are measured on a quarter of the pairs, the end on all
COLUMNS = ("hidden words", "loss", "order, all", "order, leads", "order, others")


@dataclass(frozen=True)
class Outcome:
    """A contender's run: how it was made, and what its last checkpoint knows."""

    folder: Path
    record: dict[str, Any]
    step: int
    tokens: int
    cpu_minutes: float  # used for training
    measured: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        used = {"cpu_minutes_used": self.cpu_minutes, "wall_minutes": self.wall_minutes, "mean_load": self.mean_load}
        return {**self.record, "steps": self.step, "tokens": self.tokens, **used, "measured": self.measured}

    @property
    def is_finished(self) -> bool:
        return self.cpu_minutes >= self.record["cpu_minutes"]

    @property
    def wall_minutes(self) -> float:
        """All its sittings, with measuring, saving, and what was lost by kills."""
        return sum(sitting["wall_minutes"] for sitting in self.record["sittings"])

    @property
    def mean_load(self) -> float:
        total = sum(sitting["wall_minutes"] * sitting["mean_load"] for sitting in self.record["sittings"])
        return total / max(self.wall_minutes, 1e-9)


class Measuring(NamedTuple):
    """How much is asked of every contender, in pairs of so many tokens."""

    length: int
    pairs: int


def report(out: Path, corpus: Path, measuring: Measuring, page: Path | None) -> None:
    """Measure what has not been measured yet; write results.json and curves.png into `out`, and a part of `page`."""
    length, pairs = measuring
    folders = [folder for folder in sorted(out.iterdir()) if list_checkpoints(folder / CHECKPOINTS)]
    if not folders:
        raise SystemExit(f"{out}: no contender has a checkpoint yet")
    outcomes = [read_outcome(folder, corpus, IntrinsicOptions(length=length, pairs=pairs)) for folder in folders]
    held_out = HeldOut(corpus, length=length, pairs=pairs // CURVE_SHARE)
    curves = {folder.name: read_curve(folder, held_out) for folder in folders}
    rows = [describe(outcome) for outcome in outcomes]
    lines = [*summarize(outcomes), *baselines(outcomes[0])]
    print_table(rows, lines, measuring)
    facts = {"corpus": corpus.name, "length": length, "pairs": pairs}
    write_json(out / "results.json", {**facts, "runs": [outcome.to_json() for outcome in outcomes], "curves": curves})
    draw(curves, out / "curves.png")
    print(f"{out}/results.json, curves.png")
    if page:
        draw(curves, page.parent / FIGURE)
        write_part(page, "learning", write_section(rows, lines, measuring, list_commands(outcomes)))
        print(f"written to {page} and {page.parent / FIGURE}")


def read_outcome(folder: Path, corpus: Path, options: IntrinsicOptions) -> Outcome:
    """The end of a run, or how far it has come."""
    record = read_record(folder)
    if record is None:
        raise SystemExit(
            f"{folder} has checkpoints, and nothing says how they were made (contender.json): move it away"
        )
    last = list_checkpoints(folder / CHECKPOINTS)[-1]
    checkpoint = load_checkpoint(last)
    cpu_minutes = float(checkpoint.state["seconds"]) * record["machine"]["processes"] / 60
    measured = measure(folder, last, corpus, options)
    return Outcome(folder, record, checkpoint.step, int(checkpoint.state["tokens"]), cpu_minutes, measured)


def read_curve(folder: Path, held_out: "HeldOut") -> list[dict[str, float]]:
    """What each checkpoint of a run knows, over the processor minutes that it took; from disk if measured before."""
    record, points = read_record(folder), []
    assert record is not None, folder
    for path in list_checkpoints(folder / CHECKPOINTS):
        file = folder / MEASURES / f"{path.name}-{held_out.name}.json"
        if not file.exists():
            write_json(file, held_out.measure(path))
        minutes = float(load_checkpoint(path).state["seconds"]) * record["machine"]["processes"] / 60
        points.append({"cpu_minutes": minutes, **json.loads(file.read_text("utf-8"))})
    return points


class HeldOut:
    """The words and pairs on which every point of every curve is measured: fewer than at the end, and no probes."""

    def __init__(self, corpus: Path, *, length: int, pairs: int) -> None:
        self.name = f"{corpus.name}-{length}-{pairs}-point"
        tokenizer = load_tokenizer(corpus / "tokenizer")
        learned, tested = open_passages(corpus, "valid", enough_tokens=2 * pairs * length, seed=1)
        self.typesetter = build_typesetter(tested, tokenizer, length=length, seed=1)
        self.order = draw_order_pairs(tested, count=pairs, length=length, seed=1)
        self.words = draw_plain_pairs(tested, count=max(1, pairs // CURVE_SHARE), length=length, seed=1)
        typesetter = build_typesetter(learned, tokenizer, length=length, seed=1)
        read_before = draw_plain_pairs(learned, count=pairs, length=length, seed=1)
        self.frequent = count_pieces(typesetter, read_before, tokenizer.vocab_size)

    def measure(self, checkpoint: Path) -> dict[str, float]:
        """A point of each curve."""
        model = load_checkpoint(checkpoint).load_model().eval()
        words = guess_words(model, self.typesetter, self.words, self.frequent, lambda _: None)
        answers = read_pairs(model, self.typesetter, self.order, lambda _: None).answers
        assert answers is not None, checkpoint
        is_right = answers == self.order.labels
        return {
            "hidden words, share guessed": float(words.by_model.mean()),
            "hidden words, loss": float(words.losses.mean()),
            "sentence order, share right": float(is_right.mean()),
            "sentence order, away from beginnings": float(is_right[~self.order.is_lead].mean()),
        }


def measure(folder: Path, checkpoint: Path, corpus: Path, options: IntrinsicOptions) -> dict[str, Any]:
    """A checkpoint's intrinsic evaluation, from disk if it was made before."""
    file = folder / MEASURES / f"{checkpoint.name}-{corpus.name}-{options.length}-{options.pairs}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_json(file, evaluate_intrinsic(checkpoint, corpus, options).to_json())
    measured: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return measured


def describe(outcome: Outcome) -> list[str]:
    """A row of the table."""
    words, order = outcome.measured["mlm"], outcome.measured["sop"]["head"]
    minutes = f"{outcome.cpu_minutes:.1f}" if outcome.is_finished else f"{outcome.cpu_minutes:.1f}, not finished"
    return [
        outcome.folder.name,
        minutes,
        f"{outcome.wall_minutes:.0f}",
        f"{outcome.mean_load:.1f}",
        f"{outcome.step:,}",
        f"{outcome.tokens / 1e6:.1f}M",
        percent(words["hidden"]),
        f"{words['hidden_loss']:.3f}",
        *(percent(order[part]) for part in ("any", "lead", "inner")),
    ]


def summarize(outcomes: list[Outcome]) -> list[list[str]]:
    """The mean over the seeds of each contender that finished several runs of one budget in one setting."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.is_finished:
            record = outcome.record
            key = json.dumps([record["who"], record["cpu_minutes"], record["setting"]])
            groups.setdefault(key, []).append(outcome)
    lines = []
    for group in groups.values():
        if len(group) > 1:
            record = group[0].record
            name = f"{record['who']}, {record['cpu_minutes']:g} CPU minutes: mean of {len(group)} seeds"
            words = [outcome.measured["mlm"] for outcome in group]
            order = [outcome.measured["sop"]["head"] for outcome in group]
            cells = [f"{mean(w['hidden']['value'] for w in words):.1%}", f"{mean(w['hidden_loss'] for w in words):.3f}"]
            cells += [f"{mean(o[part]['value'] for o in order):.1%}" for part in ("any", "lead", "inner")]
            lines.append([name, *cells])
    return lines


def baselines(outcome: Outcome) -> list[list[str]]:
    """What needs no network, on the same words and pairs."""
    words, order = outcome.measured["mlm"], outcome.measured["sop"]["baseline"]
    return [
        [f"always '{words['frequent_piece']}'", percent(words["frequent"]), "", "", "", ""],
        ["what most often follows the piece to the left", percent(words["left_neighbour"]), "", "", "", ""],
        ["bags of words", "", "", *(percent(order[part]) for part in ("any", "lead", "inner"))],
    ]


def percent(score: dict[str, Any]) -> str:
    return (
        f"{score['value']:.1%} ({100 * score['low']:.1f}-{100 * score['high']:.1f})" if score["total"] else "no pairs"
    )


_HOW = ("", "CPU min", "min", "load", "steps", "tokens")


def print_table(rows: list[list[str]], lines: list[list[str]], measuring: Measuring) -> None:
    console = Console(width=190)
    title = f"Held-out text, {measuring.pairs:,} pairs of {measuring.length} tokens"
    table = Table(title=title, title_justify="left")
    for column in (*_HOW, *COLUMNS):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        table.add_row(*row)
    table.add_section()
    for name, *cells in lines:
        table.add_row(name, *[""] * (len(_HOW) - 1), *cells, style="dim")
    console.print(table)
    console.print("% right with the 95 % interval by document; every hidden word stands as [MASK]", markup=False)


def write_section(rows: list[list[str]], lines: list[list[str]], measuring: Measuring, commands: list[str]) -> str:
    """The Markdown of all rows, with what must be known to read it."""
    header = [*_HOW, *COLUMNS]
    padded = [[name, *[""] * (len(_HOW) - 1), *cells] for name, *cells in lines]
    table = [header, ["---", *["---:"] * (len(header) - 1)], *rows, *padded]
    return "\n".join(
        [
            "## Is learning real?",
            "",
            "The recipe `cpu-small` and a plain training script with `transformers`' ALBERT of the same shape, on the "
            f"same text and processor time. Held-out text, {measuring.pairs:,} pairs of {measuring.length} tokens; "
            "percent right with the 95 % interval by document; every hidden word stands as [MASK]. *Leads* are pairs "
            "that begin a document.",
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "",
            f"![What each knew after so many processor minutes]({FIGURE.as_posix()})",
            "",
            "```sh",
            *commands,
            "```",
        ]
    )


def list_commands(outcomes: list[Outcome]) -> list[str]:
    """The words that made each run, without the places of one machine."""
    commands = []
    for outcome in outcomes:
        record = outcome.record
        who = "ours" if record["who"] == "litebert" else "transformers"
        common = f"{who} --corpus CORPUS --out OUT --seed {record['seed']} --cpu-minutes {record['cpu_minutes']:g}"
        commands.append(f"python benchmarks/learning.py {common} {list_words(record['setting'])}".rstrip())
    return [*commands, "python benchmarks/learning.py report --corpus CORPUS --out OUT --page docs/results.md"]


def list_words(setting: dict[str, Any]) -> str:
    if "changes" in setting:
        return " ".join(["--", *setting["changes"]] if setting["changes"] else [])
    words = (
        f"--learning-rate {setting['learning_rate']} --std {setting['initializer_range']} --batch {setting['batch']}"
    )
    return f"{words} --length {setting['length']}{' --compile' if setting['is_compiled'] else ''}"


def draw(curves: dict[str, list[dict[str, float]]], file: Path) -> None:
    """A panel for each measure, a line for each contender."""
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
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
