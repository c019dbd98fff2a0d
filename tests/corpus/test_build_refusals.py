"""Errors of a build, by code and place."""

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refuses
from small_builds import OPTIONS, text_of

from litebert.core.errors import ConfigError, DataError
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.chunks import Limits
from litebert.text.tokenizer import Tokenizer


def test_another_tokenizer_is_refused(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, other_tokenizer: Tokenizer
) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    with refuses(ConfigError, "tokenizer-mismatch"):
        build_corpus(texts, other_tokenizer, tmp_path / "corpus", OPTIONS)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (replace(OPTIONS, valid_share=0.3), "other-options"),
        (replace(OPTIONS, deduplicate=True), "other-options"),
        (replace(OPTIONS, read=replace(OPTIONS.read, first_sentences=2)), "other-options"),
        (replace(OPTIONS, read=replace(OPTIONS.read, first_sentences=0)), "bad-count"),
        (replace(OPTIONS, read=replace(OPTIONS.read, format="prose")), "other-format"),
        (replace(OPTIONS, read=replace(OPTIONS.read, limits=Limits())), "other-options"),
    ],
)
def test_other_options_are_refused(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, changed: BuildOptions, code: str
) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    with refuses(ConfigError, code):
        build_corpus(texts[:1], tokenizer, tmp_path / "corpus", changed)


def test_a_changed_source_is_refused(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    texts[0].write_text(text_of(99))
    with refuses(DataError, "changed-source", at="0.txt"):
        build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)


@pytest.mark.parametrize("content", [b"{", b"\xff\n", b'{"path": "x"}\n', b""], ids=["cut", "binary", "other", "empty"])
def test_a_damaged_list_of_sources_is_named_with_the_remedy(
    content: bytes, tmp_path: Path, texts: list[Path], tokenizer: Tokenizer
) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    (tmp_path / "corpus" / "sources.jsonl").write_bytes(content)
    with pytest.raises(DataError) as caught:
        build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert caught.value.code in ("bad-json", "corrupt-file", "corrupt-sources")
    assert str(tmp_path / "corpus" / "sources.jsonl") in str(caught.value)


def test_two_builds_do_not_write_one_corpus(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    (tmp_path / "corpus").mkdir()
    with (tmp_path / "corpus" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with refuses(ConfigError, "busy"):
            build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)


def test_a_directory_with_other_things_is_refused(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    with refuses(ConfigError, "not-a-corpus"):
        build_corpus(texts, tokenizer, tmp_path / "texts", OPTIONS)


@pytest.mark.parametrize("processes", [1, 2])
def test_bad_input_stops_the_build_unless_it_is_skipped(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, processes: int
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"the cat.\nthe \xff dog.\n\n" + text_of(7).encode())
    options = replace(OPTIONS, processes=processes)
    with refuses(DataError, "bad-text"):
        build_corpus([*texts, bad], tokenizer, tmp_path / "corpus", options)
    options = replace(options, read=replace(options.read, on_error="skip"))
    manifest = build_corpus([*texts, bad], tokenizer, tmp_path / "corpus", options).manifest
    assert manifest.counts["encoding"] == 1
    assert manifest.problems == [f"{bad}:2: byte 0xff at column 5 is not UTF-8"]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("pipe", "not-a-file"),
        ("dangling", "not-a-file"),
        ("", "no-file"),
        ("mistyped.txt", "no-file"),
        ("empty", "no-file"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused_and_claim_no_folder(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, pattern: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("dangling").symlink_to("nowhere")
    Path("empty").mkdir()
    with refuses(DataError if pattern == "empty" else ConfigError, code, at=pattern):
        build_corpus([pattern], tokenizer, tmp_path / "corpus", OPTIONS)
    assert not (tmp_path / "corpus").exists()
