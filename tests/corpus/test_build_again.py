"""A build that was stopped, killed or extended ends with the same bytes as an uninterrupted one."""

import errno
import gzip
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refuses
from small_builds import OPTIONS, files_of, text_of

from litebert.core.errors import ConfigError, DataError
from litebert.corpus import build, encode
from litebert.corpus.build import build_corpus
from litebert.corpus.shards import open_corpus
from litebert.text.tokenizer import Tokenizer


@pytest.mark.parametrize("stop_at", range(1, 12, 2))
def test_an_interrupted_build_resumes_to_the_same_bytes(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    build_corpus(texts, tokenizer, tmp_path / "whole", OPTIONS)
    encoded = []

    def encode_until(self: encode._Worker, chunk: object) -> None:
        encoded.append(chunk)
        if len(encoded) == stop_at:
            raise KeyboardInterrupt
        original(self, chunk)  # type: ignore[arg-type]

    original = encode._Worker.encode
    monkeypatch.setattr(encode._Worker, "encode", encode_until)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(texts, tokenizer, tmp_path / "stopped", OPTIONS)
    with refuses(DataError, "not-a-corpus"):
        open_corpus(tmp_path / "stopped")
    build_corpus(texts, tokenizer, tmp_path / "stopped", OPTIONS)
    assert files_of(tmp_path / "whole") == files_of(tmp_path / "stopped")
    num_chunks = len(encoded) - 1  # the one that stopped was begun again
    encoded.clear()
    stop_at = -1
    build_corpus(texts, tokenizer, tmp_path / "again", OPTIONS)
    assert num_chunks == len(encoded), "a chunk that was finished has been encoded again"


def test_a_finished_corpus_is_not_built_again(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    before = files_of(tmp_path / "corpus")
    monkeypatch.setattr(build, "encode_chunks", lambda *_, **__: pytest.fail("encoded again"))
    result = build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert (result.num_known, result.built) == (5, ())
    assert files_of(tmp_path / "corpus") == before


def test_a_corpus_grows_without_touching_what_it_has(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts[:2], tokenizer, tmp_path / "corpus", OPTIONS)
    before = files_of(tmp_path / "corpus")
    for path in texts[:2]:
        path.rename(path.with_suffix(".moved"))  # a known source is its bytes, not its name
    result = build_corpus([tmp_path / "texts"], tokenizer, tmp_path / "corpus", OPTIONS)
    assert [source.path.name for source in result.built] == ["2.txt", "3.txt", "4.txt"]
    after = files_of(tmp_path / "corpus")
    assert {name: data for name, data in after.items() if name in before and name != "manifest.json"} == {
        name: data for name, data in before.items() if name != "manifest.json"
    }
    assert result.manifest.num_sources == 5
    assert (
        open_corpus(tmp_path / "corpus").num_documents + open_corpus(tmp_path / "corpus", "valid").num_documents == 300
    )


def test_files_added_while_a_build_was_stopped_are_built_after_it(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(build.ShardWriter, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build_corpus(texts[:2], tokenizer, tmp_path / "corpus", OPTIONS)
    result = build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert [source.path for source in result.built] == texts
    assert result.manifest.num_sources == 5


@pytest.mark.parametrize("step", ["write_progress", "remove_parts", "append_sources", "write_manifest", "remove_state"])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_kill_around_the_last_steps_leaves_nothing_for_the_next_batch_to_mistake(
    tmp_path: Path,
    texts: list[Path],
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    is_before: bool,
) -> None:
    original = getattr(build, step)

    def kill(*values: object, **options: object) -> None:
        if not is_before:
            original(*values, **options)
        raise KeyboardInterrupt

    for files in (texts[:1], texts):
        build_corpus(files, tokenizer, tmp_path / "whole", OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(build, step, kill)
        with pytest.raises(KeyboardInterrupt):
            build_corpus(texts[:1], tokenizer, tmp_path / "killed", OPTIONS)
    build_corpus(texts, tokenizer, tmp_path / "killed", OPTIONS)
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_the_same_file_twice_is_built_once(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(texts[0].read_bytes())
    result = build_corpus([texts[0], copy], tokenizer, tmp_path / "corpus", OPTIONS)
    assert (len(result.built), result.num_known) == (1, 1)


def test_a_full_disk_is_explained_and_counts_no_partial_shard(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_corpus(texts, tokenizer, tmp_path / "whole", OPTIONS)
    real_fsync, calls = os.fsync, []

    def fill_up(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 60:
            raise OSError(errno.ENOSPC, "No space left on device")
        real_fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fill_up)
        with refuses(DataError, "disk"):
            build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert not list((tmp_path / "corpus").rglob("*.tmp"))
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert files_of(tmp_path / "corpus") == files_of(tmp_path / "whole")


def test_a_build_that_fails_before_it_has_a_plan_leaves_no_trace(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, other_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    wrong = replace(OPTIONS, read=replace(OPTIONS.read, format="prosa"))
    with refuses(ConfigError, "unknown-format"):
        build_corpus(texts, tokenizer, tmp_path / "corpus", wrong)
    with monkeypatch.context() as patch:
        patch.setattr(build, "plan_sources", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        for out in ("corpus", "empty"):
            with pytest.raises(KeyboardInterrupt):
                build_corpus(texts, tokenizer, tmp_path / out, OPTIONS)
    assert not (tmp_path / "corpus").exists()
    assert list((tmp_path / "empty").iterdir()) == []
    build_corpus(texts, other_tokenizer, tmp_path / "corpus", OPTIONS)


def slow_build(folder: Path, out: Path, vocabulary: Path) -> subprocess.Popen[bytes]:
    code = (
        "from pathlib import Path; import sys\n"
        "from litebert.corpus.build import *; from litebert.corpus.chunks import Limits\n"
        "from litebert.corpus.documents import ReadOptions; from litebert.text.tokenizer import load_tokenizer\n"
        "if __name__ == '__main__':\n"
        "    limits = Limits(chunk=100_000, shard=500_000)\n"
        "    options = BuildOptions(ReadOptions('lines', limits=limits), 0.1, True, processes=2, is_quiet=True)\n"
        "    build_corpus([sys.argv[1]], load_tokenizer(Path(sys.argv[2])), Path(sys.argv[3]), options)\n"
    )
    script = folder.parent / "build_it.py"
    script.write_text(code)
    return subprocess.Popen([sys.executable, script, folder, vocabulary, out])


def processes_in(group_file: Path) -> list[int]:
    """The processes that were started with this path on their command line, or by one that was."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"LITEBERT_TEST_MARK={group_file}".encode() in environment:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_killing_a_build_ten_times_gives_the_bytes_of_an_undisturbed_one(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for seed in range(12):
        data = text_of(seed, num_documents=6000).encode()
        (folder / f"{seed}.txt").write_bytes(gzip.compress(data) if seed % 2 else data)
    monkeypatch.setenv("LITEBERT_TEST_MARK", str(folder))
    started = time.monotonic()
    assert slow_build(folder, tmp_path / "whole", vocabulary).wait() == 0
    seconds = time.monotonic() - started
    rng = random.Random(0)
    kills = 0
    while kills < 10:
        process = slow_build(folder, tmp_path / "killed", vocabulary)
        try:
            process.wait(rng.uniform(0.3, 0.3 + seconds / 4))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            break
    deadline = time.monotonic() + 10
    while [pid for pid in processes_in(folder) if pid != os.getpid()] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in processes_in(folder) if pid != os.getpid()], "a killed build left processes behind"
    assert kills == 10 or (tmp_path / "killed" / "manifest.json").exists()
    assert slow_build(folder, tmp_path / "killed", vocabulary).wait() == 0
    assert kills >= 5, "the build ended before it could be killed often; make it longer"
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")
    assert not (tmp_path / "killed" / "unfinished").exists()
