"""Shards: what is written is read back, and corruption is found."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import (
    FORMAT_VERSION,
    Manifest,
    Shard,
    ShardContent,
    TokenizerFacts,
    id_dtype,
    offsets,
    open_corpus,
    shard_name,
    shard_path,
    write_manifest,
    write_shard,
)

sentences = st.lists(st.integers(0, 99), min_size=1, max_size=6)
documents = st.lists(st.lists(sentences, min_size=1, max_size=4), max_size=5)
STARTS_WORD = np.arange(100) % 3 == 0


def pack_documents(documents: list[list[list[int]]], *, starts_word: npt.NDArray[np.bool_]) -> ShardContent:
    """A shard of documents given as lists of sentences of ids; `starts_word` says which ids begin a word."""
    sentences = [sentence for document in documents for sentence in document]
    token_ids = np.fromiter((token for sentence in sentences for token in sentence), dtype=id_dtype(len(starts_word)))
    return ShardContent(
        token_ids=token_ids,
        word_starts=starts_word[token_ids],
        sentence_offsets=offsets([len(sentence) for sentence in sentences]),
        document_offsets=offsets([len(document) for document in documents]),
        document_hashes=np.arange(len(documents), dtype=np.uint64),
    )


def write_corpus(directory: Path, documents: list[list[list[int]]], *, vocab_size: int = 100) -> Manifest:
    starts_word = np.arange(vocab_size) % 3 == 0
    content = pack_documents(documents, starts_word=starts_word)
    record = write_shard(shard_path(directory, shard_name("train", 0)), content, split="train", unk_id=1)
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        tokenizer=TokenizerFacts(kind="unigram", fingerprint="f00d", words="pieces", vocab_size=vocab_size, unk_id=1),
        options={"valid_share": 0.01},
        num_sources=1,
        text_bytes=0,
        counts={},
        problems=[],
        shards=(record,),
    )
    write_manifest(directory / "manifest.json", manifest)
    return manifest


@given(documents=documents, vocab_size=st.sampled_from([100, 70_000]))
def test_reading_a_shard_gives_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[list[int]]], vocab_size: int
) -> None:
    directory = tmp_path_factory.mktemp("corpus")
    manifest = write_corpus(directory, documents, vocab_size=vocab_size)
    corpus = open_corpus(directory)
    assert corpus.manifest == manifest
    assert corpus.num_documents == len(documents)
    assert corpus.num_sentences == sum(map(len, documents))
    (shard,) = corpus.shards
    assert [[list(s) for s in shard.sentences(i)] for i in range(shard.num_documents)] == documents
    assert shard.token_ids.dtype == (np.uint16 if vocab_size == 100 else np.uint32)
    flat = [token for document in documents for sentence in document for token in sentence]
    assert list(shard.content().word_starts) == [token % 3 == 0 for token in flat]
    assert len(shard.word_starts) == -(-len(flat) // 8)
    assert shard.record.num_unknown == flat.count(1)


def test_a_shard_opens_with_the_safetensors_library(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[[5, 6], [7]], [[8]]])
    arrays = safetensors.numpy.load_file(shard_path(tmp_path, shard_name("train", 0)))
    assert list(arrays["token_ids"]) == [5, 6, 7, 8]
    assert list(arrays["sentence_offsets"]) == [0, 2, 3, 4]
    assert list(arrays["document_offsets"]) == [0, 2, 3]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    content = pack_documents([[[1, 2], [3]]], starts_word=STARTS_WORD)
    records = [write_shard(tmp_path / folder / "x", content, split="valid", unk_id=1) for folder in "ab"]
    assert records[0] == records[1]
    assert (tmp_path / "a" / "x").read_bytes() == (tmp_path / "b" / "x").read_bytes()


def test_sections_are_aligned_in_the_file(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[[1, 2, 3]], [[4]], [[5]]])
    (shard,) = open_corpus(tmp_path).shards
    for array in (shard.token_ids, shard.sentence_offsets, shard.document_offsets, shard.document_hashes):
        assert array.flags.aligned


def test_a_shard_pickles_as_its_path(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[list(range(100))] * 1000])
    (shard,) = open_corpus(tmp_path).shards
    assert len(shard.token_ids) == 100_000
    pickled = pickle.dumps(shard)
    assert len(pickled) < 2000
    copy = pickle.loads(pickled)
    assert isinstance(copy, Shard)
    assert np.array_equal(copy.token_ids, shard.token_ids)


def test_a_truncated_shard_is_refused_with_its_name(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[[1, 2, 3]]])
    path = shard_path(tmp_path, shard_name("train", 0))
    path.write_bytes(path.read_bytes()[:-1])
    with refuses(DataError, "corrupt-shard", at="train-00000.safetensors"):
        open_corpus(tmp_path)


def test_a_missing_shard_is_refused_with_its_name(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[[1, 2, 3]]])
    shard_path(tmp_path, shard_name("train", 0)).unlink()
    with refuses(DataError, "corrupt-shard", at="train-00000.safetensors"):
        open_corpus(tmp_path)


def test_a_directory_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with refuses(DataError, "not-a-corpus"):
        open_corpus(tmp_path / "nothing")
    with refuses(DataError, "not-a-corpus"):
        open_corpus(tmp_path)
    (tmp_path / ".lock").touch()
    with refuses(DataError, "not-a-corpus"):
        open_corpus(tmp_path)


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    manifest = write_corpus(tmp_path, [[[1]]])
    write_manifest(tmp_path / "manifest.json", replace(manifest, format_version=99))
    with refuses(DataError, "format-version"):
        open_corpus(tmp_path)


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path, [[[1]]])
    with refuses(ConfigError, "unknown-split"):
        open_corpus(tmp_path, "test")  # type: ignore[arg-type]
