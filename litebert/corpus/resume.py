"""After a build that stopped: what of its plan still stands when the next command comes.

What is in finished shards stays. What was not begun is only an intention, and the newer command is the better one: a
file that was mended, moved, deleted, not named again or is to be read in another way is planned anew.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from litebert.corpus.chunks import START
from litebert.corpus.documents import ReadOptions, describe_source
from litebert.corpus.shards import MANIFEST, SHARDS, read_manifest
from litebert.corpus.sources import Source
from litebert.corpus.unfinished import (
    Plan,
    is_as_planned,
    read_done,
    read_plan,
    remove_paperwork,
    remove_parts,
    write_plan,
)


def resume_plan(
    directory: Path, wanted: Plan, files: Sequence[Path], options: ReadOptions, *, is_quiet: bool
) -> Plan | None:
    """What is left to do of the batch that an earlier call left unfinished; `wanted` says how this call would build.

    One that was killed just after its end is put away, and so is one that nothing has come of yet and that this call
    would have planned otherwise.
    """
    plan = read_plan(directory)
    if plan is None:
        return None
    if (directory / MANIFEST).exists() and read_manifest(directory).num_sources > plan.num_sources_before:
        remove_paperwork(directory)
        return None
    done = read_done(directory)
    position = done.position if done else START
    num_begun = position.source + (position.byte > 0)
    begun, ahead = plan.sources[:num_begun], plan.sources[num_begun:]
    is_alike = (plan.tokenizer, plan.options) == (wanted.tokenizer, wanted.options)
    if is_alike and _still_stand(ahead, files, options) and not _has_changed(begun[position.source :]):
        return plan
    if not is_quiet:
        print("an interrupted build was planned otherwise; what it had not begun is planned anew", file=sys.stderr)
    if not begun or _has_changed(begun[position.source :]):
        _forget(directory)
        return None
    remove_parts(directory)  # they are cut as the old plan says
    write_plan(directory, replace(plan, sources=begun))
    return replace(plan, sources=begun)


def _still_stand(sources: Sequence[Source], files: Sequence[Path], options: ReadOptions) -> bool:
    named = set(files)
    return all(source.path in named and _is_read_alike(source, options) for source in sources)


def _is_read_alike(source: Source, options: ReadOptions) -> bool:
    now = describe_source(source.path, options, sha256=source.sha256)
    return replace(now, modified_ns=source.modified_ns) == source and is_as_planned(source)


def _has_changed(sources: Sequence[Source]) -> bool:
    """Whether one is there but not what it was. One that is gone may come back: a disk, a mount."""
    return any(source.path.is_file() and not is_as_planned(source) for source in sources)


def _forget(directory: Path) -> None:
    """Begin the batch again: its shards are no part of the corpus before the manifest says so."""
    remove_paperwork(directory)
    kept = {record.name for record in read_manifest(directory).shards} if (directory / MANIFEST).exists() else set()
    for path in (directory / SHARDS).glob("*.safetensors"):
        if path.name not in kept:
            path.unlink()
