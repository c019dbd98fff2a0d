"""The paperwork of a build: which sources a corpus has, what is planned, how far it has come.

sources.jsonl                 every source of a finished corpus, one a line; the manifest says how many count
unfinished/plan.json          the sources being built now
unfinished/progress.json      the shards of them that are finished, and where in the input those end
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from litebert.core.errors import ConfigError, DataError
from litebert.core.files import atomic_path, hash_file
from litebert.core.progress import ProgressBar
from litebert.core.sealed import build_record, parse_sealed, read_sealed, seal, write_sealed
from litebert.corpus.chunks import START, Position
from litebert.corpus.documents import ReadOptions, describe_source
from litebert.corpus.shards import MANIFEST, Manifest, TokenizerFacts, check_manifest, read_manifest
from litebert.corpus.sources import Source, name_of

SOURCES = "sources.jsonl"
UNFINISHED = "unfinished"
_PLAN = "plan.json"
_PROGRESS = "progress.json"
_MAX_LISTED = 12


@dataclass(frozen=True)
class Plan:
    """A batch of sources to be built into a corpus that has `num_sources_before` already."""

    tokenizer: TokenizerFacts
    options: dict[str, Any]
    num_sources_before: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Done:
    """How far a batch has come: the manifest so far, where in the input it ends, and the chunk that comes next."""

    manifest: Manifest
    position: Position = START
    next_chunk: int = 0


def plan_sources(
    files: Sequence[Path], known: Sequence[Source], options: ReadOptions, *, is_quiet: bool
) -> tuple[Source, ...]:
    """The files that are not among the known sources. A source is its bytes: a moved or doubled file is no new one."""
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
                _check_read_alike(path, by_hash[sha256], options)
            elif path in known_paths:
                raise DataError(f"{path} has changed since it was built into this corpus; build a new one")
            else:
                by_hash[sha256] = describe_source(path, options, sha256=sha256)
                new.append(by_hash[sha256])
            position += size
            progress.move_to(position)
    return tuple(new)


def _check_read_alike(path: Path, known: Source, options: ReadOptions) -> None:
    remedy = "build a new corpus, or give the former value"
    if options.format not in ("auto", known.format) and not known.packing.startswith("parquet"):
        raise ConfigError(f"{name_of(path)} was read as {known.format}, not --format {options.format}; {remedy}")
    if known.format == "jsonl" and options.field != known.field:
        raise ConfigError(f"{name_of(path)} was read with --field {known.field}, not {options.field}; {remedy}")


def describe_sources(sources: Sequence[Source]) -> list[str]:
    """What has been found, for a person to check: a line a file, or a line a kind of file if they are many."""
    if len(sources) <= _MAX_LISTED:
        return [f"{source.name}: {source.format}, {source.packing}, {_megabytes([source])}" for source in sources]
    kinds = sorted({(source.format, source.packing) for source in sources})
    alike = {kind: [source for source in sources if (source.format, source.packing) == kind] for kind in kinds}
    return [f"{len(some):,} files: {kind[0]}, {kind[1]}, {_megabytes(some)}" for kind, some in alike.items()]


def _megabytes(sources: Sequence[Source]) -> str:
    return f"{sum(source.num_bytes for source in sources) / 1e6:,.1f} MB"


def check_unchanged(sources: Iterable[Source]) -> None:
    """Refuse to go on with files that are gone or not what they were when the batch was planned."""
    for source in sources:
        if not source.path.is_file():
            raise DataError(f"{source.name} is gone, but not wholly built yet; put it back, or build a new corpus")
        if not is_as_planned(source):
            raise DataError(f"{source.name} has changed since its building began; build a new corpus")


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
        raise DataError(f"{path} is missing; {fix}")
    sources = []
    with path.open("rb") as file:
        for number, line in enumerate(islice(file, count), start=1):
            where = f"{path}:{number}"
            sources.append(build_record(Source, parse_sealed(line, where=where, fix=fix), where=where, fix=fix))
    if len(sources) < count:
        raise DataError(f"{path} is corrupt: it has {len(sources)} of {count} sources; {fix}")
    return sources


def append_sources(directory: Path, sources: Sequence[Source]) -> None:
    """Write the ledger anew with more sources; they count when the manifest says so."""
    everything = [*read_sources(directory), *sources]
    with atomic_path(directory / SOURCES) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(seal(_source_json(source)), ensure_ascii=False)}\n" for source in everything)


def write_plan(directory: Path, plan: Plan) -> None:
    value = asdict(plan) | {"sources": [_source_json(source) for source in plan.sources]}
    write_sealed(directory / UNFINISHED / _PLAN, value)


def has_plan(directory: Path) -> bool:
    return (directory / UNFINISHED / _PLAN).exists()


def read_plan(directory: Path) -> Plan | None:
    """The batch that is being built; None if there is none."""
    path = directory / UNFINISHED / _PLAN
    if not path.exists():
        return None
    fix = _begin_anew(path)
    return build_record(Plan, read_sealed(path, fix=fix), where=str(path), fix=fix)


def write_done(directory: Path, done: Done) -> None:
    write_sealed(directory / UNFINISHED / _PROGRESS, asdict(done))


def read_done(directory: Path) -> Done | None:
    path = directory / UNFINISHED / _PROGRESS
    if not path.exists():
        return None
    fix = _begin_anew(path)
    done = build_record(Done, read_sealed(path, fix=fix), where=str(path), fix=fix)
    check_manifest(done.manifest, where=str(path))
    plan = read_plan(directory)
    if min(*done.position, done.next_chunk) < 0 or (plan and done.position.source > len(plan.sources)):
        raise DataError(f'{path} is corrupt: "position" is not in the input; {fix}')
    return done


def _begin_anew(path: Path) -> str:
    return f"delete {path.parent} and run the build again: the batch begins anew"


def part_path(directory: Path, chunk: int) -> Path:
    return directory / UNFINISHED / f"part-{chunk:06d}.safetensors"


def remove_paperwork(directory: Path) -> None:
    """Forget a batch. The plan goes last: the next batch would take what is left for its own."""
    remove_parts(directory)
    (directory / UNFINISHED / _PROGRESS).unlink(missing_ok=True)
    (directory / UNFINISHED / _PLAN).unlink(missing_ok=True)


def remove_parts(directory: Path) -> None:
    for path in (directory / UNFINISHED).glob("part-*.safetensors"):
        path.unlink()


def _source_json(source: Source) -> dict[str, Any]:
    return asdict(source) | {"path": str(source.path)}
