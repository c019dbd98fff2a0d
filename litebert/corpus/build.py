"""Building a corpus: reads text, encodes it in several processes, writes shards; may be killed at any moment.

One process reads all files and cuts them into chunks. The others encode each chunk into a part file. When the parts of
a shard are complete, they are joined, split into train and valid, written, and recorded. What a shard contains depends
on the input bytes, the tokenizer and the options alone. A call that was killed leaves `unfinished/` (unfinished.py).
The next call reads its plan, skips recorded shards and existing parts, and continues.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError, advise_on_disk
from litebert.core.files import LOCK_FILE, exclusive_lock
from litebert.core.progress import ProgressBar
from litebert.corpus.chunks import iter_chunks
from litebert.corpus.documents import ReadOptions, check_format
from litebert.corpus.encode import encode_chunks, read_part
from litebert.corpus.shards import (
    FORMAT_VERSION,
    MANIFEST,
    TOKENIZER,
    Manifest,
    TokenizerFacts,
    check_shards,
    read_manifest,
    write_manifest,
)
from litebert.corpus.sources import STDIN, Source, find_files, spool_stdin, spool_texts
from litebert.corpus.unfinished import (
    SOURCES,
    UNFINISHED,
    BuildProgress,
    Plan,
    append_sources,
    check_unchanged,
    describe_sources,
    has_plan,
    part_path,
    plan_sources,
    read_progress,
    read_sources,
    remove_parts,
    remove_state,
    resume_plan,
    write_plan,
    write_progress,
)
from litebert.corpus.writer import SeenDocuments, ShardWriter
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.word_starts import check_jieba


@dataclass(frozen=True)
class BuildOptions:
    """How to build. How bad input is treated, and the number of processes, do not shape the result."""

    read: ReadOptions = field(default_factory=ReadOptions)
    valid_share: float = 0.01
    deduplicate: bool = False
    processes: int = 1
    is_quiet: bool = False

    def recorded(self) -> dict[str, Any]:
        """The options that all builds of one corpus must agree on."""
        return {
            "valid_share": self.valid_share,
            "deduplicate": self.deduplicate,
            "first_sentences": self.read.first_sentences,
            "limits": asdict(self.read.limits),
        }


@dataclass(frozen=True)
class BuildResult:
    """What a call of build_corpus did."""

    manifest: Manifest
    built: tuple[Source, ...]
    num_known: int  # files that were in the corpus already, or twice in this call
    text_bytes: int  # read by this call
    elapsed_seconds: float


def build_corpus(
    paths: Sequence[str | Path],
    tokenizer: Tokenizer,
    directory: Path,
    options: BuildOptions | None = None,
    *,
    texts: Iterable[str] | None = None,
) -> BuildResult:
    """Build a corpus from files, folders, globs, standard input ("-") and `texts`, or add what it does not have yet."""
    options = options or BuildOptions()
    check_options(options)
    if tokenizer.words == "jieba":
        check_jieba()
    started = time.monotonic()
    is_ours = any((directory / name).exists() for name in (LOCK_FILE, SOURCES))
    if directory.exists() and not is_ours and any(directory.iterdir()):
        raise ConfigError(
            "not-a-corpus", f"{directory} is not empty and not a corpus; choose another folder", option="out"
        )
    patterns = [str(path) for path in paths]
    named = [pattern for pattern in patterns if pattern != STDIN]
    files = find_files(named, except_in=directory) if named else []
    with _locked(directory):
        facts = tokenizer_facts(tokenizer)
        _check_same_build(directory, facts, options.recorded())
        files += [spool_stdin(directory / UNFINISHED)] if STDIN in patterns else []
        files += [] if texts is None else [spool_texts(texts, directory / UNFINISHED)]
        plan = Plan(facts, options.recorded(), 0, ())
        interrupted = resume_plan(directory, plan, files, options.read, is_quiet=options.is_quiet)
        known = [*read_sources(directory), *(interrupted.sources if interrupted else ())]
        sources = plan_sources(files, known, options.read, is_quiet=options.is_quiet)
        _save_tokenizer(tokenizer, directory)
        built: tuple[Source, ...] = ()
        text_bytes = 0
        if interrupted:
            text_bytes += _build_sources(directory, interrupted, options)
            built += interrupted.sources
        if sources:
            plan = replace(plan, num_sources_before=len(read_sources(directory)), sources=sources)
            write_plan(directory, plan)
            text_bytes += _build_sources(directory, plan, options)
            built += sources
        shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    elapsed = time.monotonic() - started
    num_known = len(files) - len({source.path for source in built}.intersection(files))
    return BuildResult(read_manifest(directory), built, num_known, text_bytes, elapsed)


def check_options(options: BuildOptions) -> None:
    """Fail for options that cannot build anything."""
    check_format(options.read.format)
    if not 0 <= options.valid_share <= 1:
        raise ConfigError(
            "bad-share", f"valid_share must be between 0 and 1, got {options.valid_share}", option="valid_share"
        )
    if options.read.first_sentences is not None and options.read.first_sentences < 1:
        raise ConfigError(
            "bad-count",
            f"first_sentences must be at least 1, got {options.read.first_sentences}",
            option="first_sentences",
        )
    if options.processes < 1:
        raise ConfigError("bad-count", f"processes must be at least 1, got {options.processes}", option="processes")


def tokenizer_facts(tokenizer: Tokenizer) -> TokenizerFacts:
    return TokenizerFacts(
        kind=tokenizer.kind,
        fingerprint=tokenizer.fingerprint,
        words=tokenizer.words,
        vocab_size=tokenizer.vocab_size,
        unk_id=tokenizer.unk_id,
    )


def _build_sources(directory: Path, plan: Plan, options: BuildOptions) -> int:
    """Build what is left of a plan, then add it to the manifest; returns the bytes of text read."""
    done = read_progress(directory)
    if done is None and (directory / MANIFEST).exists():
        done = BuildProgress(read_manifest(directory))
    elif done is None:
        empty = Manifest(
            format_version=FORMAT_VERSION,
            tokenizer=plan.tokenizer,
            options=plan.options,
            num_sources=0,
            text_bytes=0,
            counts={},
            problems=[],
            shards=(),
        )
        done = BuildProgress(empty)
    check_unchanged(plan.sources[done.position.source :])
    check_shards(directory, done.manifest.shards, plan.tokenizer.vocab_size)
    text_bytes_before = done.manifest.text_bytes
    if not options.is_quiet:
        print("\n".join(describe_sources(plan.sources)), file=sys.stderr, flush=True)
    for state in _iter_shards(directory, plan, done, options):
        done = state
        write_progress(directory, done)
        remove_parts(directory, before=done.next_chunk)
    if not done.manifest.shards:
        remove_state(directory)
        problems = done.manifest.problems
        reason = f"the first reason: {problems[0]}" if problems else "is the format right?"
        raise DataError("no-documents", f"no document could be read from {len(plan.sources)} files; {reason}")
    append_sources(directory, plan.sources)
    num_sources = plan.num_sources_before + len(plan.sources)
    write_manifest(directory / MANIFEST, replace(done.manifest, num_sources=num_sources))
    remove_state(directory)
    return done.manifest.text_bytes - text_bytes_before


def _iter_shards(directory: Path, plan: Plan, done: BuildProgress, options: BuildOptions) -> Iterator[BuildProgress]:
    """Encode the rest of the input; yields the state after each shard that was written."""
    limits = options.read.limits
    chunks = iter_chunks(plan.sources, limits=limits, start=done.position, number=done.next_chunk)
    parts = encode_chunks(chunks, directory, options.read, processes=options.processes)
    seen = SeenDocuments.load(directory, done.manifest) if options.deduplicate else None
    writer = ShardWriter(plan.tokenizer, valid_share=options.valid_share, seen=seen)
    manifest, text_bytes = done.manifest, 0
    total = sum(source.num_bytes for source in plan.sources)
    started = time.monotonic()
    with ProgressBar("encoding", total=total, is_quiet=options.is_quiet) as progress:
        for chunk, num_bytes in parts:
            writer.add(read_part(part_path(directory, chunk.number)))
            text_bytes += num_bytes
            rate = text_bytes / 1e6 / max(1e-9, time.monotonic() - started)
            progress.move_to(chunk.raw_position, f"{rate:.1f} MB/s of text")
            if writer.text_bytes >= limits.shard:
                manifest = writer.write(directory, manifest)
                yield BuildProgress(manifest, chunk.end, chunk.number + 1)
        if writer.num_parts:
            yield BuildProgress(writer.write(directory, manifest), chunk.end, chunk.number + 1)


def _check_same_build(directory: Path, facts: TokenizerFacts, options: dict[str, Any]) -> None:
    """Fail if the corpus was begun with another tokenizer or other options."""
    done = read_progress(directory)
    begun = done.manifest if done else read_manifest(directory) if (directory / MANIFEST).exists() else None
    if begun is None:
        return
    if begun.tokenizer != facts:
        raise ConfigError(
            "tokenizer-mismatch",
            f"{directory} was built with another tokenizer ({begun.tokenizer.kind} of {begun.tokenizer.vocab_size:,} "
            f"pieces, words from {begun.tokenizer.words}, {begun.tokenizer.fingerprint[:12]}; now {facts.kind} of "
            f"{facts.vocab_size:,}, words from {facts.words}, {facts.fingerprint[:12]}); "
            f"use {directory / TOKENIZER}, or build a new corpus",
            option="tokenizer",
        )
    before = {"first_sentences": None, **begun.options}  # older manifests lack it
    different = [
        f"{name} {before.get(name)}, not {value}" for name, value in options.items() if before.get(name) != value
    ]
    if different:
        raise ConfigError(
            "other-options",
            f"{directory} was built with {'; '.join(different)}; use the earlier value, or build a new corpus",
        )


def _save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Store the tokenizer next to the shards; one that made no shard yet is replaced."""
    path = directory / TOKENIZER
    if not read_progress(directory) and not (directory / MANIFEST).exists():
        shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        tokenizer.save(path)
    elif load_tokenizer(path).fingerprint != tokenizer.fingerprint:
        raise ConfigError("tokenizer-mismatch", f"{path} is another tokenizer; use it, or build a new corpus")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the directory for this build. A call that fails before it has a plan leaves no trace in a new directory."""
    was_there, was_empty = directory.exists(), not (directory.exists() and any(directory.iterdir()))
    with exclusive_lock(directory, purpose="building a corpus"):
        try:
            yield
        except BaseException as error:
            if was_empty and not has_plan(directory) and not (directory / MANIFEST).exists():
                for path in directory.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                if not was_there:
                    directory.rmdir()
            if isinstance(error, OSError) and (advice := advise_on_disk(error, directory / "shard")):
                raise DataError("disk", f"{directory}: {error.strerror}{advice}: what is finished is kept") from error
            raise
