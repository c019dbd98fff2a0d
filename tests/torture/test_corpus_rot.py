"""A corpus that rots: every mutant of its files is refused or read alike, and none reaches compiled code unchecked."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from mutants import read_mutants
from other_corpora import rewrite_shard
from refusals import refuses

from litebert.core import verified
from litebert.core.errors import DataError
from litebert.core.sealed import is_sealed
from litebert.corpus.shards import open_corpus
from litebert.corpus.statistics import verify_corpus

SHARD = "shards/train-00000.safetensors"


@pytest.fixture
def corpus(tmp_path: Path, tiny_corpus: Path) -> Path:
    return Path(shutil.copytree(tiny_corpus, tmp_path / "corpus"))


def read_all(corpus: Path) -> list[list[bytes]]:
    """Everything that training reads of a corpus."""
    contents = [shard.content() for split in ("train", "valid") for shard in open_corpus(corpus, split).shards]
    return [[array.tobytes() for array in content] for content in contents]


@pytest.mark.parametrize("name", ["manifest.json", SHARD])
def test_no_mutant_of_a_corpus_is_read_otherwise(corpus: Path, name: str) -> None:
    is_json = name.endswith(".json")
    found = read_mutants(corpus / name, lambda: read_all(corpus), seed=1, count=120, is_json=is_json)
    assert not found["otherwise"]
    assert len(found["refused"]) > 100


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("sentence_offsets", 1, 2**40),
        ("sentence_offsets", 1, -1),
        ("sentence_offsets", 0, 1),
        ("document_offsets", 1, 0),
        ("document_offsets", -1, 10**9),
    ],
)
def test_offsets_that_lead_astray_are_refused_whatever_the_hash_says(
    corpus: Path, name: str, place: int, value: int
) -> None:
    (shard, *_) = open_corpus(corpus).shards
    changed = np.array(shard._sections[name])
    changed[place] = value
    rewrite_shard(corpus, **{name: changed})
    with refuses(DataError, "corrupt-shard"):
        open_corpus(corpus)


def test_ids_beyond_the_vocabulary_are_refused_whatever_the_hash_says(corpus: Path) -> None:
    (shard, *_) = open_corpus(corpus).shards
    changed = np.array(shard.token_ids)
    changed[7] = 60_000
    rewrite_shard(corpus, token_ids=changed)
    with refuses(DataError, "corrupt-shard"):
        open_corpus(corpus)


def test_counts_that_are_not_the_shards_are_refused_without_a_checksum_too(corpus: Path) -> None:
    file = corpus / "manifest.json"
    assert is_sealed(file)
    manifest = json.loads(file.read_text())
    del manifest["checksum"]  # as earlier versions wrote it
    file.write_text(json.dumps(manifest))
    before = read_all(corpus)
    manifest["shards"][0]["num_tokens"] = 5
    file.write_text(json.dumps(manifest))
    assert "is not as long as the manifest says" in verify_corpus(corpus, is_quiet=True)[1][0]
    manifest["shards"][0]["name"] = "../../train-00000.safetensors"
    file.write_text(json.dumps(manifest))
    with refuses(DataError, "corrupt-manifest", at="manifest.json"):
        open_corpus(corpus)
    assert before


def test_a_shard_is_read_for_its_hash_once_and_again_after_it_changed(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    from litebert.corpus import shards

    real = shards.hash_file
    monkeypatch.setattr(shards, "hash_file", lambda path: hashed.append(path.name) or real(path))
    open_corpus(corpus)
    monkeypatch.setattr(verified, "_remembered", set())  # another process
    open_corpus(corpus)
    assert hashed == ["train-00000.safetensors"]
    os.utime(corpus / SHARD)
    open_corpus(corpus)
    assert len(hashed) == 2
    data = bytearray((corpus / SHARD).read_bytes())
    facts = (corpus / SHARD).stat()
    data[-100] ^= 1
    (corpus / SHARD).write_bytes(data)
    os.utime(corpus / SHARD, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # the time of change still tells
    with refuses(DataError, "corrupt-shard", at="train-00000.safetensors"):
        open_corpus(corpus)


def test_without_a_cache_folder_a_process_remembers_alone(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBERT_CACHE", "/proc/nowhere")
    monkeypatch.setattr(verified, "_remembered", set())
    entry = verified.describe_state(corpus / SHARD, "is whole")
    assert not verified.is_verified(entry)
    verified.remember_verified(entry)
    assert verified.is_verified(entry)
    assert not verified.is_verified(verified.describe_state(corpus / SHARD, "is something else"))
