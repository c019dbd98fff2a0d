"""`litebert models list` and `show`: parameters and cost of each preset, and the paper's tables next to our counts."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from litebert.cli import completion
from litebert.cli.printing import build_table, open_console, print_json
from litebert.cli.words import AsJson

if TYPE_CHECKING:
    from rich.table import Table

BatchSize = Annotated[int, typer.Option(min=1, help="Sequences per batch, for activation memory.")]
Length = Annotated[int, typer.Option(min=1, help="Tokens per sequence, for FLOPs and activation memory.")]


def list_models(
    paper_table: Annotated[
        int | None, typer.Option(help="Compare our counts with table 1, 3 or 4 of the ALBERT paper.")
    ] = None,
    batch_size: BatchSize = 8,
    length: Length = 512,
    as_json: AsJson = False,
) -> None:
    """List all presets with their exact parameters, FLOPs and training memory.

    Examples:
      litebert models list
      litebert models list --paper-table 4
    """
    from litebert.plan.presets import compare_with_paper, describe_presets

    if paper_table is None:
        facts = describe_presets(batch_size=batch_size, length=length)
        print_json(facts) if as_json else _print_presets(facts, batch_size, length)
    else:
        rows = compare_with_paper(paper_table)
        print_json(rows) if as_json else _print_paper_table(paper_table, rows)


def show_model(
    preset: Annotated[
        str,
        typer.Argument(metavar="PRESET", help="Preset, such as albert-base.", autocompletion=completion.list_presets),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Keys to override, such as embedding_size=64 sharing=none."),
    ] = None,
    batch_size: BatchSize = 8,
    length: Length = 512,
    as_json: AsJson = False,
) -> None:
    """Show exact parameters, FLOPs and training memory of a preset.

    Examples:
      litebert models show albert-base
      litebert models show albert-base embedding_size=64 sharing=none
      litebert models show albert-large --length 128 --batch-size 32
    """
    from litebert.plan.presets import describe_preset

    facts = [describe_preset(preset, overrides or [], batch_size=batch_size, length=length)]
    print_json(facts) if as_json else _print_presets(facts, batch_size, length)


def _print_presets(facts: list[dict[str, Any]], batch_size: int, length: int) -> None:
    sizes, short_sizes, costs, short_costs = [], [], [], []
    for fact in facts:
        name, config, count, memory = fact["name"], fact["config"], fact["parameters"], fact["memory_bytes"]
        layers, width, embeddings, printed = (
            config["num_layers"],
            config["hidden_size"],
            config["embedding_size"],
            fact["printed"] or "-",
        )
        counts = ("without_pooler", "with_pooler", "with_heads", "embeddings", "layers", "unrolled")
        sizes.append((name, f"{layers} x {width}, E {embeddings}", *(f"{count[key]:,}" for key in counts), printed))
        millions = (_millions(count[key]) for key in ("with_pooler", "with_heads", "unrolled"))
        short_sizes.append((name, f"{layers}x{width}, E {embeddings}", *millions, printed))
        forward, training = (f"{fact[f'{kind}_flops_per_token'] / 1e6:,.1f}" for kind in ("forward", "training"))
        sizes_of = {
            key: _megabytes(memory[key]) for key in ("weights", "gradients", "optimizer", "activations", "total")
        }
        costs.append((name, forward, training, *sizes_of.values()))
        short_costs.append(
            (name, forward, *(sizes_of[key] for key in ("weights", "optimizer", "activations", "total")))
        )
    _print_table(
        "Parameters",
        Rows(
            ("model", "shape", "no pooler", "with pooler", "+ heads", "embeddings", "layers", "unrolled", "paper"),
            sizes,
        ),
        Rows(("model", "shape", "with pooler", "+ heads", "unrolled", "paper"), short_sizes),
        caption="+ heads: with the pre-training heads. unrolled: layers counted per use.",
    )
    _print_table(
        f"Cost of pre-training in fp32 (length {length}, {batch_size} sequences per batch)",
        Rows(
            ("model", "MFLOP/token", "training", "weights MB", "gradients", "LAMB state", "activations", "total MB"),
            costs,
        ),
        Rows(("model", "MFLOP/token", "weights", "LAMB state", "activations", "total MB"), short_costs),
        caption="Matrix multiplies; logits at the 15 % masked tokens. Activations: kept for the backward pass.",
    )


def _print_paper_table(number: int, rows: list[dict[str, Any]]) -> None:
    names = [
        (
            row["name"],
            f"{row['printed_millions']}M",
            f"{row['ours_millions']:.2f}M{'' if row['counts_pooler'] else ' *'}",
        )
        for row in rows
    ]
    counts = [tuple(f"{row[key]:,}" for key in ("without_pooler", "with_pooler", "with_heads")) for row in rows]
    notes = [(row["note"],) for row in rows]
    _print_table(
        f"ALBERT paper, Table {number}: parameters",
        Rows(
            ("model", "paper", "ours", "no pooler", "with pooler", "+ heads", "note"),
            [name + count + note for name, count, note in zip(names, counts, notes, strict=True)],
        ),
        Rows(("model", "paper", "ours", "note"), [name + note for name, note in zip(names, notes, strict=True)]),
        caption="* without pooler, as the paper counts unshared models.",
    )


class Rows(NamedTuple):
    columns: tuple[str, ...]
    cells: list[tuple[str, ...]]


def _print_table(title: str, wide: Rows, narrow: Rows, *, caption: str) -> None:
    """Print the wide table if the terminal has room for it, else one that fits: no number is ever cut."""
    from rich.measure import Measurement

    console = open_console()
    table = _build_table(title, wide, caption)
    if Measurement.get(console, console.options.update(max_width=1_000), table).maximum > console.width:
        if len(wide.cells) == 1:
            (cells,) = wide.cells
            upright = Rows((wide.columns[0], cells[0]), list(zip(wide.columns[1:], cells[1:], strict=True)))
            table = _build_table(title, upright, caption)
        else:
            table = _build_table(title, narrow, f"{caption} A wider terminal or --json shows more.")
    console.print(table)


def _build_table(title: str, rows: Rows, caption: str) -> "Table":
    table = build_table(title, caption=caption)
    for index, column in enumerate(rows.columns):
        is_text = index == 0 or column == "note"
        table.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=column != "note")
    for row in rows.cells:
        table.add_row(*row)
    return table


def _millions(count: int) -> str:
    return f"{count / 1e6:,.2f}M" if count < 1e8 else f"{count / 1e6:,.1f}M"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 1e7 else f"{size / 1e6:,.1f}"
