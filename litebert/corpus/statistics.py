"""Statistics of a corpus: counts, unknown rate, and the lengths of sentences and documents."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litebert.core.errors import ConfigError
from litebert.core.files import atomic_path
from litebert.core.progress import ProgressBar
from litebert.corpus.shards import SPLITS, Manifest, Split, find_damage, open_corpus, read_manifest

# Upper bounds of the bins, in tokens: powers of two, which include the lengths that models are trained with
SENTENCE_BINS = (4, 8, 16, 32, 64, 128, 256, 512)
DOCUMENT_BINS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 16384)


@dataclass(frozen=True)
class Histogram:
    """How many items have at most `ends[i]` tokens (and more than `ends[i - 1]`); the last count is of longer ones."""

    ends: tuple[int, ...]
    counts: tuple[int, ...]
    mean: float
    longest: int

    def labels(self) -> list[str]:
        starts = [1, *(end + 1 for end in self.ends)]
        return [f"{a:,}-{b:,}" for a, b in zip(starts, self.ends, strict=False)] + [f"over {self.ends[-1]:,}"]


@dataclass(frozen=True)
class SplitStatistics:
    """One split of a corpus in numbers."""

    num_shards: int
    num_documents: int
    num_sentences: int
    num_tokens: int
    num_unknown: int
    unknown_rate: float
    tokens_per_sentence: Histogram
    tokens_per_document: Histogram


@dataclass(frozen=True)
class CorpusStatistics:
    """A corpus in numbers."""

    path: str
    tokenizer: dict[str, Any]
    num_sources: int
    text_bytes: int
    counts: dict[str, int]
    splits: dict[Split, SplitStatistics]


def measure_corpus(directory: Path, *, is_quiet: bool = False) -> CorpusStatistics:
    """Count a corpus, one shard at a time."""
    manifest = read_manifest(directory)
    splits: dict[Split, SplitStatistics] = {}
    total, position = sum(record.num_sentences for record in manifest.shards), 0
    with ProgressBar("counting", total=total, unit="million sentences", is_quiet=is_quiet) as progress:
        for split in SPLITS:
            corpus = open_corpus(directory, split)
            sentences, documents = _Lengths(SENTENCE_BINS), _Lengths(DOCUMENT_BINS)
            for shard in corpus.shards:
                sentences.add(np.diff(shard.sentence_offsets))
                documents.add(np.diff(shard.sentence_offsets[shard.document_offsets]))
                position += shard.num_sentences
                progress.move_to(position)
            num_unknown = sum(shard.record.num_unknown for shard in corpus.shards)
            splits[split] = SplitStatistics(
                num_shards=len(corpus.shards),
                num_documents=corpus.num_documents,
                num_sentences=corpus.num_sentences,
                num_tokens=corpus.num_tokens,
                num_unknown=num_unknown,
                unknown_rate=num_unknown / max(1, corpus.num_tokens),
                tokens_per_sentence=sentences.histogram(),
                tokens_per_document=documents.histogram(),
            )
    return CorpusStatistics(
        path=str(directory),
        tokenizer=dict(vars(manifest.tokenizer)),
        num_sources=manifest.num_sources,
        text_bytes=manifest.text_bytes,
        counts=manifest.counts,
        splits=splits,
    )


class _Lengths:
    """A histogram that grows shard by shard."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        self.ends, self.counts = ends, np.zeros(len(ends) + 1, dtype=np.int64)
        self.total = self.longest = 0

    def add(self, lengths: npt.NDArray[np.int64]) -> None:
        self.counts += np.bincount(np.searchsorted(self.ends, lengths), minlength=len(self.ends) + 1)
        self.total += int(lengths.sum())
        self.longest = max(self.longest, int(lengths.max(initial=0)))

    def histogram(self) -> Histogram:
        mean = self.total / max(1, int(self.counts.sum()))
        return Histogram(self.ends, tuple(int(count) for count in self.counts), mean, self.longest)


def verify_corpus(directory: Path, *, is_quiet: bool = False) -> tuple[Manifest, list[str]]:
    """Read every shard and compare its hash and counts with the manifest; returns the manifest and all problems."""
    manifest = read_manifest(directory)
    damages, position = [], 0
    with ProgressBar(
        "checking", total=sum(record.num_bytes for record in manifest.shards), is_quiet=is_quiet
    ) as progress:
        for record in manifest.shards:
            if damage := find_damage(directory, record, manifest.tokenizer.vocab_size):
                damages.append(damage)
            position += record.num_bytes
            progress.move_to(position)
    return manifest, damages


def plot_statistics(statistics: CorpusStatistics, path: Path) -> None:
    """Draw the lengths of sentences and documents of the training split."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("missing-package", "a plot needs matplotlib: pip install 'litebert[plots]'") from error
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    train = statistics.splits["train"]
    for axes, name, histogram in (
        (left, "sentence", train.tokens_per_sentence),
        (right, "document", train.tokens_per_document),
    ):
        axes.bar(histogram.labels(), histogram.counts, color="#4c72b0")
        axes.set_title(f"Tokens per {name} (mean {histogram.mean:,.1f}, longest {histogram.longest:,})", fontsize=11)
        axes.set_ylabel(f"{name}s")
        axes.tick_params(axis="x", rotation=40)
        axes.spines[["top", "right"]].set_visible(False)
    title = f"{train.num_documents:,} documents, {train.num_sentences:,} sentences, {train.num_tokens:,} tokens"
    figure.suptitle(f"{title}, {train.unknown_rate:.2%} unknown", fontsize=12)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
