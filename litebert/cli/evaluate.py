"""`litebert evaluate`: what a checkpoint knows, as a table or as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litebert.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from litebert.intrinsic.report import IntrinsicReport, MaskedWords, SentencePairs
    from litebert.intrinsic.score import PairScores, Score


def run_evaluation(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint, or a run's folder: its last one.")],
    intrinsic: Annotated[
        Path | None,
        typer.Option(metavar="CORPUS", help="Measure hidden words and sentence pairs on this corpus's text."),
    ] = None,
    split: Annotated[str, typer.Option(help="valid or train.")] = "valid",
    pairs: Annotated[int, typer.Option(min=16, help="Pairs to test on, for each of SOP and NSP.")] = 4096,
    length: Annotated[
        int | None, typer.Option(min=8, help="Tokens of a pair; without it as in the model's training, at most 128.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Names everything that is drawn.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the JSON to this file, too.")] = None,
) -> None:
    """Measure a checkpoint on text it has not read: hidden words, sentence order, next sentences."""
    import json

    from rich.console import Console

    from litebert.core.files import write_json
    from litebert.evaluate import IntrinsicOptions, evaluate_intrinsic

    if intrinsic is None:
        raise ConfigError("say what to evaluate on: --intrinsic CORPUS")
    if out and out.is_dir():
        raise ConfigError(f"--out {out} is a folder; name a JSON file in it")
    options = IntrinsicOptions(split=split, pairs=pairs, length=length, seed=seed)  # type: ignore[arg-type]
    report = evaluate_intrinsic(checkpoint, intrinsic, options)
    if out:
        write_json(out, report.to_json())
    if as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print_report(report, Console(highlight=False))


def print_report(report: "IntrinsicReport", console: "Console") -> None:
    """Tables for a person: what was measured, each figure with its 95 % interval."""
    console.print(f"{report.checkpoint} (step {report.step:,})", style="bold", markup=False)
    console.print(f"tested on {report.tested_on} of {report.corpus}", markup=False)
    console.print(f"pairs of {report.length} tokens; probes and baselines learned from {report.learned_from}")
    if report.sop.head and report.training.sentence_task:
        console.print(f"its own head was trained on {report.training.sentence_task.upper()}")
    if report.length > report.training.length:
        console.print(f"[yellow]trained on {report.training.length} tokens: positions beyond have learned nothing[/]")
    console.print()
    if report.mlm:
        console.print(_tabulate_words(report.mlm))
    else:
        console.print("hidden words: this checkpoint has no head for them\n")
    console.print(_tabulate_pairs("Sentence order: in order, or swapped (SOP)", "bag of words", report.sop))
    console.print(_tabulate_pairs("Next sentence: next, or another document's (NSP)", "word overlap", report.nsp))
    console.print("[dim]% right, 95 % interval by document; lead: begins a document; chance: 50 %[/]")


def _tabulate_words(words: "MaskedWords") -> "Table":
    table = _table(f"Hidden words (MLM), {words.hidden.total:,}", "% right", "loss")
    table.add_row(
        "the model, all hidden by [MASK]".replace("[", r"\["), _cell(words.hidden), f"{words.hidden_loss:.3f}"
    )
    table.add_row("the model, 80/10/10 as in training", _cell(words.usual), f"{words.usual_loss:.3f}")
    table.add_row(f"always the most frequent piece, {words.frequent_piece!r}", _cell(words.frequent), "", style="dim")
    table.add_row("what most often follows the piece to the left", _cell(words.left_neighbour), "", style="dim")
    return table


def _tabulate_pairs(title: str, baseline: str, scores: "SentencePairs") -> "Table":
    totals = [f"{score.total:,}" for score in _each(scores.probe)]
    table = _table(title, f"all ({totals[0]})", f"lead ({totals[1]})", f"others ({totals[2]})")
    own = ("has none",) if scores.head is None else map(_cell, _each(scores.head))
    table.add_row("its own head", *own)
    table.add_row("linear probe", *map(_cell, _each(scores.probe)))
    table.add_row(baseline, *map(_cell, _each(scores.baseline)), style="dim")
    return table


def _table(title: str, *columns: str) -> "Table":
    from rich.table import Table

    table = Table("", title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _each(scores: "PairScores") -> "tuple[Score, Score, Score]":
    return scores.any, scores.lead, scores.inner


def _cell(score: "Score") -> str:
    return f"{score.value:6.1%}  {100 * score.low:4.1f}–{100 * score.high:4.1f}" if score.total else "no pairs"
