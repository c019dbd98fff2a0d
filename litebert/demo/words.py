"""The demo's result in words and tables for a terminal; the page says the same sentences."""

import shutil
import sys
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from litebert.demo.evaluation import GAPS, Evaluation
from litebert.demo.held_out import HeldOutScore, Share
from litebert.inference.fill_mask import MASK

_SURE = 0.2  # mean probability of the best guess


def list_scores(evaluation: Evaluation) -> list[tuple[str, HeldOutScore]]:
    """The rows of the table of scores."""
    return [
        ("trained", evaluation.trained),
        ("untrained, same shape", evaluation.untrained),
        (f'always "{evaluation.constant_piece}" and "in order"', evaluation.constant),
        ('"." before [SEP], else "the"', evaluation.rule),
    ]


def describe_scores(evaluation: Evaluation) -> list[str]:
    """What the scores mean, honestly, in a sentence for each task."""
    return [_describe_masked(evaluation), _describe_pairs(evaluation)]


def _describe_masked(evaluation: Evaluation) -> str:
    trained, constant = evaluation.trained.masked, evaluation.constant.masked
    if trained.interval[0] <= constant.interval[1]:
        return (
            f"Masked words: {format_share(trained)} right, no better than always the most frequent piece "
            f"({format_share(constant)}): it has not learned to read yet."
        )
    rule = evaluation.rule.masked
    beyond = "hardly more than" if trained.interval[0] <= rule.interval[1] else "more than"
    return (
        f"Masked words: {format_share(trained)} of the pieces guessed exactly; always the most frequent piece gets "
        f"{format_share(constant)}. That is {beyond} a rule without any reading ({format_share(rule)}): a full stop "
        f'where a segment ends, elsewhere "the".'
    )


def _describe_pairs(evaluation: Evaluation) -> str:
    score = evaluation.trained
    if score.pairs.interval[0] <= 0.5:
        return (
            f"Sentence order: {format_share(score.pairs)} is near chance (50 %). Order is the harder task, and "
            f"minutes on a small text are too short for it."
        )
    where = (
        f"Away from the beginnings of documents, which give the order away, it is {format_share(score.inner)}"
        f"{', no better than chance' if score.inner.interval[0] <= 0.5 else ''}."
    )
    return f"Sentence order: {format_share(score.pairs)}, above chance (50 %). {where}"


def describe_fillings(evaluation: Evaluation) -> str:
    """How sure the model is of its guesses."""
    best = [guesses[0].probability for guesses in evaluation.fillings]
    if sum(best) / len(best) < _SURE:
        return "It is seldom sure: minutes teach it which words are common, and here and there which one fits."
    return "The surer it is, the longer the bar."


def format_share(share: Share) -> str:
    return f"{100 * share.value:.1f}\N{NO-BREAK SPACE}%"


def format_interval(share: Share) -> str:
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def next_commands() -> list[str]:
    """What to type to do the same with other text."""
    command = find_command()
    return [
        f"{command} tokenizer train my-text/ --vocab-size 4000 --out my/tokenizer",
        f"{command} corpus build my-text/ --tokenizer my/tokenizer --out my/corpus",
        f"{command} pretrain nano data.corpora=my/corpus --out runs/mine",
        f"{command} plot runs/mine",
    ]


def find_command() -> str:
    """How this very litebert is called from the current folder."""
    if shutil.which("litebert"):
        return "litebert"
    script = Path(sys.executable).with_name("litebert")  # in .venv, where `make` puts it
    if not script.exists():
        return "python -m litebert"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def draw_scores(evaluation: Evaluation) -> Table:
    """The scores with their 95 % intervals, as a table."""
    table = Table(title="On documents it has never read (95 % interval)", title_justify="left")
    table.add_column("")
    table.add_column("masked words", justify="right")
    table.add_column("sentence order", justify="right")
    for name, score in list_scores(evaluation):
        cells = (f"{format_share(share)}  ({format_interval(share)})" for share in (score.masked, score.pairs))
        table.add_row(escape(name), *cells, style="bold" if name == "trained" else "")
    return table


def draw_fillings(evaluation: Evaluation) -> Table:
    """The gaps, each with its guesses."""
    table = Table(title="\nWhat it would write into a gap", title_justify="left", box=None, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="green")
    for gap, guesses in zip(GAPS, evaluation.fillings, strict=True):
        shown = ", ".join(f"{guess.piece} {guess.probability:.0%}" for guess in guesses)
        table.add_row(gap.replace(MASK, "____"), shown)
    return table
