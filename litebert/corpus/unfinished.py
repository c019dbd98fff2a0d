"""The state of a build: the sources of a corpus, the plan and progress of the build, and what a later call resumes.

sources.jsonl                 every source of a finished corpus, one per line; the manifest says how many count
unfinished/plan.json          the sources being built now
unfinished/progress.json      the shards of them that are finished, and where in the input those end
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_path, hash_file
from litebert.core.progress import ProgressBar
from litebert.core.sealed import build_record, parse_sealed, read_sealed, seal, write_sealed
from litebert.corpus.chunks import START, Position
from litebert.corpus.documents import ReadOptions, describe_source
from litebert.corpus.shards import MANIFEST, SHARDS, Manifest, TokenizerFacts, check_manifest, read_manifest
from litebert.corpus.sources import Source, name_of

SOURCES = "sources.jsonl"
UNFINISHED = "unfinished"
_PLAN = "plan.json"
_PROGRESS = "progress.json"
_MAX_LISTED = 12


@dataclass(frozen=True)
class Plan:
    """Sources to be built into a corpus that already has `num_sources_before`."""

    tokenizer: TokenizerFacts
    options: dict[str, Any]
    num_sources_before: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class BuildProgress:
    """The progress of a build: the manifest so far, its end in the input, and the number of the next chunk."""

    manifest: Manifest
    position: Position = START
    next_chunk: int = 0


def plan_sources(
    files: Sequence[Path], known: Sequence[Source], options: ReadOptions, *, is_quiet: bool
) -> tuple[Source, ...]:
    """The files that are not among the known sources. A source is its bytes: a moved or copied file is not new."""
    by_facts = {(source.path, source.num_bytes, source.modified_ns): source for source in known}
    by_hash = {source.sha256: source for source in known}
    known_paths = {source.path for source in known}
    sizes = [path.stat().st_size for path in files]
    new, position = [], 0
    with ProgressBar("looking at the files", total=sum(sizes), is_quiet=is_quiet) as progress:
        for path, size in zip(files, sizes, strict=True):
            source = by_facts.get((path, size, path.stat().st_mtime_ns))
            sha256 = source.sha256 if source else hash_file(path)
            if sha256 in by_hash:
                _check_same_reading(path, by_hash[sha256], options)
            elif path in known_paths:
                raise DataError(
                    "changed-source", f"{path} has changed since it was built into this corpus; build a new corpus"
                )
            else:
                by_hash[sha256] = describe_source(path, options, sha256=sha256)
                new.append(by_hash[sha256])
            position += size
            progress.move_to(position)
    return tuple(new)


def _check_same_reading(path: Path, known: Source, options: ReadOptions) -> None:
    fix = "build a new corpus, or use the earlier value"
    if options.format not in ("auto", known.format) and not known.packing.startswith("parquet"):
        raise ConfigError(
            "other-format",
            f"{name_of(path)} was read as format {known.format}, not {options.format}; {fix}",
            option="format",
        )
    if known.format == "jsonl" and options.field != known.field:
        raise ConfigError(
            "other-field",
            f"{name_of(path)} was read from field {known.field}, not {options.field}; {fix}",
            option="field",
        )


def describe_sources(sources: Sequence[Source]) -> list[str]:
    """What was found, for a person to check: one line per file, or per kind of file if there are many."""
    if len(sources) <= _MAX_LISTED:
        return [f"{s.name}: {s.format}, {s.packing}, {s.num_bytes / 1e6:,.1f} MB" for s in sources]
    lines = []
    for format_, packing in sorted({(source.format, source.packing) for source in sources}):
        sizes = [source.num_bytes for source in sources if (source.format, source.packing) == (format_, packing)]
        lines.append(f"{len(sizes):,} files: {format_}, {packing}, {sum(sizes) / 1e6:,.1f} MB")
    return lines


def check_unchanged(sources: Iterable[Source]) -> None:
    """Fail for files that are missing, or not what they were when they were planned."""
    for source in sources:
        if not source.path.is_file():
            raise DataError(
                "missing-source",
                f"{source.name} is missing and only partly built; restore it, or build a new corpus",
            )
        if not is_as_planned(source):
            raise DataError("changed-source", f"{source.name} changed while it was being built; build a new corpus")


def is_as_planned(source: Source) -> bool:
    """Whether a file still has the bytes that it had when it was planned."""
    facts = source.path.stat()
    is_same = (facts.st_size, facts.st_mtime_ns) == (source.num_bytes, source.modified_ns)
    return is_same or hash_file(source.path) == source.sha256


def read_sources(directory: Path) -> list[Source]:
    """The sources of the finished corpus."""
    if not (directory / MANIFEST).exists():
        return []
    path, count = directory / SOURCES, read_manifest(directory).num_sources
    fix = "restore it, or build the corpus again"
    if not path.is_file():
        raise DataError("missing-sources", f"{path} is missing; {fix}")
    sources = []
    with path.open("rb") as file:
        for number, line in enumerate(islice(file, count), start=1):
            where = f"{path}:{number}"
            sources.append(build_record(Source, parse_sealed(line, where=where, fix=fix), where=where, fix=fix))
    if len(sources) < count:
        raise DataError("corrupt-sources", f"{path} is corrupt: it has {len(sources)} of {count} sources; {fix}")
    return sources


def append_sources(directory: Path, sources: Sequence[Source]) -> None:
    """Rewrite the list with more sources; they become part of the corpus when the manifest counts them."""
    everything = [*read_sources(directory), *sources]
    with atomic_path(directory / SOURCES) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(seal(_source_json(source)), ensure_ascii=False)}\n" for source in everything)


def write_plan(directory: Path, plan: Plan) -> None:
    value = asdict(plan) | {"sources": [_source_json(source) for source in plan.sources]}
    write_sealed(directory / UNFINISHED / _PLAN, value)


def has_plan(directory: Path) -> bool:
    return (directory / UNFINISHED / _PLAN).exists()


def read_plan(directory: Path) -> Plan | None:
    """The plan of an unfinished build; None if there is none."""
    path = directory / UNFINISHED / _PLAN
    if not path.exists():
        return None
    fix = _start_over(path)
    return build_record(Plan, read_sealed(path, fix=fix), where=str(path), fix=fix)


def write_progress(directory: Path, done: BuildProgress) -> None:
    write_sealed(directory / UNFINISHED / _PROGRESS, asdict(done))


def read_progress(directory: Path) -> BuildProgress | None:
    """The progress of an unfinished build; None if no shard of it is finished."""
    path = directory / UNFINISHED / _PROGRESS
    if not path.exists():
        return None
    fix = _start_over(path)
    done = build_record(BuildProgress, read_sealed(path, fix=fix), where=str(path), fix=fix)
    check_manifest(done.manifest, where=str(path))
    plan = read_plan(directory)
    if min(*done.position, done.next_chunk) < 0 or (plan and done.position.source > len(plan.sources)):
        raise DataError("corrupt-progress", f'{path} is corrupt: "position" is not in the input; {fix}')
    return done


def _start_over(path: Path) -> str:
    return f"delete {path.parent} and run the build again: it then starts this batch of files over"


def part_path(directory: Path, chunk: int) -> Path:
    return directory / UNFINISHED / f"part-{chunk:06d}.safetensors"


def remove_state(directory: Path) -> None:
    """Delete the state of a build, its plan last: without a plan, the next build would use the other files."""
    remove_parts(directory)
    (directory / UNFINISHED / _PROGRESS).unlink(missing_ok=True)
    (directory / UNFINISHED / _PLAN).unlink(missing_ok=True)


def remove_parts(directory: Path, *, before: int | None = None) -> None:
    """Delete the part files, or only those of the chunks before a number."""
    for path in (directory / UNFINISHED).glob("part-*.safetensors"):
        if before is None or path < part_path(directory, before):
            path.unlink()


def _source_json(source: Source) -> dict[str, Any]:
    return asdict(source) | {"path": str(source.path)}


def resume_plan(
    directory: Path, wanted: Plan, files: Sequence[Path], options: ReadOptions, *, is_quiet: bool
) -> Plan | None:
    """The rest of the plan that an earlier call did not finish; `wanted` is how this call would build.

    Finished shards are kept. Files that were not begun are planned again if they were fixed, moved, deleted, not named
    this time, or are to be read differently: the newer call decides. A build that was killed just after its end is
    cleaned up, and so is one without a finished shard that this call would plan differently.
    """
    plan = read_plan(directory)
    if plan is None:
        return None
    if (directory / MANIFEST).exists() and read_manifest(directory).num_sources > plan.num_sources_before:
        remove_state(directory)
        return None
    done = read_progress(directory)
    position = done.position if done else START
    num_begun = position.source + (position.byte > 0)
    begun, ahead = plan.sources[:num_begun], plan.sources[num_begun:]
    # a missing file may come back (a disk, a mount); an existing one must not have changed
    has_changed = any(source.path.is_file() and not is_as_planned(source) for source in begun[position.source :])
    is_same_build = (plan.tokenizer, plan.options) == (wanted.tokenizer, wanted.options)
    if is_same_build and not has_changed and _is_still_valid(ahead, files, options):
        return plan
    if not is_quiet:
        print("options or files differ from the interrupted build; what was not begun is planned anew", file=sys.stderr)
    if begun and not has_changed:
        remove_parts(directory)  # they were cut according to the old plan
        write_plan(directory, replace(plan, sources=begun))
        return replace(plan, sources=begun)
    remove_state(directory)
    # its shards are not part of the corpus until the manifest says so
    kept = {record.name for record in read_manifest(directory).shards} if (directory / MANIFEST).exists() else set()
    for path in (directory / SHARDS).glob("*.safetensors"):
        if path.name not in kept:
            path.unlink()
    return None


def _is_still_valid(sources: Sequence[Source], files: Sequence[Path], options: ReadOptions) -> bool:
    """Whether all of these are named again, unchanged, and would be read in the same way."""
    named = set(files)
    for source in sources:
        if source.path not in named:
            return False
        now = describe_source(source.path, options, sha256=source.sha256)
        if replace(now, modified_ns=source.modified_ns) != source or not is_as_planned(source):
            return False
    return True
