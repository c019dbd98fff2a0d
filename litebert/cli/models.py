"""`litebert models list` and `show`: parameters and cost of each preset, and the paper's tables next to our counts."""

from typing import Annotated, Any

import typer

from litebert.cli import completion
from litebert.cli.printing import open_console, print_json
from litebert.cli.words import AsJson

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
    size_rows, cost_rows = [], []
    for fact in facts:
        config, count, memory = fact["config"], fact["parameters"], fact["memory_bytes"]
        shape = f"{config['num_layers']} x {config['hidden_size']}, E {config['embedding_size']}"
        counts = ("without_pooler", "with_pooler", "with_heads", "embeddings", "layers", "unrolled")
        size_rows.append((fact["name"], shape, *(f"{count[key]:,}" for key in counts), fact["printed"] or "-"))
        cost_rows.append(
            (
                fact["name"],
                f"{fact['forward_flops_per_token'] / 1e6:,.1f}",
                f"{fact['training_flops_per_token'] / 1e6:,.1f}",
                *(_megabytes(memory[key]) for key in ("weights", "gradients", "optimizer", "activations", "total")),
            )
        )
    _print_table(
        "Parameters",
        ("model", "shape", "no pooler", "with pooler", "+ heads", "embeddings", "layers", "unrolled", "paper"),
        size_rows,
        caption="+ heads: with the pre-training heads. unrolled: layers counted per use.",
    )
    _print_table(
        f"Cost of pre-training in fp32 (length {length}, {batch_size} sequences per batch)",
        ("model", "MFLOP/token", "training", "weights MB", "gradients", "LAMB state", "activations", "total MB"),
        cost_rows,
        caption="Matrix multiplies; logits at the 15 % masked tokens. Activations: kept for the backward pass.",
    )


def _print_paper_table(number: int, rows: list[dict[str, Any]]) -> None:
    _print_table(
        f"ALBERT paper, Table {number}: parameters",
        ("model", "paper", "ours", "no pooler", "with pooler", "+ heads", "note"),
        [
            (
                row["name"],
                f"{row['printed_millions']}M",
                f"{row['ours_millions']:.2f}M{'' if row['counts_pooler'] else ' *'}",
                *(f"{row[key]:,}" for key in ("without_pooler", "with_pooler", "with_heads")),
                row["note"],
            )
            for row in rows
        ],
        caption="* without pooler, as the paper counts unshared models.",
    )


def _print_table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], *, caption: str) -> None:
    from rich import box
    from rich.table import Table

    console = open_console()
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        is_text = index == 0 or column == "note"
        table.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 1e7 else f"{size / 1e6:,.1f}"
