"""Building a corpus: reads, encodes in several processes, writes shards; may be killed at any moment.

One process reads all files and cuts them into chunks; the others encode a chunk each into a part file; when the parts
of a shard are there, they are joined, split into train and valid, written, and noted. What a shard holds is a function
of the input bytes, the tokenizer and the options alone. A call that was killed leaves `unfinished/` (data/ledger.py);
the next one reads its plan, skips the shards that are noted and the parts that exist, and goes on.
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
from litebert.corpus.encode import read_part
from litebert.corpus.resume import resume_plan
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
    Done,
    Plan,
    append_sources,
    check_unchanged,
    describe_sources,
    has_plan,
    part_path,
    plan_sources,
    read_done,
    read_sources,
    remove_paperwork,
    write_done,
    write_plan,
)
from litebert.corpus.workers import encode_chunks
from litebert.corpus.writer import Seen, ShardDraft
from litebert.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class BuildOptions:
    """How to build. How bad input is treated, and by how many processes, does not shape the result."""

    read: ReadOptions = field(default_factory=ReadOptions)
    valid_share: float = 0.01
    deduplicate: bool = False
    processes: int = 1
    is_quiet: bool = False

    def recorded(self) -> dict[str, Any]:
        """What two builds of one corpus must agree on."""
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
    started = time.monotonic()
    _check_is_ours(directory)
    patterns = [str(path) for path in paths]
    found = _find_files(patterns, directory)
    with _held(directory):
        facts = tokenizer_facts(tokenizer)
        _check_same(directory, facts, options.recorded())
        files = [*found, spool_stdin(directory / UNFINISHED)] if STDIN in patterns else found
        files += [] if texts is None else [spool_texts(texts, directory / UNFINISHED)]
        plan = Plan(facts, options.recorded(), 0, ())
        interrupted = resume_plan(directory, plan, files, options.read, is_quiet=options.is_quiet)
        known = [*read_sources(directory), *(interrupted.sources if interrupted else ())]
        sources = plan_sources(files, known, options.read, is_quiet=options.is_quiet)
        _save_tokenizer(tokenizer, directory)
        built: tuple[Source, ...] = ()
        text_bytes = 0
        if interrupted:
            text_bytes += _build_batch(directory, interrupted, options)
            built += interrupted.sources
        if sources:
            plan = replace(plan, num_sources_before=len(read_sources(directory)), sources=sources)
            write_plan(directory, plan)
            text_bytes += _build_batch(directory, plan, options)
            built += sources
        shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    elapsed = time.monotonic() - started
    num_known = len(files) - len({source.path for source in built}.intersection(files))
    return BuildResult(read_manifest(directory), built, num_known, text_bytes, elapsed)


def check_options(options: BuildOptions) -> None:
    check_format(options.read.format)
    if not 0 <= options.valid_share <= 1:
        raise ConfigError(f"the share of validation documents is {options.valid_share}; it must lie in [0, 1]")
    if options.read.first_sentences is not None and options.read.first_sentences < 1:
        raise ConfigError(f"of {options.read.first_sentences} sentences a document nothing is left; at least 1")
    if options.processes < 1:
        raise ConfigError(f"{options.processes} processes cannot build anything; at least 1")


def tokenizer_facts(tokenizer: Tokenizer) -> TokenizerFacts:
    return TokenizerFacts(
        kind=tokenizer.kind,
        fingerprint=tokenizer.fingerprint,
        words=tokenizer.words,
        vocab_size=tokenizer.vocab_size,
        unk_id=tokenizer.unk_id,
    )


def _build_batch(directory: Path, plan: Plan, options: BuildOptions) -> int:
    """Build what a plan still lacks, then let the manifest speak of it; gives the bytes of text read."""
    done = read_done(directory) or Done(_manifest_before(directory, plan))
    check_unchanged(plan.sources[done.position.source :])
    check_shards(directory, done.manifest.shards, plan.tokenizer.vocab_size)
    text_bytes_before = done.manifest.text_bytes
    if not options.is_quiet:
        print("\n".join(describe_sources(plan.sources)), file=sys.stderr, flush=True)
    for state in _iter_shards(directory, plan, done, options):
        done = state
        write_done(directory, done)
        _remove_parts(directory, before=done.next_chunk)
    if not done.manifest.shards:
        remove_paperwork(directory)
        raise DataError(_explain_emptiness(plan, done.manifest))
    append_sources(directory, plan.sources)
    num_sources = plan.num_sources_before + len(plan.sources)
    write_manifest(directory / MANIFEST, replace(done.manifest, num_sources=num_sources))
    remove_paperwork(directory)
    return done.manifest.text_bytes - text_bytes_before


def _iter_shards(directory: Path, plan: Plan, done: Done, options: BuildOptions) -> Iterator[Done]:
    """Encode the rest of the input; gives the state after each shard that has been written."""
    limits = options.read.limits
    chunks = iter_chunks(plan.sources, limits=limits, start=done.position, number=done.next_chunk)
    parts = encode_chunks(chunks, directory, options.read, processes=options.processes)
    seen = Seen.load(directory, done.manifest) if options.deduplicate else None
    draft = ShardDraft(plan.tokenizer, valid_share=options.valid_share, seen=seen)
    manifest, text_bytes = done.manifest, 0
    total = sum(source.num_bytes for source in plan.sources)
    started = time.monotonic()
    with ProgressBar("encoding", total=total, is_quiet=options.is_quiet) as progress:
        for chunk, num_bytes in parts:
            draft.add(read_part(part_path(directory, chunk.number)))
            text_bytes += num_bytes
            progress.move_to(chunk.raw_position, _text_rate(text_bytes, started))
            if draft.text_bytes >= limits.shard:
                manifest = draft.write(directory, manifest)
                yield Done(manifest, chunk.end, chunk.number + 1)
        if draft.num_parts:
            yield Done(draft.write(directory, manifest), chunk.end, chunk.number + 1)


def _explain_emptiness(plan: Plan, manifest: Manifest) -> str:
    reason = f"; the first reason: {manifest.problems[0]}" if manifest.problems else "; is --format right?"
    return f"not one document could be read from {len(plan.sources)} files{reason}"


def _text_rate(text_bytes: int, started: float) -> str:
    return f"{text_bytes / 1e6 / max(1e-9, time.monotonic() - started):.1f} MB/s of text"


def _remove_parts(directory: Path, *, before: int) -> None:
    for path in (directory / UNFINISHED).glob("part-*.safetensors"):
        if path < part_path(directory, before):
            path.unlink()


def _manifest_before(directory: Path, plan: Plan) -> Manifest:
    if (directory / MANIFEST).exists():
        return read_manifest(directory)
    return Manifest(
        format_version=FORMAT_VERSION,
        tokenizer=plan.tokenizer,
        options=plan.options,
        num_sources=0,
        text_bytes=0,
        counts={},
        problems=[],
        shards=(),
    )


def _find_files(patterns: list[str], directory: Path) -> list[Path]:
    """The files to build, without those of the corpus itself."""
    named = [pattern for pattern in patterns if pattern != STDIN]
    return find_files(named, except_in=directory) if named else []


def _check_same(directory: Path, facts: TokenizerFacts, options: dict[str, Any]) -> None:
    """Refuse another tokenizer or other options than the corpus was begun with."""
    done = read_done(directory)
    begun = done.manifest if done else read_manifest(directory) if (directory / MANIFEST).exists() else None
    if begun is None:
        return
    if begun.tokenizer != facts:
        raise ConfigError(
            f"{directory} was built with another tokenizer ({begun.tokenizer.kind} of {begun.tokenizer.vocab_size:,} "
            f"pieces, words from {begun.tokenizer.words}, {begun.tokenizer.fingerprint[:12]}; now {facts.kind} of "
            f"{facts.vocab_size:,}, words from {facts.words}, {facts.fingerprint[:12]}); "
            f"use {directory / TOKENIZER}, or build a new corpus"
        )
    before = {"first_sentences": None, **begun.options}  # which older manifests do not have
    different = [
        f"{name} {before.get(name)}, not {value}" for name, value in options.items() if before.get(name) != value
    ]
    if different:
        raise ConfigError(
            f"{directory} was built with {'; '.join(different)}; give the former value, or build a new corpus"
        )


def _save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Put the tokenizer beside the shards; one that no shard was made with yet gives way."""
    path = directory / TOKENIZER
    if not read_done(directory) and not (directory / MANIFEST).exists():
        shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        tokenizer.save(path)
    elif load_tokenizer(path).fingerprint != tokenizer.fingerprint:
        raise ConfigError(f"{path} is another tokenizer; use it, or build a new corpus")


def _check_is_ours(directory: Path) -> None:
    is_ours = any((directory / name).exists() for name in (LOCK_FILE, SOURCES))
    if directory.exists() and not is_ours and any(directory.iterdir()):
        raise ConfigError(f"{directory} is not empty and no corpus; choose another --out")


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """The directory for this build alone; a call that fails before it has a plan leaves no trace in a new one."""
    was_there, was_empty = directory.exists(), not (directory.exists() and any(directory.iterdir()))
    with exclusive_lock(directory, purpose="building a corpus"), _explained_disk_errors(directory):
        try:
            yield
        except BaseException:
            if was_empty and not has_plan(directory) and not (directory / MANIFEST).exists():
                _clear(directory, is_kept=was_there)
            raise


def _clear(directory: Path, *, is_kept: bool) -> None:
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not is_kept:
        directory.rmdir()


@contextmanager
def _explained_disk_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = advise_on_disk(error, directory / "shard")
        if not advice:
            raise
        raise DataError(f"{directory}: {error.strerror}{advice}: what is finished is kept") from error
