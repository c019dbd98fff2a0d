"""`litebert corpus`: build a corpus of tokenized shards from raw text, and inspect it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from litebert import api
from litebert.cli.printing import build_table, open_console, print_json
from litebert.cli.skipped import print_skipped
from litebert.cli.words import (
    AsJson,
    CorpusPath,
    OnBadText,
    Script,
    TextField,
    TextFormat,
    Texts,
    TokenizerOption,
    name_files,
)
from litebert.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from litebert.corpus.build import BuildResult
    from litebert.corpus.statistics import CorpusStatistics, SplitStatistics


def build(
    texts: Texts,
    tokenizer: TokenizerOption,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Corpus folder; an interrupted build is resumed, a corpus extended."
        ),
    ],
    words: Annotated[
        Literal["pieces", "jieba"] | None,
        typer.Option(
            metavar="NAME",
            help="What n-gram and whole-word masks take for words: pieces, or jieba for Chinese. "
            "Default: as the tokenizer.",
        ),
    ] = None,
    script: Script = None,
    text_format: TextFormat = "auto",
    field: TextField = "text",
    on_error: OnBadText = "fail",
    valid_share: Annotated[
        float, typer.Option(help="Share of documents in the validation split; 1 makes an evaluation-only corpus.")
    ] = 0.01,
    deduplicate: Annotated[bool, typer.Option("--deduplicate", help="Drop duplicate documents.")] = False,
    first_sentences: Annotated[
        int | None,
        typer.Option(min=1, help="Keep only the first N sentences of each document. Default: all."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of encoding processes. Default: one per core.")
    ] = None,
) -> None:
    """Build a corpus. To resume an interrupted build, repeat the command; with more files it extends the corpus.

    Examples:
      litebert corpus build texts/ --tokenizer tokenizers/en --out corpora/en
      litebert corpus build books.jsonl --field text --tokenizer tokenizers/en --out corpora/books
    """
    result = api.build_corpus(
        name_files(texts),
        out,
        tokenizer=tokenizer,
        words=words,
        script=script,
        format=text_format,
        field=field,
        on_error=on_error,
        valid_share=valid_share,
        deduplicate=deduplicate,
        first_sentences=first_sentences,
        processes=processes,
    )
    _print_build(result.details, out)


def check(corpus: CorpusPath) -> None:
    """Verify the hash of every shard against the manifest.

    Examples:
      litebert corpus check corpora/en
    """
    from litebert.corpus.statistics import verify_corpus

    manifest, damages = verify_corpus(corpus)
    for damage in damages:
        print(damage, file=sys.stderr)
    if damages:
        fix = "restore the files above, or build the corpus again in a new directory"
        raise DataError("corrupt-corpus", f"{len(damages)} of {len(manifest.shards)} shards are corrupt; {fix}")
    num_bytes = sum(record.num_bytes for record in manifest.shards)
    print(f"{corpus}: {len(manifest.shards)} shards, {num_bytes / 1e6:,.1f} MB, verified")


def stats(
    corpus: CorpusPath,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PNG file to plot the lengths to; replaced if it exists.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count documents, sentences and tokens of a corpus, with their lengths.

    Examples:
      litebert corpus stats corpora/en
      litebert corpus stats corpora/en --json
      litebert corpus stats corpora/en --plot lengths.png
    """
    from dataclasses import asdict

    from litebert.corpus.statistics import measure_corpus, plot_statistics

    if plot and plot.is_dir():
        raise ConfigError("is-a-folder", f"--plot {plot} is a folder; name a PNG file")
    statistics = measure_corpus(corpus)
    if plot:
        plot_statistics(statistics, plot)
    if as_json:
        print_json(asdict(statistics))
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
        print(f"{out} {split}: {documents:,} documents, {tokens:,} tokens in {_count(len(records), 'shard')}")
        share = result.manifest.options["valid_share"]
        if not records and (share < 1 if split == "train" else share > 0):
            print(f"warning: the {split} split is empty; change --valid-share", file=sys.stderr)


def _print_statistics(statistics: "CorpusStatistics") -> None:
    console = open_console()
    facts = statistics.tokenizer
    console.print(
        f"{statistics.path}: {_count(statistics.num_sources, 'source')}, "
        f"{statistics.text_bytes / 1e6:,.1f} MB of text, {facts['kind']} vocabulary of {facts['vocab_size']:,}"
    )
    table = build_table("Corpus", "", *statistics.splits)
    for column in table.columns[1:]:
        column.justify = "right"
    for title, cells in _rows(list(statistics.splits.values())):
        table.add_row(title, *cells, end_section=title in ("unknown rate", "longest sentence"))
    console.print(table)
    for kind, count in statistics.counts.items():
        console.print(f"{kind.replace('_', ' ')}: {count:,}")


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


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
