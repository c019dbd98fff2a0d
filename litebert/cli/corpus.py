"""`litebert corpus`: build a corpus of tokenised shards from raw text, and inspect it."""

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

app = typer.Typer(help="Build a tokenised corpus from raw text, check it and inspect it.", no_args_is_help=True)

app.command("show")(show_examples)

CorpusPath = Annotated[Path, typer.Argument(help="Corpus directory.")]


@app.command("build")
def build(
    paths: Annotated[list[str], typer.Argument(help="Text files, folders or globs; - reads standard input.")],
    tokenizer: Annotated[
        Path,
        typer.Option(
            "--tokenizer",
            "-t",
            help="Tokenizer: a litebert directory, an ALBERT .model, a vocab.txt or a tokenizer.json.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Corpus directory to write; an existing corpus is continued or extended.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="Text format: auto (detect per file), lines, prose, wrapped, wiki, gutenberg, jsonl, race or squad.",
        ),
    ] = "auto",
    field: Annotated[str, typer.Option(help="Name of the text field (JSONL and Parquet).")] = "text",
    on_error: Annotated[
        str,
        typer.Option(help="On bad input (not UTF-8, invalid JSON, truncated gzip, ...): fail, or skip and count it."),
    ] = "fail",
    valid_share: Annotated[
        float, typer.Option(help="Share of documents in the validation split; 1 makes an evaluation-only corpus.")
    ] = 0.01,
    deduplicate: Annotated[bool, typer.Option(help="Drop duplicate documents.")] = False,
    first_sentences: Annotated[
        int | None,
        typer.Option(min=1, help="Keep only the first N sentences of each document. Default: all."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of encoding processes. Default: one per core.")
    ] = None,
) -> None:
    """Build a corpus. To resume an interrupted build, repeat the command; with more files it extends the corpus.

    Example: litebert corpus build texts/ --tokenizer tokenizers/en --out corpora/en
    """
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
    """Verify the hash of every shard against the manifest."""
    from litebert.corpus.statistics import verify_corpus

    manifest, damages = verify_corpus(corpus)
    for damage in damages:
        print(damage, file=sys.stderr)
    if damages:
        fix = "restore the files above, or build the corpus again in a new directory"
        raise DataError("corrupt-corpus", f"{len(damages)} of {len(manifest.shards)} shards are corrupt; {fix}")
    num_bytes = sum(record.num_bytes for record in manifest.shards)
    print(f"{corpus}: {len(manifest.shards)} shards, {num_bytes / 1e6:,.1f} MB, verified")


@app.command("stats")
def stats(
    corpus: Annotated[str, typer.Argument(help="Corpus directory, or with --batches a recipe.")],
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Plot the lengths to this PNG file.")] = None,
    batches: Annotated[
        int, typer.Option(min=0, help="Make N batches of a recipe and show their statistics; 0 measures a corpus.")
    ] = 0,
) -> None:
    """Count documents, sentences and tokens of a corpus, with their lengths, or what a recipe's batches contain."""
    import json
    from dataclasses import asdict

    from litebert.corpus.statistics import measure_corpus, plot_statistics

    if batches and plot:
        raise ConfigError(
            "conflicting-options",
            "--plot draws the lengths of a corpus, but --batches measures a recipe; use one of them",
        )
    if batches:
        print_batch_statistics(corpus, overrides or [], batches, as_json=as_json)
        return
    if overrides:
        raise ConfigError("conflicting-options", f"'{overrides[0]}' overrides a recipe: it needs --batches")
    if plot and plot.is_dir():
        raise ConfigError("is-a-folder", f"--plot {plot} is a folder; name a PNG file")
    statistics = measure_corpus(Path(corpus))
    if plot:
        plot_statistics(statistics, plot)
    if as_json:
        print(json.dumps(asdict(statistics), indent=2, ensure_ascii=False))
    else:
        _print_statistics(statistics)


def _print_build(result: "BuildResult", out: Path) -> None:
    if result.num_known:
        print(f"{result.num_known} files were already built or given twice: skipped")
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
            print(f"warning: the {split} split is empty; change --valid-share", file=sys.stderr)


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
