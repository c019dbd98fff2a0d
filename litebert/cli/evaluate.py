"""`litebert evaluate`: evaluate a checkpoint, as a table or as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litebert import api
from litebert.cli.exit_curve import show_exit_curve
from litebert.cli.printing import build_table, open_console, print_json
from litebert.cli.scores import print_split
from litebert.cli.words import (
    RUNNING,
    AsJson,
    ChoicesField,
    Encoding,
    EngineWord,
    GroupColumn,
    HasHeader,
    LabelColumn,
    Layers,
    ModelPath,
    OnErrorWord,
    Overwrite,
    Patience,
    TextBColumn,
    TextColumn,
    Threads,
    check_new,
)
from litebert.core.errors import ConfigError
from litebert.inference.task_request import TaskRequest

if TYPE_CHECKING:
    from rich.table import Table

    from litebert.evaluation.intrinsic.report import IntrinsicReport, MaskedWords, SentencePairs
    from litebert.evaluation.intrinsic.score import PairScores, Score

CORPUS_OPTIONS = "Options for --corpus"
CorpusToMeasure = Annotated[
    Path | None,
    typer.Option(
        "--corpus", metavar="FOLDER", help="Corpus folder: measure masked tokens and sentence pairs on its text."
    ),
]
SplitName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Split. Corpus: valid (default) or train. Task folder: dev (default), train or test; MNLI: dev_matched, "
        "dev_mismatched, test_matched or test_mismatched. File: all; the file the model was fine-tuned on: dev "
        "(default, the held-out rows), train or all.",
    ),
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="File to write. --corpus: JSON report; --data: answers as JSON lines, or in SQuAD's format if the name "
        "ends in .json; --exit-curve: PNG.",
    ),
]


def run_evaluation(
    model: ModelPath,
    corpus: CorpusToMeasure = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="TASK", help="Task of --data, such as ax. Default: the task the model was fine-tuned on."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="PATH", help="Task data: the folder of the task or of GLUE, or a labelled file."
        ),
    ] = None,
    split: SplitName = "",
    pairs: Annotated[
        int,
        typer.Option(min=16, help="Number of sentence pairs for each of SOP and NSP.", rich_help_panel=CORPUS_OPTIONS),
    ] = 4096,
    length: Annotated[
        int | None,
        typer.Option(
            min=8, help="Tokens per pair. Default: as in training, at most 128.", rich_help_panel=CORPUS_OPTIONS
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed for sampling pairs.", rich_help_panel=CORPUS_OPTIONS)] = 1,
    text: TextColumn = None,
    text_b: TextBColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = "utf-8",
    header: HasHeader = None,
    group: GroupColumn = None,
    choices: ChoicesField = None,
    on_error: OnErrorWord = "fail",
    engine: EngineWord = None,
    threads: Threads = 0,
    patience: Patience = 0,
    layers: Layers = 0,
    exit_curve: Annotated[
        bool,
        typer.Option(
            "--exit-curve",
            help="With --data: measure score, layers and time at every patience and depth.",
            rich_help_panel=RUNNING,
        ),
    ] = False,
    out: OutFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on labelled task data, or on plain text.

    Examples:
      litebert evaluate runs/reviews --data reviews.csv
      litebert evaluate runs/reviews --data more-reviews.csv --out answers.jsonl
      litebert evaluate runs/nano --corpus corpora/en --pairs 200
    """
    computing: dict[str, Any] = {"engine": engine, "threads": threads, "patience": patience, "layers": layers}
    columns: dict[str, Any] = {"text": text, "text_b": text_b, "label": label, "encoding": encoding, "group": group}
    columns |= {"header": header, "choices": choices, "on_error": on_error}
    if out and out.is_dir():
        raise ConfigError("is-a-folder", f"--out {out} is a folder; name a file in it")
    if out:
        check_new(out, overwrite=overwrite)
    if bool(corpus) == bool(data) or (task and not data):
        raise ConfigError("missing-option", "name the data to evaluate on: --corpus FOLDER or --data PATH")
    if corpus:
        if exit_curve or any(computing.values()):
            raise ConfigError(
                "conflicting-options", "--engine, --threads, --patience, --layers and --exit-curve need --data"
            )
        result = api.evaluate_intrinsic(
            model,
            corpus,
            split=split or "valid",  # type: ignore[arg-type]  # checked there
            pairs=pairs,
            length=length,
            seed=seed,
            out=out,
        )
    elif exit_curve:
        if patience or layers:
            raise ConfigError(
                "conflicting-options",
                "--exit-curve measures every patience and depth: leave --patience and --layers out",
            )
        assert data is not None, "one of the two is given"
        columns["has_header"] = columns.pop("header")
        show_exit_curve(TaskRequest(model, task, data, split, columns, computing), out, as_json=as_json)
        return
    else:
        result = api.evaluate(model, data, task=task, split=split, out=out, **columns, **computing)
    if as_json:
        print_json(result.report)
    elif corpus:
        _print_intrinsic(result.details)
    elif result.report:
        print_split(
            f"{result.report['split']}, {result.report['num_examples']:,} examples",
            result.report,
            result.report["metric"],
        )
        print(f"  chance: {result.report['chance']['score']:.4f}")


def _print_intrinsic(report: "IntrinsicReport") -> None:
    """Print tables of the metrics, each with its 95 % interval."""
    console = open_console()
    console.print(f"{report.checkpoint} (step {report.step:,})", style="bold", markup=False)
    console.print(f"tested on {report.tested_on} of {report.corpus}", markup=False)
    console.print(f"pairs of {report.length} tokens; probes and baselines trained on {report.learned_from}")
    if any(pairs and pairs.head for pairs in (report.sop, report.nsp)) and report.training.sentence_task:
        console.print(f"its sentence head was trained on {report.training.sentence_task.upper()}")
    if report.length > report.training.length:
        console.print(f"[yellow]trained on {report.training.length} tokens: later positions are untrained[/]")
    console.print()
    if report.mlm:
        console.print(_tabulate_words(report.mlm))
    elif "mlm" not in report.skipped:
        console.print("masked tokens: this checkpoint has no MLM head\n")
    if report.sop:
        console.print(_tabulate_pairs("Sentence order: in order, or swapped (SOP)", "bag of words", report.sop))
    if report.nsp:
        console.print(
            _tabulate_pairs("Next sentence: next, or from another document (NSP)", "word overlap", report.nsp)
        )
    for name, reason in report.skipped.items():
        console.print(f"{name.upper()} was not measured: {reason}", markup=False)
    console.print(
        "[dim]accuracy in %, 95 % interval by document; openings: pairs at the beginning of a document; chance: 50 %[/]"
    )


def _tabulate_words(words: "MaskedWords") -> "Table":
    table = _table(f"Masked tokens (MLM), {words.hidden.total:,}", "accuracy", "loss")
    table.add_row(
        "the model, all replaced by [MASK]".replace("[", r"\["), _cell(words.hidden), f"{words.hidden_loss:.3f}"
    )
    table.add_row("the model, 80/10/10 as in training", _cell(words.usual), f"{words.usual_loss:.3f}")
    table.add_row(f"baseline: most frequent piece, {words.frequent_piece!r}", _cell(words.frequent), "", style="dim")
    table.add_row("baseline: most frequent successor of the left piece", _cell(words.left_neighbour), "", style="dim")
    return table


def _tabulate_pairs(title: str, baseline: str, scores: "SentencePairs") -> "Table":
    totals = [f"{score.total:,}" for score in _each(scores.probe)]
    table = _table(title, f"all ({totals[0]})", f"openings ({totals[1]})", f"others ({totals[2]})")
    head = ("has none",) if scores.head is None else map(_cell, _each(scores.head))
    table.add_row("trained head", *head)
    table.add_row("linear probe", *map(_cell, _each(scores.probe)))
    table.add_row(baseline, *map(_cell, _each(scores.baseline)), style="dim")
    return table


def _table(title: str, *columns: str) -> "Table":
    table = build_table(f"[bold not italic]{title}[/]", "")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _each(scores: "PairScores") -> "tuple[Score, Score, Score]":
    return scores.any, scores.lead, scores.inner


def _cell(score: "Score") -> str:
    return f"{score.value:6.1%}  {100 * score.low:4.1f}–{100 * score.high:4.1f}" if score.total else "no pairs"
