"""`litebert corpus show` and `litebert recipes batches`: real examples, and statistics of batches."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from litebert.cli.printing import build_table, open_console
from litebert.cli.words import AsJson, CorpusPath, Overrides, RecipeName

if TYPE_CHECKING:
    from rich.text import Text

    from litebert.batches.inspection import Example, MaskedGroup, StreamStatistics
    from litebert.batches.options import SegmentOptions, StreamOptions
    from litebert.pretraining.recipe import Recipe
    from litebert.text.tokenizer import Tokenizer

_SEGMENT_STYLES = ("cyan", "green")
_ACTION_STYLES = {"masked": "bold reverse", "random": "bold white on red", "kept": "bold underline"}
_LABELS: dict[str, tuple[str, ...]] = {
    "none": (),
    "sop": ("in order", "swapped"),
    "nsp": ("next", "from another document"),
    "three-way": ("in order", "swapped", "from another document"),
}


def show_examples(
    corpus: CorpusPath,
    overrides: Overrides = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1000, help="Number of examples to show.")] = 5,
    split: Annotated[Literal["train", "valid"], typer.Option(help="Split to read.")] = "train",
    step: Annotated[int, typer.Option(min=0, help="Training step whose batch to show.")] = 0,
) -> None:
    """Print real training examples, with their segments, masks, n-grams and labels.

    Examples:
      litebert corpus show corpora/en -n 2
      litebert corpus show corpora/en segments.task=nsp masking.max_ngram=1
    """
    from litebert.batches.inspection import read_examples
    from litebert.batches.options import DataOptions
    from litebert.batches.stream import open_stream
    from litebert.text.tokenizer import load_tokenizer

    options = _stream_options(count, overrides or [])
    stream, corpora = open_stream(DataOptions(corpora=(str(corpus),)), options, split=split)
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    console = open_console()
    for number, example in enumerate(read_examples(stream.rows(step), limit=count), start=1):
        console.print(_describe(number, example, options))
        console.print(_paint(example, tokenizer))
        console.print(_explain(example, tokenizer))
    console.print(_legend())


def show_batches(
    recipe: RecipeName,
    overrides: Overrides = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of batches to make.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Make the first batches of a recipe, and count their labels, masks and padding.

    Examples:
      litebert recipes batches nano data.corpora=corpora/en -n 5
    """
    from litebert.batches.inspection import measure_batches
    from litebert.batches.stream import open_stream
    from litebert.pretraining.recipe import load_recipe

    resolved = load_recipe(recipe, overrides or [])
    stream, _ = open_stream(resolved.data, resolved.stream)
    statistics = measure_batches(stream, count)
    if as_json:
        print(json.dumps({"steps_per_epoch": stream.steps_per_epoch, **asdict(statistics)}, indent=2))
        return
    table = build_table(f"{count} batches of {recipe}", "", "")
    table.show_header = False
    table.columns[1].justify = "right"
    for name, value in _statistics_rows(statistics, resolved, stream.steps_per_epoch):
        table.add_row(name, value)
    open_console().print(table)


def _stream_options(count: int, overrides: Sequence[str]) -> "StreamOptions":
    from litebert.batches.google import expand_compat
    from litebert.batches.options import StreamOptions
    from litebert.core.options import build_options, merge, parse_assignments

    batch = {"sequences": count, "bucket": 1}  # of all lengths
    defaults = {"segments": {"max_length": 128}, "masking": {}, "batch": batch, "seed": 1}
    values = expand_compat(merge(defaults, parse_assignments(overrides)))
    if not values.get("data"):
        values.pop("data", None)
    return build_options(StreamOptions, values)


def _label_names(segments: "SegmentOptions") -> tuple[str, ...]:
    if segments.task == "sop" and segments.single_sentence == "random_doc":
        return ("in order", "swapped, or from another document")
    return _LABELS[segments.task]


def _describe(number: int, example: "Example", options: "StreamOptions") -> "Text":
    from rich.text import Text

    num_masked = sum(len(group.positions) for group in example.groups)
    names = _label_names(options.segments)
    facts = [
        f"{options.segments.format}",
        f"label {example.label}: {names[example.label]}" if names else "no sentence task",
        f"{len(example.token_ids)} tokens, {num_masked} to predict in {len(example.groups)} groups",
        *(["opens a document"] if example.opens_document else []),
    ]
    return Text(f"Example {number}  ", style="bold").append(" · ".join(facts), style="yellow")


def _paint(example: "Example", tokenizer: "Tokenizer") -> "Text":
    """The sequence as text, coloured by segment; chosen words in brackets, with their replacements."""
    from rich.text import Text

    text = Text()
    spoken = _speak(tokenizer, example.original_ids)
    seen = _speak(tokenizer, example.token_ids)
    chosen = {position: (k, group) for k, group in enumerate(example.groups) for position in group.positions}
    for position, (word, segment) in enumerate(zip(spoken, example.segment_ids, strict=True)):
        style = _SEGMENT_STYLES[segment]
        if example.original_ids[position] in (tokenizer.cls_id, tokenizer.sep_id):
            text.append(f"{word} " if position == 0 else f" {word} ", style="bold magenta")
            continue
        if position not in chosen:
            text.append(word, style=style)
            continue
        number, group = chosen[position]
        action = group.actions[group.positions.index(position)]
        begins, ends = position == group.positions[0], position == group.positions[-1]
        gap = word[: len(word) - len(word.lstrip())]
        text.append(gap, style=style)
        text.append("[" if begins else "", style="dim")
        shown = word.lstrip() + (f"→{seen[position].strip()}" if action == "random" else "")
        text.append(shown, style=f"{style} {_ACTION_STYLES[action]}")
        text.append(f"]{number + 1}" if ends else "", style="dim")
    return text


def _explain(example: "Example", tokenizer: "Tokenizer") -> "Text":
    from rich.text import Text

    lines = Text()
    for number, group in enumerate(example.groups, start=1):
        lines.append(f"  {number:3d}  ", style="dim").append(_explain_group(group, example, tokenizer) + "\n")
    return lines


def _explain_group(group: "MaskedGroup", example: "Example", tokenizer: "Tokenizer") -> str:
    words = "".join(_speak(tokenizer, [example.original_ids[position] for position in group.positions])).strip()
    unit = "1 word" if group.num_words == 1 else f"{group.num_words} words"
    pieces = _speak(tokenizer, [example.token_ids[position] for position in group.positions])
    names = {"masked": "[MASK]", "random": "random", "kept": "kept"}
    results = [
        f"{names[action]} '{piece.strip()}'" if action == "random" else names[action]
        for action, piece in zip(group.actions, pieces, strict=True)
    ]
    return f"{unit:8} {words!r} -> {' '.join(results)}"


def _speak(tokenizer: "Tokenizer", token_ids: Sequence[int]) -> list[str]:
    """Pieces as a person reads them: a leading space where a word begins."""
    spoken = []
    for piece in tokenizer.pieces(token_ids):
        if tokenizer.kind == "wordpiece":
            spoken.append(piece.removeprefix("##") if piece.startswith("##") else f" {piece}")
        else:
            spoken.append(piece.replace("▁", " ").replace("Ġ", " "))
    return spoken


def _legend() -> "Text":
    from rich.text import Text

    text = Text("[ ]n", style="").append(" group n · ")
    text.append("word", style=_ACTION_STYLES["masked"]).append(" became [MASK] · ")
    text.append("word→other", style=_ACTION_STYLES["random"]).append(" a random token · ")
    text.append("word", style=_ACTION_STYLES["kept"]).append(" unchanged, but predicted · ")
    text.append("segment A", style=_SEGMENT_STYLES[0]).append(" · ")
    return text.append("segment B", style=_SEGMENT_STYLES[1])


def _statistics_rows(statistics: "StreamStatistics", recipe: "Recipe", steps: int) -> list[tuple[str, str]]:
    from litebert.batches.masking import ACTIONS

    names = _label_names(recipe.segments)
    per_second = statistics.num_sequences / statistics.elapsed_seconds
    return [
        ("steps per epoch", f"{steps:,}"),
        ("sequences", f"{statistics.num_sequences:,}"),
        ("tokens per sequence", f"{statistics.num_tokens / statistics.num_sequences:.1f}"),
        *((f"label {k}: {name}", _share(statistics.label_counts, k)) for k, name in enumerate(names)),
        ("document openings", f"{statistics.opening_share:.1%}"),
        ("masked share of the text", f"{statistics.masked_share:.2%}"),
        *(
            (f"groups of {k + 1} word{'s' if k else ''}", _share(statistics.group_counts, k))
            for k in range(len(statistics.group_counts))
        ),
        *((f"{name} tokens", _share(statistics.action_counts, k)) for k, name in enumerate(ACTIONS)),
        ("padding efficiency", f"{statistics.padding_efficiency:.1%}"),
        ("sequences/s on one thread", f"{per_second:,.0f}"),
        ("tokens/s on one thread", f"{per_second * statistics.num_tokens / statistics.num_sequences:,.0f}"),
    ]


def _share(counts: Sequence[int], k: int) -> str:
    value = counts[k] if k < len(counts) else 0
    return f"{value:,}  {value / max(1, sum(counts)):6.1%}"
