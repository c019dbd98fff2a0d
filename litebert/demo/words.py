"""The demo's result as sentences and tables for the terminal; the page shows the same sentences."""

import shutil
import sys
from pathlib import Path

from rich import box
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
        ("untrained, same architecture", evaluation.untrained),
        (f'always "{evaluation.constant_piece}" and "in order"', evaluation.constant),
        ('"." before [SEP], else "the"', evaluation.rule),
    ]


def describe_scores(evaluation: Evaluation) -> list[str]:
    """What the scores mean, one sentence per task."""
    return [_describe_masked(evaluation), _describe_pairs(evaluation)]


def _describe_masked(evaluation: Evaluation) -> str:
    trained, constant = evaluation.trained.masked, evaluation.constant.masked
    if trained.interval[0] <= constant.interval[1]:
        return (
            f"Masked-token accuracy: {format_share(trained)}, no better than always predicting the most frequent piece "
            f"({format_share(constant)}). The model has not learned anything useful yet."
        )
    rule = evaluation.rule.masked
    beyond = "not significantly better than" if trained.interval[0] <= rule.interval[1] else "better than"
    return (
        f"Masked-token accuracy: {format_share(trained)}; always predicting the most frequent piece gets "
        f"{format_share(constant)}. The model is {beyond} a simple rule ({format_share(rule)}): a full stop at the end "
        f'of a segment, "the" elsewhere.'
    )


def _describe_pairs(evaluation: Evaluation) -> str:
    score = evaluation.trained
    if score.pairs.interval[0] <= 0.5:
        return (
            f"Sentence-order accuracy: {format_share(score.pairs)}, not above chance (50 %). This is the harder task, "
            f"and a few minutes on a small corpus are not enough for it."
        )
    where = (
        f"Without document openings, which give the order away, it is {format_share(score.inner)}"
        f"{', not above chance' if score.inner.interval[0] <= 0.5 else ''}."
    )
    return f"Sentence-order accuracy: {format_share(score.pairs)}, above chance (50 %). {where}"


def describe_fillings(evaluation: Evaluation) -> str:
    """A caution if the model is not confident in its predictions; else nothing."""
    best = [guesses[0].probability for guesses in evaluation.fillings]
    if sum(best) / len(best) < _SURE:
        return "Probabilities are low: in a few minutes the model mostly learns which words are frequent."
    return ""


def format_share(share: Share) -> str:
    return f"{100 * share.value:.1f}\N{NO-BREAK SPACE}%"


def format_interval(share: Share) -> str:
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def next_commands() -> list[str]:
    """Commands that do the same with the user's own text."""
    command = find_command()
    return [
        f"{command} tokenizer train my-text/ --vocab-size 4000 --out my/tokenizer",
        f"{command} corpus build my-text/ --tokenizer my/tokenizer --out my/corpus",
        f"{command} pretrain nano data.corpora=my/corpus --out runs/mine",
        f"{command} plot runs/mine",
    ]


def find_command() -> str:
    """How to run this installation of litebert from the current folder."""
    if shutil.which("litebert"):
        return "litebert"
    script = Path(sys.executable).with_name("litebert")  # in .venv, where `make` puts it
    if not script.exists():
        return "python -m litebert"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def draw_scores(evaluation: Evaluation) -> Table:
    """The scores with their 95 % intervals, as a table."""
    title = "Accuracy on the validation split (95 % interval)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("masked tokens", justify="right")
    table.add_column("sentence order", justify="right")
    for name, score in list_scores(evaluation):
        cells = (f"{format_share(share)}  ({format_interval(share)})" for share in (score.masked, score.pairs))
        table.add_row(escape(name), *cells, style="bold" if name == "trained" else "")
    return table


def draw_fillings(evaluation: Evaluation) -> Table:
    """The masked sentences, each with its predictions."""
    table = Table(title="\nPredictions for masked words", title_justify="left", box=None, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="green")
    for gap, guesses in zip(GAPS, evaluation.fillings, strict=True):
        shown = ", ".join(f"{guess.piece} {guess.probability:.0%}" for guess in guesses)
        table.add_row(gap.replace(MASK, "____"), shown)
    return table
