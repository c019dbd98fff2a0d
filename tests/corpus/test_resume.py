"""After an interrupted build, finished shards are kept, and the rest is planned as the next command says."""

import io
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.corpus import encode
from litebert.corpus.build import BuildOptions, build_corpus
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import ReadOptions
from litebert.corpus.shards import SHARDS
from litebert.text.tokenizer import Tokenizer, load_tokenizer

LIMITS = Limits(chunk=2000, shard=6000, line=4000, whole_file=4000)
OPTIONS = BuildOptions(read=ReadOptions(format="lines", limits=LIMITS), valid_share=0.2, is_quiet=True)
SKIPPING = replace(OPTIONS, read=replace(OPTIONS.read, on_error="skip"))
GOOD = "".join(f"the cat sat {n}.\nthe dog ran {n}.\n\n" for n in range(20)).encode()
LONG = "".join(f"a house of the cat {n}.\nit ran to the mat {n}.\n\n" for n in range(300)).encode()
BAD = b"the cat.\nthe \xff dog.\n\n"


def files_of(directory: Path) -> dict[str, bytes]:
    wanted = [directory / "manifest.json", *(directory / SHARDS).iterdir()]
    return {path.name: path.read_bytes() for path in sorted(wanted)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, of which the last is bad; the first is more than a shard if it is made long."""
    (tmp_path / "texts").mkdir()
    for name, data in (("a.txt", GOOD), ("b.txt", GOOD[:-30]), ("c.txt", GOOD + BAD)):
        (tmp_path / "texts" / name).write_bytes(data)
    return tmp_path / "texts"


def stop_at_bad_input(folder: Path, tokenizer: Tokenizer, out: Path) -> None:
    with refuses(DataError, "bad-text"):
        build_corpus([folder], tokenizer, out, OPTIONS)


@pytest.mark.parametrize("has_finished_shards", [False, True])
@pytest.mark.parametrize("options", [OPTIONS, SKIPPING])
def test_a_fixed_file_builds(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, has_finished_shards: bool, options: BuildOptions
) -> None:
    if has_finished_shards:
        (folder / "a.txt").write_bytes(LONG)
    stop_at_bad_input(folder, tokenizer, tmp_path / "corpus")
    assert (tmp_path / "corpus" / "unfinished" / "progress.json").exists() == has_finished_shards
    (folder / "c.txt").write_bytes(GOOD + BAD.replace(b"\xff", b"old"))
    result = build_corpus([folder], tokenizer, tmp_path / "corpus", options)
    assert {source.path.name for source in result.built} == {"a.txt", "b.txt", "c.txt"}
    assert (result.manifest.num_sources, result.num_known) == (3, 0)
    whole = build_corpus([folder], tokenizer, tmp_path / "whole", OPTIONS).manifest
    num_documents = [sum(r.num_documents for r in m.shards) for m in (result.manifest, whole)]
    assert num_documents[0] == num_documents[1]


def test_a_fixed_file_that_was_partly_built_is_built_again_with_its_chunk(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer
) -> None:
    (folder / "c.txt").write_bytes(LONG + BAD)
    stop_at_bad_input(folder, tokenizer, tmp_path / "corpus")
    (folder / "c.txt").write_bytes(GOOD[:900])
    build_corpus([folder], tokenizer, tmp_path / "corpus", OPTIONS)
    build_corpus([folder], tokenizer, tmp_path / "whole", OPTIONS)
    assert files_of(tmp_path / "corpus") == files_of(tmp_path / "whole")


def test_a_deleted_or_unnamed_bad_file_is_not_built(tmp_path: Path, folder: Path, tokenizer: Tokenizer) -> None:
    for out in ("deleted", "unnamed"):
        stop_at_bad_input(folder, tokenizer, tmp_path / out)
    good = [folder / "a.txt", folder / "b.txt"]
    assert build_corpus(good, tokenizer, tmp_path / "unnamed", OPTIONS).manifest.num_sources == 2
    (folder / "c.txt").unlink()
    assert build_corpus([folder], tokenizer, tmp_path / "deleted", OPTIONS).manifest.num_sources == 2


def test_a_file_that_is_gone_when_partly_built_is_named(tmp_path: Path, folder: Path, tokenizer: Tokenizer) -> None:
    (folder / "c.txt").write_bytes(LONG + BAD)
    stop_at_bad_input(folder, tokenizer, tmp_path / "corpus")
    (folder / "c.txt").unlink()
    with refuses(DataError, "missing-source", at="c.txt"):
        build_corpus([folder], tokenizer, tmp_path / "corpus", OPTIONS)


def test_standard_input_is_read_again_after_a_fix(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD + BAD)))
    with refuses(DataError, "bad-text", at="input:62"):
        build_corpus(["-"], tokenizer, tmp_path / "corpus", OPTIONS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    manifest = build_corpus(["-"], tokenizer, tmp_path / "corpus", OPTIONS).manifest
    assert (manifest.num_sources, sum(record.num_documents for record in manifest.shards)) == (1, 20)


def test_another_format_or_tokenizer_is_taken_while_nothing_is_finished(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, other_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "c.txt").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(encode._Worker, "encode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build_corpus([folder], tokenizer, tmp_path / "corpus", OPTIONS)
    changed = replace(OPTIONS, read=replace(OPTIONS.read, format="prose"), valid_share=0.0)
    for out in ("corpus", "whole"):
        build_corpus([folder], other_tokenizer, tmp_path / out, changed)
    assert files_of(tmp_path / "corpus") == files_of(tmp_path / "whole")


def test_another_tokenizer_is_refused_once_a_shard_is_finished(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, other_tokenizer: Tokenizer
) -> None:
    (folder / "a.txt").write_bytes(LONG)
    stop_at_bad_input(folder, tokenizer, tmp_path / "corpus")
    with refuses(ConfigError, "tokenizer-mismatch"):
        build_corpus([folder], other_tokenizer, tmp_path / "corpus", OPTIONS)


def test_standard_input_is_gone_on_with_from_another_folder(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LONG + BAD)))
    with refuses(DataError, "bad-text"):
        build_corpus(["-"], tokenizer, Path("corpus"), OPTIONS)
    monkeypatch.chdir(tmp_path / "elsewhere")
    more = tmp_path / "more.txt"
    more.write_bytes(GOOD)
    assert build_corpus([more], tokenizer, Path("../corpus"), SKIPPING).manifest.num_sources == 2


def test_a_build_with_everything_skipped_is_an_error_and_can_be_fixed(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"the \xff dog.\n")
    with refuses(DataError, "no-documents", at="text.txt:1"):
        build_corpus([text], tokenizer, tmp_path / "corpus", SKIPPING)
    text.write_bytes(GOOD)
    assert build_corpus([text], tokenizer, tmp_path / "corpus", SKIPPING).manifest.num_sources == 1


@pytest.mark.parametrize("name", ["plan.json", "progress.json"])
@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"sources": [{"what": 1}]}'])
def test_broken_paperwork_is_named_and_can_be_deleted(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, name: str, text: str
) -> None:
    (folder / "a.txt").write_bytes(LONG)
    stop_at_bad_input(folder, tokenizer, tmp_path / "corpus")
    unfinished = tmp_path / "corpus" / "unfinished"
    (unfinished / name).write_text(text)
    with pytest.raises(DataError) as caught:
        build_corpus([folder], tokenizer, tmp_path / "corpus", SKIPPING)
    assert str(unfinished / name) in str(caught.value)
    assert f"delete {unfinished}" in str(caught.value)
    shutil.rmtree(unfinished)
    for out in ("corpus", "whole"):
        build_corpus([folder], tokenizer, tmp_path / out, SKIPPING)
    assert files_of(tmp_path / "corpus") == files_of(tmp_path / "whole")


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path: Path, folder: Path, tokenizer: Tokenizer) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_bytes(GOOD)
    with refuses(ConfigError, "bad-name", at="udcff.txt"):
        build_corpus([folder], tokenizer, tmp_path / "corpus", OPTIONS)


def test_a_tokenizer_that_made_no_shard_is_replaced(tmp_path: Path, folder: Path, other_tokenizer: Tokenizer) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "tokenizer").mkdir(parents=True)
    (corpus / "tokenizer" / "half").touch()
    (corpus / ".lock").touch()
    build_corpus([folder], other_tokenizer, corpus, SKIPPING)
    assert load_tokenizer(corpus / "tokenizer").fingerprint == other_tokenizer.fingerprint
