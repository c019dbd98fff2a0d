"""Corpora with another text than they were built with, and manifests that say so: no rot, but another corpus."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from litebert.corpus.sections import write_sections
from litebert.corpus.shards import Split, open_corpus, read_manifest, write_manifest


def rewrite_shard(corpus: Path, split: Split = "train", **arrays: np.ndarray) -> None:
    """Put other arrays into the first shard of a split, with the hash that fits them."""
    manifest = read_manifest(corpus)
    (shard, *_) = open_corpus(corpus, split).shards
    sections = {name: np.array(array) for name, array in shard._sections.items()} | arrays
    size, sha256 = write_sections(shard.path, sections)
    records = [replace(r, num_bytes=size, sha256=sha256) if r.name == shard.path.name else r for r in manifest.shards]
    write_manifest(corpus / "manifest.json", replace(manifest, shards=tuple(records)))


def change_text(corpus: Path, split: Split = "train") -> None:
    """Give a split's first token another id."""
    token_ids = np.array(open_corpus(corpus, split).shards[0].token_ids)
    token_ids[0] += 1
    rewrite_shard(corpus, split, token_ids=token_ids)
