"""What pre-training is worth: the same fine-tuning from a checkpoint and from random weights of its shape.

    python benchmarks/transfer.py run CHECKPOINT --out runs/transfer [--data $LITEBERT_DATA] [--only sst-2 squad]
    python benchmarks/transfer.py report runs/transfer --page docs/results.md

Each task is learned by `litebert finetune`'s two-core recipe, for as many epochs as the table of cases says, from both
beginnings with the same examples, steps and seeds. Random weights are such as the checkpoint's own training began with.
All of it takes a model of 1.5M parameters (H 192, 4 passes) four to five processor hours, by estimate; `--scale 0.1`
takes a tenth of the examples, to try out. Killed, the same words go on; two processes with different `--only` share the
work. `report` writes a table with its figure into the page. SQuAD's dev set is split by article: the last tenth is
asked, the rest learned. (XQuAD is no test: it is in there.)
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

BEGINNINGS = {"random": "random weights", "pretrained": "pre-trained"}
FACTS_FILE = "transfer.json"
COST_FILE = "cost.json"
FIGURE = Path("images") / "transfer.png"  # beside the page


@dataclass(frozen=True)
class Case:
    """A task, where its data lies, how often it is read, and which share of its examples is used."""

    name: str
    title: str
    task: str
    data: str
    epochs: int
    share: float = 1.0


# Ordered as the papers' tables: single sentences, likeness, inference, reading.
CASES = (
    Case("sst-2", "SST-2", "sst-2", "glue", 1),
    Case("cola", "CoLA", "cola", "glue", 5),
    Case("mrpc", "MRPC", "mrpc", "glue", 3),
    Case("sts-b", "STS-B", "sts-b", "glue", 3),
    Case("qqp", "QQP (sample)", "qqp", "pairs", 2),
    Case("mnli", "MNLI (sample)", "mnli", "pairs", 2),
    Case("qnli", "QNLI (sample)", "qnli", "pairs", 2),
    Case("rte", "RTE", "rte", "glue", 3),
    Case("squad", "SQuAD 1.1 by article", "squad-v1", "squad/dev-v1.1.json", 1),
)
# Measured at the end alone: so short a run does not overfit, and nothing is chosen on dev
ALWAYS = ("train.evaluations=1",)


class Row(NamedTuple):
    """What the table says of one task; scores by beginning, in percent."""

    case: Case
    metric: str
    num_train: int
    num_dev: int
    by_chance: float
    by_luck: float  # what luck reaches: a score up to here has learned nothing that can be seen
    scores: dict[str, list[float]]

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
        if min(pretrained) > max(random):
            return "helps"
        return "harms" if max(pretrained) < min(random) else "no clear difference"


def main() -> None:
    parser = build_parser()
    arguments = parser.parse_args()
    if arguments.command is None:  # `make bench` starts every benchmark; this one wants a checkpoint
        parser.print_help()
    elif arguments.command == "run":
        run(arguments)
    else:
        write_report(arguments.out, arguments.page)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    running = commands.add_parser("run", help="fine-tune, or go on")
    running.add_argument("checkpoint", type=Path)
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--data", type=Path, default=Path(os.environ.get("LITEBERT_DATA", "data")))
    running.add_argument("--only", nargs="+", choices=[case.name for case in CASES], default=[])
    running.add_argument("--seeds", type=int, default=3)
    running.add_argument("--scale", type=float, default=1.0, help="the share of the examples that is used")
    reporting = commands.add_parser("report", help="table and figure of what is finished")
    reporting.add_argument("out", type=Path)
    reporting.add_argument("--page", type=Path, default=Path("docs/results.md"))
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Every task from both beginnings; what is finished is not made again."""
    from litebert.interop.opening import load_checkpoint
    from litebert.interop.source import FOR_TRAINING

    source = load_checkpoint(arguments.checkpoint, FOR_TRAINING)
    for case in (case for case in CASES if case.name in arguments.only or not arguments.only):
        for beginning in BEGINNINGS:
            learn(source, replace(case, share=arguments.scale), beginning, arguments)
    print(f"{sum(read_costs(arguments.out)) / 60:.1f} processor minutes in all; now: report {arguments.out}")


def learn(source: Any, case: Case, beginning: str, arguments: argparse.Namespace) -> None:
    """The runs of one task from one beginning, over all seeds, with a summary in trials.json."""
    from litebert.core.files import write_json
    from litebert.finetune_recipe import FinetuneRecipe
    from litebert.finetune_run import Job
    from litebert.finetune_trials import plan_trials, run_trials
    from litebert.tasks.catalog import read_dataset

    folder = arguments.out / case.name / beginning
    dataset = scale_dataset(read_dataset(case.task, arguments.data / case.data), case.share)
    job = Job(source, dataset, FinetuneRecipe(), beginning == "random", predicts_test=False)
    trials = plan_trials(job, "two-core", (f"train.epochs={case.epochs}", *ALWAYS), arguments.seeds)
    print(f"== {case.title}, {BEGINNINGS[beginning]}: {len(dataset.train):,} examples, {len(trials)} seeds", flush=True)
    for trial in trials:
        began = time.process_time()
        run_trials([trial], folder)
        forget_weights(folder / trial.folder)
        add_cost(folder / trial.folder, time.process_time() - began)
    summary = run_trials(trials, folder)  # all are finished: it only gathers them
    print(f"== median {summary['metric']} {summary['combinations'][0]['median']:.4f}", flush=True)
    config = asdict(source.config)
    facts = {
        "case": asdict(case),
        "checkpoint": source.path.name,
        "weights": source.fingerprint,
        "shape": {key: config[key] for key in ("hidden_size", "num_layers", "vocab_size", "sharing", "initializer")},
    }
    write_json(folder / FACTS_FILE, facts)


def scale_dataset(dataset: Any, share: float) -> Any:
    """The dataset with a share of its examples, always the same ones; MNLI's first dev split."""
    name, dev = next(iter(dataset.dev.items()))
    train, dev = (draw(rows, max(16, round(len(rows) * share))) for rows in (dataset.train, dev))
    return replace(dataset, train=train, dev={name: dev}, test={}, notes=())


def draw(rows: Sequence[Any], count: int) -> list[Any]:
    """Some of the rows in their order, always the same; questions about one paragraph come together or not at all."""
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(getattr(row, "context", number), []).append(number)
    shuffled = np.random.default_rng(0).permutation(len(groups))
    members = list(groups.values())
    chosen = [number for group in shuffled for number in members[group]]
    return [rows[number] for number in sorted(chosen[:count])]


def forget_weights(folder: Path) -> None:
    """Delete the weights of a finished run: scores are wanted, and 54 models with their optimizers are gigabytes."""
    for name in ("checkpoints", "model"):
        shutil.rmtree(folder / name, ignore_errors=True)


def add_cost(folder: Path, seconds: float) -> None:
    """Remember the processor time of a run; one that is killed forgets its own."""
    file = folder / COST_FILE
    if not file.is_file():
        file.write_text(json.dumps({"processor_seconds": round(seconds, 1)}), "utf-8")


def read_costs(out: Path) -> list[float]:
    return [json.loads(file.read_text("utf-8"))["processor_seconds"] for file in out.rglob(COST_FILE)]


def write_report(out: Path, page: Path) -> None:
    """The table and its figure, in the page between its marks, or in a new page."""
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
        folders = {beginning: out / name / beginning for beginning in BEGINNINGS}
        files = [folder / FACTS_FILE for folder in folders.values()]
        if all(file.is_file() for file in files):
            facts = [json.loads(file.read_text("utf-8")) for file in files]
            if facts[0]["case"] != facts[1]["case"]:
                raise SystemExit(f"{out / name}: its two beginnings had not the same examples; begin in a new folder")
            weights |= {one["weights"] for one in facts}
            rows.append(read_row(Case(**facts[0]["case"]), folders))
    if len(weights) > 1:
        raise SystemExit(f"{out} mixes runs of {len(weights)} checkpoints: begin in a new folder")
    return rows


def read_row(case: Case, folders: dict[str, Path]) -> Row:
    found = [{file.parent.name for file in folder.glob("seed-*/report.json")} for folder in folders.values()]
    seeds = sorted(set.intersection(*found))  # of one beginning there may be more, while it is running
    reports = {
        beginning: [json.loads((folder / seed / "report.json").read_text("utf-8")) for seed in seeds]
        for beginning, folder in folders.items()
    }
    first = reports["random"][0]
    metric, (dev,) = first["metric"], first["dev"].values()
    scores = {
        beginning: [100 * next(iter(report["dev"].values()))["scores"][metric] for report in mine]
        for beginning, mine in reports.items()
    }
    luck = dev["chance"]["score"] + dev["chance"]["margin"]
    chance = 100 * dev["chance"]["score"]
    return Row(case, metric, first["num_train_examples"], dev["num_examples"], chance, 100 * luck, scores)


def write_section(rows: Sequence[Row], out: Path) -> str:
    """The Markdown of all rows, with what must be known to read it."""
    first = next(iter(out.glob(f"*/pretrained/{FACTS_FILE}")))
    facts = json.loads(first.read_text("utf-8"))
    report = json.loads(next(first.parent.glob("seed-*/report.json")).read_text("utf-8"))
    shape = facts["shape"]
    seeds = max(len(scores) for row in rows for scores in row.scores.values())
    lines = [
        "## What pre-training is worth",
        "",
        f"The same fine-tuning from `{facts['checkpoint']}` and from random weights of its shape (H "
        f"{shape['hidden_size']}, {shape['num_layers']} passes, V {shape['vocab_size']:,}, "
        f"{report['num_parameters'] / 1e6:.1f}M parameters with a head; begun as its pre-training was: "
        f"{shape['initializer']}). Median of {seeds} seeds, lowest and highest "
        "in brackets, in percent, on dev; examples × epochs. *By chance*: what is scored without reading, and what "
        "luck reaches.",
        "",
        "| task | metric | examples | dev | by chance | random weights | pre-trained | gain | pre-training |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
        *(write_line(row) for row in rows),
        "",
        f"![Scores from both beginnings]({FIGURE.as_posix()})",
        "",
        "*Helps*: every seed beats every seed of random weights (of three and three, luck does that once in twenty). "
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
        f"{row.num_train:,} × {row.case.epochs}",
        f"{row.num_dev:,}",
        f"{row.by_chance:.1f} ({row.by_luck:.1f})",
        *(write_scores(row.scores[beginning]) for beginning in BEGINNINGS),
        f"{row.gain:+.1f}",
        row.verdict,
    ]
    return f"| {' | '.join(cells)} |"


def write_scores(scores: Sequence[float]) -> str:
    return f"{np.median(scores):.1f} ({min(scores):.1f}–{max(scores):.1f})"


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


if __name__ == "__main__":
    main()
