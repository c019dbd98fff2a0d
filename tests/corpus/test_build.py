"""Building: the result depends only on text, tokenizer and options."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_builds import OPTIONS, documents_of, files_of, text_of

from litebert.cli.main import _run
from litebert.corpus import encode, writer
from litebert.corpus.build import build_corpus
from litebert.corpus.documents import Document
from litebert.corpus.shards import SHARDS, open_corpus, read_manifest
from litebert.corpus.statistics import measure_corpus, verify_corpus
from litebert.text.tokenizer import Tokenizer, load_tokenizer


def test_the_corpus_holds_the_ids_of_the_text(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", replace(OPTIONS, valid_share=0.0))
    expected = [
        [tokenizer.encode(sentence) for sentence in document.strip().split("\n")]
        for seed in range(5)
        for document in text_of(seed).split("\n\n")
    ]
    corpus = open_corpus(tmp_path / "corpus")
    assert len(corpus.shards) > 3
    found = [[list(s) for s in shard.sentences(i)] for shard in corpus.shards for i in range(shard.num_documents)]
    assert found == expected
    marks = np.concatenate([shard.content().word_starts for shard in corpus.shards])
    flat = [token for document in expected for sentence in document for token in sentence]
    assert list(marks) == list(tokenizer.word_starts[flat])
    assert corpus.tokenizer_fingerprint == tokenizer.fingerprint
    assert load_tokenizer(corpus.tokenizer_path).fingerprint == tokenizer.fingerprint
    assert corpus.manifest.text_bytes == sum(len(text_of(seed)) for seed in range(5))
    assert not (tmp_path / "corpus" / "unfinished").exists()


def test_several_processes_build_the_same_bytes(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "one", OPTIONS)
    build_corpus(texts, tokenizer, tmp_path / "three", replace(OPTIONS, processes=3))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "three")


@pytest.mark.parametrize("processes", [1, 2])
def test_openings_are_the_first_sentences_of_each_document(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, processes: int
) -> None:
    whole = replace(OPTIONS, valid_share=0.0)
    openings = replace(whole, read=replace(whole.read, first_sentences=2), processes=processes)
    build_corpus(texts, tokenizer, tmp_path / "whole", whole)
    build_corpus(texts, tokenizer, tmp_path / "openings", openings)
    of_whole, of_openings = (
        [
            [s.tolist() for s in shard.sentences(i)]
            for shard in open_corpus(path).shards
            for i in range(shard.num_documents)
        ]
        for path in (tmp_path / "whole", tmp_path / "openings")
    )
    assert max(map(len, of_whole)) > 2
    assert of_openings == [sentences[:2] for sentences in of_whole]


def test_a_corpus_from_before_openings_grows(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    path = tmp_path / "corpus" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["options"]["first_sentences"], manifest["checksum"]
    path.write_text(json.dumps(manifest))
    assert len(build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS).built) == 4


def test_a_sentence_without_tokens_is_not_stored(tokenizer: Tokenizer) -> None:
    documents = [Document("a", ("\u200b", "the cat.")), Document("b", ("\u200b",)), Document("c", ("the dog.",))]
    content = encode._encode_documents(documents, tokenizer)
    assert list(content.document_offsets) == [0, 1, 2]
    assert (np.diff(content.sentence_offsets) > 0).all()
    assert len(content.document_hashes) == 2


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_split_does_not_move_when_files_are_added_or_reordered(
    tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("split")
    paths = []
    for seed in range(4):
        paths.append(folder / f"{seed}.txt")
        paths[-1].write_text(text_of(seed, num_documents=15))
    few = data.draw(st.lists(st.sampled_from(paths), min_size=1, unique=True), label="first files")
    many = data.draw(st.permutations(paths), label="all files")
    for name, files in (("few", few), ("many", many)):
        build_corpus(files, tokenizer, folder / name, OPTIONS)
    splits = {
        (name, split): documents_of(open_corpus(folder / name, split))
        for name in ("few", "many")
        for split in ("train", "valid")
    }
    assert splits["few", "train"] <= splits["many", "train"]
    assert splits["few", "valid"] <= splits["many", "valid"]
    assert not splits["many", "train"] & splits["many", "valid"]
    assert splits["many", "valid"]


def test_the_share_of_validation_documents_is_as_specified() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)
    for share in (0.0, 0.01, 0.5):
        assert writer.in_valid_split(hashes, share).mean() == pytest.approx(share, abs=0.005)


def test_a_corpus_to_evaluate_on_is_all_validation_without_a_warning(
    tmp_path: Path, texts: list[Path], vocabulary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--tokenizer",
        str(vocabulary),
        "--out",
        str(tmp_path / "corpus"),
        "--valid-share",
        "1",
        "--processes",
        "1",
    ]
    assert _run(["corpus", "build", *map(str, texts), *words], debug=False) == 0
    assert open_corpus(tmp_path / "corpus").num_documents == 0
    assert open_corpus(tmp_path / "corpus", "valid").num_documents > 100
    assert "warning" not in capsys.readouterr().err
    assert writer.in_valid_split(np.array([2**64 - 1], np.uint64), 1.0).all()


@given(parts=st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=6), known=st.lists(st.integers(0, 20)))
def test_only_the_first_of_equal_documents_is_new(parts: list[list[int]], known: list[int]) -> None:
    seen = writer.SeenDocuments(np.array(known, dtype=np.uint64))
    expected = set(known)
    for part in parts:
        is_new = seen.add(np.array(part, dtype=np.uint64))
        for number, new in zip(part, is_new, strict=True):
            assert new == (number not in expected)
            expected.add(number)


@pytest.mark.parametrize("processes", [1, 2])
def test_deduplication_keeps_the_first_of_equal_documents(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, processes: int
) -> None:
    doubled = tmp_path / "doubled.txt"
    doubled.write_text(text_of(0) + "\nthe new one.\nthe end.\n\n" + text_of(2))
    options = replace(OPTIONS, deduplicate=True, processes=processes)
    build_corpus([texts[0], texts[2]], tokenizer, tmp_path / "corpus", options)
    result = build_corpus([doubled], tokenizer, tmp_path / "corpus", options)
    build_corpus([texts[0], texts[2]], tokenizer, tmp_path / "once", replace(options, processes=1))
    splits = ("train", "valid")
    num_once = sum(open_corpus(tmp_path / "once", split).num_documents for split in splits)
    num_grown = sum(open_corpus(tmp_path / "corpus", split).num_documents for split in splits)
    assert num_grown == num_once + 1
    assert result.manifest.counts["duplicate_documents"] >= 120


def test_check_names_a_damaged_shard(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert verify_corpus(tmp_path / "corpus")[1] == []
    path = tmp_path / "corpus" / SHARDS / "train-00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert verify_corpus(tmp_path / "corpus")[1] == [f"{path} is corrupt: its hash is not the manifest's"]


def test_statistics_count_what_is_there(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    statistics = measure_corpus(tmp_path / "corpus")
    train = statistics.splits["train"]
    corpus = open_corpus(tmp_path / "corpus")
    lengths = [len(s) for shard in corpus.shards for i in range(shard.num_documents) for s in shard.sentences(i)]
    assert train.num_sentences == len(lengths) == sum(train.tokens_per_sentence.counts)
    assert train.tokens_per_sentence.counts[0] == sum(length <= 4 for length in lengths)
    assert train.tokens_per_sentence.longest == max(lengths)
    assert train.tokens_per_sentence.mean == pytest.approx(sum(lengths) / len(lengths))
    assert sum(train.tokens_per_document.counts) == train.num_documents
    assert train.unknown_rate == train.num_unknown / train.num_tokens


def test_the_command_line_builds_checks_and_counts(
    tmp_path: Path,
    texts: list[Path],
    vocabulary: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def litebert(*words: str | Path) -> tuple[int, str, str]:
        code = _run([*map(str, words)], debug=False)
        return code, *capsys.readouterr()

    out = tmp_path / "corpus"
    ending = ("-t", vocabulary, "--out", out, "--processes", "1")
    code, shown, announced = litebert("corpus", "build", tmp_path / "texts", *ending)
    assert code == 0
    assert f"{texts[1]}: lines, gzip" in announced
    assert f"{out} train: " in shown
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat.\na dog.\n")))
    assert litebert("corpus", "build", "-", *ending)[0] == 0
    assert read_manifest(out).num_sources == 6
    assert "verified" in litebert("corpus", "check", out)[1]
    _, shown, _ = litebert("corpus", "stats", out, "--json", "--plot", tmp_path / "lengths.png")
    assert json.loads(shown)["splits"]["train"]["num_documents"] > 0
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")
    assert "unknown rate" in litebert("corpus", "stats", out)[1]
    (out / SHARDS / "train-00000.safetensors").write_bytes(b"short")
    code, _, complaint = litebert("corpus", "check", out)
    assert code == 2
    assert "train-00000.safetensors is corrupt" in complaint
    code, _, complaint = litebert("corpus", "build", tmp_path / "none", *ending)
    assert (code, complaint.count("\n")) == (2, 1)
    assert litebert("corpus", "build", texts[0], *ending, "--on-error", "ignore")[0] == 2
