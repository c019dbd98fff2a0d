"""`litebert corpus`: from raw text to tokenised shards, and what is in them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from litebert import api
from litebert.cli.batches import Overrides, print_batch_statistics, show_examples
from litebert.cli.skipped import print_skipped
from litebert.cli.words import name_files
from litebert.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from litebert.corpus.build import BuildResult
    from litebert.corpus.statistics import CorpusStatistics, SplitStatistics

app = typer.Typer(help="Turn raw text into a tokenised corpus, check it, look at it.", no_args_is_help=True)

app.command("show")(show_examples)

CorpusPath = Annotated[Path, typer.Argument(help="A corpus directory.")]


@app.command("build")
def build(
    paths: Annotated[list[str], typer.Argument(help="Files, folders, globs, or - for standard input.")],
    tokenizer: Annotated[
        Path,
        typer.Option("--tokenizer", "-t", help="Our directory, an ALBERT .model, a vocab.txt or a tokenizer.json."),
    ],
    out: Annotated[Path, typer.Option(help="The corpus directory; one that is there is continued, or grows.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="auto looks at each file; or lines, prose, wrapped, wiki, gutenberg, jsonl, race, squad."
        ),
    ] = "auto",
    field: Annotated[str, typer.Option(help="JSONL and Parquet: the field with the text.")] = "text",
    on_error: Annotated[
        str, typer.Option(help="At bad input (not UTF-8, broken JSON, cut gzip ...): fail, or skip it and count it.")
    ] = "fail",
    valid_share: Annotated[
        float, typer.Option(help="Share of the documents kept for validation; 1 for a corpus to evaluate on.")
    ] = 0.01,
    deduplicate: Annotated[bool, typer.Option(help="Leave out documents whose text came before.")] = False,
    first_sentences: Annotated[
        int | None,
        typer.Option(min=1, help="Of each document only so many, from its beginning. Default: the whole document."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes encode. Default: one a core.")
    ] = None,
) -> None:
    """Build a corpus. Killed at any moment, the same command goes on; with more files, the corpus grows."""
    result = api.build_corpus(
        name_files(paths),
        out,
        tokenizer=tokenizer,
        format=format_,
        field=field,
        on_error=on_error,  # type: ignore[arg-type]  # checked there
        valid_share=valid_share,
        deduplicate=deduplicate,
        first_sentences=first_sentences,
        processes=processes,
    )
    _print_build(result.details, out)


@app.command("check")
def check(corpus: CorpusPath) -> None:
    """Read every shard and compare its hash with the manifest's."""
    from litebert.corpus.statistics import check_corpus

    manifest, damages = check_corpus(corpus)
    for damage in damages:
        print(damage, file=sys.stderr)
    if damages:
        remedy = "restore the named files, or build the corpus again in a new directory"
        raise DataError(
            "corrupt-corpus", f"{len(damages)} of {len(manifest.shards)} shards are not what was written; {remedy}"
        )
    num_bytes = sum(record.num_bytes for record in manifest.shards)
    print(f"{corpus}: {len(manifest.shards)} shards, {num_bytes / 1e6:,.1f} MB, all as written")


@app.command("stats")
def stats(
    corpus: Annotated[str, typer.Argument(help="A corpus directory; with --batches, a recipe.")],
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the lengths into this PNG file.")] = None,
    batches: Annotated[
        int, typer.Option(min=0, help="Make this many batches of a recipe and show what is in them.")
    ] = 0,
) -> None:
    """Count documents, sentences, tokens and unknowns, and show how long they are; or what a recipe's batches hold."""
    import json
    from dataclasses import asdict

    from litebert.corpus.statistics import measure_corpus, plot_statistics

    if batches and plot:
        raise ConfigError(
            "conflicting-options",
            "--plot draws the lengths of a corpus, and --batches looks at a recipe; leave one out",
        )
    if batches:
        print_batch_statistics(corpus, overrides or [], batches, as_json=as_json)
        return
    if overrides:
        raise ConfigError("conflicting-options", f"'{overrides[0]}' changes a recipe: it goes with --batches")
    if plot and plot.is_dir():
        raise ConfigError("is-a-folder", f"--plot {plot} is a folder; name a PNG file in it")
    statistics = measure_corpus(Path(corpus))
    if plot:
        plot_statistics(statistics, plot)
    if as_json:
        print(json.dumps(asdict(statistics), indent=2, ensure_ascii=False))
    else:
        _print_statistics(statistics)


def _print_build(result: "BuildResult", out: Path) -> None:
    if result.num_known:
        print(f"{result.num_known} files were there already, or twice: not built again")
    if result.built:
        rate = result.text_bytes / 1e6 / result.elapsed_seconds
        print(f"{result.text_bytes / 1e6:,.1f} MB of text in {result.elapsed_seconds:.1f} s ({rate:.1f} MB/s)")
    print_skipped(
        result.manifest.problems, result.manifest.counts, where_more="; the first hundred are in the manifest"
    )
    for split in ("train", "valid"):
        records = [record for record in result.manifest.shards if record.split == split]
        documents, tokens = sum(r.num_documents for r in records), sum(r.num_tokens for r in records)
        print(f"{out} {split}: {documents:,} documents, {tokens:,} tokens in {len(records)} shards")
        share = result.manifest.options["valid_share"]
        if not records and (share < 1 if split == "train" else share > 0):
            print(f"warning: no document fell into {split}; see --valid-share", file=sys.stderr)


def _print_statistics(statistics: "CorpusStatistics") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    facts = statistics.tokenizer
    console.print(
        f"{statistics.path}: {statistics.num_sources:,} sources, {statistics.text_bytes / 1e6:,.1f} MB of text, "
        f"{facts['kind']} vocabulary of {facts['vocab_size']:,}",
        highlight=False,
    )
    table = Table("", *statistics.splits, title="Corpus", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for title, cells in _rows(list(statistics.splits.values())):
        table.add_row(title, *cells, end_section=title in ("unknown rate", "longest sentence"))
    console.print(table)
    for kind, count in statistics.counts.items():
        console.print(f"{kind.replace('_', ' ')}: {count:,}", highlight=False)


def _rows(splits: "list[SplitStatistics]") -> list[tuple[str, list[str]]]:
    rows = [
        (title, [f"{getattr(split, name):,}" for split in splits])
        for title, name in (
            ("shards", "num_shards"),
            ("documents", "num_documents"),
            ("sentences", "num_sentences"),
            ("tokens", "num_tokens"),
            ("unknown tokens", "num_unknown"),
        )
    ]
    rows.append(("unknown rate", [f"{split.unknown_rate:.3%}" for split in splits]))
    for item in ("sentence", "document"):
        histograms = [getattr(split, f"tokens_per_{item}") for split in splits]
        for i, label in enumerate(histograms[0].labels()):
            rows.append((f"{item}s of {label} tokens", [_share(h.counts, i) for h in histograms]))
        rows.append((f"mean {item}", [f"{h.mean:,.1f}" for h in histograms]))
        rows.append((f"longest {item}", [f"{h.longest:,}" for h in histograms]))
    return rows


def _share(counts: tuple[int, ...], i: int) -> str:
    return f"{counts[i]:,}  {counts[i] / max(1, sum(counts)):6.1%}"
