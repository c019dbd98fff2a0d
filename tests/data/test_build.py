"""Building: the result depends on text, tokenizer and options alone; it grows, resumes, and refuses to be mixed up."""

import errno
import fcntl
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litebert.cli.main import _run
from litebert.core.errors import ConfigError, DataError
from litebert.data import assemble, build, encode, workers
from litebert.data.build import BuildOptions, BuildResult, build_corpus
from litebert.data.chunks import Limits
from litebert.data.documents import Document, ReadOptions
from litebert.data.shards import SHARDS, Corpus, open_corpus, read_manifest
from litebert.data.statistics import check_corpus, measure_corpus
from litebert.text.tokenizer import Tokenizer, load_tokenizer

LIMITS = Limits(chunk=2000, shard=6000, line=4000, whole_file=4000)
OPTIONS = BuildOptions(read=ReadOptions(format="lines", limits=LIMITS), valid_share=0.2, is_quiet=True)
WORDS = ["the", "a", "of", "and", "in", "to", "cat", "dog", "sat", "ran", "mat", "house"]


def text_of(seed: int, *, num_documents: int = 60) -> str:
    rng = random.Random(seed)
    documents = []
    for _ in range(num_documents):
        sentences = [" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) + "." for _ in range(rng.randint(1, 6))]
        documents.append("\n".join(sentences) + "\n")
    return "\n".join(documents)


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """Five files of which two are packed."""
    paths = []
    for seed in range(5):
        path = tmp_path / "texts" / f"{seed}.txt"
        path.parent.mkdir(exist_ok=True)
        data = text_of(seed).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if seed % 2 else data)
        paths.append(path)
    return paths


def files_of(directory: Path) -> dict[str, bytes]:
    """Everything in a corpus but the ledger, which has times of files in it."""
    wanted = [directory / "manifest.json", *(directory / SHARDS).iterdir()]
    return {path.name: path.read_bytes() for path in sorted(wanted)}


def documents_of(corpus: Corpus) -> set[bytes]:
    return {
        b"|".join(sentence.tobytes() for sentence in shard.sentences(i))
        for shard in corpus.shards
        for i in range(shard.num_documents)
    }


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


def test_a_sentence_without_tokens_is_not_stored(tokenizer: Tokenizer) -> None:
    documents = [Document("a", ("\u200b", "the cat.")), Document("b", ("\u200b",)), Document("c", ("the dog.",))]
    content = encode._encode_batch(documents, tokenizer)
    assert list(content.document_offsets) == [0, 1, 2]
    assert (np.diff(content.sentence_offsets) > 0).all()
    assert len(content.document_hashes) == 2


@pytest.mark.parametrize("stop_at", range(1, 12, 2))
def test_a_build_that_stops_goes_on_to_the_same_bytes(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    build_corpus(texts, tokenizer, tmp_path / "whole", OPTIONS)
    encoded = []

    def encode_until(self: workers._Worker, chunk: object) -> None:
        encoded.append(chunk)
        if len(encoded) == stop_at:
            raise KeyboardInterrupt
        original(self, chunk)  # type: ignore[arg-type]

    original = workers._Worker.encode
    monkeypatch.setattr(workers._Worker, "encode", encode_until)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(texts, tokenizer, tmp_path / "stopped", OPTIONS)
    with pytest.raises(DataError, match="not a finished corpus"):
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
        patch.setattr(build.ShardDraft, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build_corpus(texts[:2], tokenizer, tmp_path / "corpus", OPTIONS)
    result = build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert [source.path for source in result.built] == texts
    assert result.manifest.num_sources == 5


@pytest.mark.parametrize(
    "step", ["write_done", "_remove_parts", "append_sources", "write_manifest", "remove_paperwork"]
)
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


def test_the_share_of_validation_documents_is_as_asked() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)
    for share in (0.0, 0.01, 0.5):
        assert assemble.in_valid_split(hashes, share).mean() == pytest.approx(share, abs=0.005)


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
    assert assemble.in_valid_split(np.array([2**64 - 1], np.uint64), 1.0).all()


@given(parts=st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=6), known=st.lists(st.integers(0, 20)))
def test_only_the_first_of_equal_documents_is_new(parts: list[list[int]], known: list[int]) -> None:
    seen = assemble.Seen(np.array(known, dtype=np.uint64))
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


def test_the_same_file_twice_is_built_once(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(texts[0].read_bytes())
    result = build_corpus([texts[0], copy], tokenizer, tmp_path / "corpus", OPTIONS)
    assert (len(result.built), result.num_known) == (1, 1)


def test_another_tokenizer_is_refused(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, other_tokenizer: Tokenizer
) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    with pytest.raises(ConfigError, match=r"corpus was built with another tokenizer .* build a new corpus"):
        build_corpus(texts, other_tokenizer, tmp_path / "corpus", OPTIONS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (replace(OPTIONS, valid_share=0.3), r"valid_share 0\.2, not 0\.3; give the former value"),
        (replace(OPTIONS, deduplicate=True), "deduplicate False, not True"),
        (replace(OPTIONS, read=replace(OPTIONS.read, format="prose")), "was read as lines, not --format prose"),
        (replace(OPTIONS, read=replace(OPTIONS.read, limits=Limits())), "limits"),
    ],
)
def test_other_options_are_refused(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, changed: BuildOptions, message: str
) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    with pytest.raises(ConfigError, match=message):
        build_corpus(texts[:1], tokenizer, tmp_path / "corpus", changed)


def test_a_changed_source_is_refused(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts[:1], tokenizer, tmp_path / "corpus", OPTIONS)
    texts[0].write_text(text_of(99))
    with pytest.raises(DataError, match=r"0\.txt has changed since it was built"):
        build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)


def test_two_builds_do_not_write_one_corpus(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    (tmp_path / "corpus").mkdir()
    with (tmp_path / "corpus" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process is building a corpus in"):
            build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)


def test_a_directory_with_other_things_is_refused(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="is not empty and no corpus"):
        build_corpus(texts, tokenizer, tmp_path / "texts", OPTIONS)


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
        with pytest.raises(DataError, match=r"the disk of .* is full; make room and run the same command again"):
            build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert not list((tmp_path / "corpus").rglob("*.tmp"))
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert files_of(tmp_path / "corpus") == files_of(tmp_path / "whole")


@pytest.mark.parametrize("processes", [1, 2])
def test_bad_input_stops_the_build_and_skipping_it_goes_on(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, processes: int
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"the cat.\nthe \xff dog.\n\n" + text_of(7).encode())
    options = replace(OPTIONS, processes=processes)
    with pytest.raises(DataError, match=rf"{bad}:2: byte 0xff at column 5 is not UTF-8; .*--on-error skip"):
        build_corpus([*texts, bad], tokenizer, tmp_path / "corpus", options)
    options = replace(options, read=replace(options.read, on_error="skip"))
    manifest = build_corpus([*texts, bad], tokenizer, tmp_path / "corpus", options).manifest
    assert manifest.counts["encoding"] == 1
    assert manifest.problems == [f"{bad}:2: byte 0xff at column 5 is not UTF-8"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("pipe", "pipe is a pipe or device, .* use - for standard input"),
        ("dangling", "dangling is a link to nothing"),
        ("", "an empty path names no file"),
        ("mistyped.txt", "matches nothing"),
        ("empty", "no file found"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused_and_claim_no_folder(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, pattern: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("dangling").symlink_to("nowhere")
    Path("empty").mkdir()
    with pytest.raises((ConfigError, DataError), match=message):
        build_corpus([pattern], tokenizer, tmp_path / "corpus", OPTIONS)
    assert not (tmp_path / "corpus").exists()


def test_a_build_that_fails_before_it_has_a_plan_leaves_no_trace(
    tmp_path: Path, texts: list[Path], tokenizer: Tokenizer, other_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    wrong = replace(OPTIONS, read=replace(OPTIONS.read, format="prosa"))
    with pytest.raises(ConfigError, match="did you mean 'prose'"):
        build_corpus(texts, tokenizer, tmp_path / "corpus", wrong)
    with monkeypatch.context() as patch:
        patch.setattr(build, "plan_sources", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        for out in ("corpus", "empty"):
            with pytest.raises(KeyboardInterrupt):
                build_corpus(texts, tokenizer, tmp_path / out, OPTIONS)
    assert not (tmp_path / "corpus").exists()
    assert list((tmp_path / "empty").iterdir()) == []
    build_corpus(texts, other_tokenizer, tmp_path / "corpus", OPTIONS)


def test_check_names_a_damaged_shard(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    assert check_corpus(tmp_path / "corpus")[1] == []
    path = tmp_path / "corpus" / SHARDS / "train-00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert check_corpus(tmp_path / "corpus")[1] == [f"{path} is damaged: its hash is not the manifest's"]


def test_statistics_count_what_is_there(tmp_path: Path, texts: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(texts, tokenizer, tmp_path / "corpus", OPTIONS)
    statistics = measure_corpus(tmp_path / "corpus")
    train = statistics.splits["train"]
    corpus = open_corpus(tmp_path / "corpus")
    lengths = [len(s) for shard in corpus.shards for i in range(shard.num_documents) for s in shard.sentences(i)]
    assert train.num_sentences == len(lengths) == sum(train.tokens_a_sentence.counts)
    assert train.tokens_a_sentence.counts[0] == sum(length <= 4 for length in lengths)
    assert train.tokens_a_sentence.longest == max(lengths)
    assert train.tokens_a_sentence.mean == pytest.approx(sum(lengths) / len(lengths))
    assert sum(train.tokens_a_document.counts) == train.num_documents
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
    assert "all as written" in litebert("corpus", "check", out)[1]
    _, shown, _ = litebert("corpus", "stats", out, "--json", "--plot", tmp_path / "lengths.png")
    assert json.loads(shown)["splits"]["train"]["num_documents"] > 0
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")
    assert "unknown rate" in litebert("corpus", "stats", out)[1]
    (out / SHARDS / "train-00000.safetensors").write_bytes(b"short")
    code, _, complaint = litebert("corpus", "check", out)
    assert code == 2
    assert "train-00000.safetensors is damaged" in complaint
    code, _, complaint = litebert("corpus", "build", tmp_path / "none", *ending)
    assert (code, complaint.count("\n")) == (2, 1)
    assert litebert("corpus", "build", texts[0], *ending, "--on-error", "ignore")[0] == 2


def slow_build(folder: Path, out: Path, vocabulary: Path) -> subprocess.Popen[bytes]:
    code = (
        "from pathlib import Path; import sys\n"
        "from litebert.data.build import *; from litebert.data.chunks import Limits\n"
        "from litebert.data.documents import ReadOptions; from litebert.text.tokenizer import load_tokenizer\n"
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


@pytest.mark.slow
def test_a_gigabyte_on_one_line_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"the cat sat " * (1 << 20))  # never a newline
    code = (
        "import psutil, sys; from litebert.data.documents import *; from litebert.data.problems import Notes\n"
        "notes = Notes('skip'); n = peak = 0\n"
        "for d in iter_documents([sys.argv[1]], ReadOptions(on_error='skip'), notes=notes):\n"
        "    n += len(d.sentences)\n"
        # not ru_maxrss, which counts the process that started this one too
        "    peak = max(peak, psutil.Process().memory_info().rss)\n"
        "print(n, notes.counts['long_line'], peak >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    num_sentences, num_cuts, megabytes = map(int, done.stdout.split())
    assert num_sentences > 90_000
    assert num_cuts > 40
    assert megabytes < 600


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["enwiki", "zhwiki", "gutenberg"])
def test_the_real_corpora_build_without_markup_or_licence(real_data: Path, tmp_path: Path, folder: str) -> None:
    tokenizer = load_tokenizer(real_data / "vocab" / "albert-30k.model")
    options = BuildOptions(processes=2, is_quiet=True)
    result: BuildResult = build_corpus([real_data / "corpora" / folder], tokenizer, tmp_path / "corpus", options)
    assert result.manifest.problems == []
    assert open_corpus(tmp_path / "corpus").num_documents > 100
    if folder == "zhwiki":  # the English vocabulary does not know the characters
        return
    for shard in open_corpus(tmp_path / "corpus", "valid").shards:
        for i in range(shard.num_documents):
            for sentence in shard.sentences(i):
                text = tokenizer.decode(sentence)
                assert not any(mark in text for mark in ("<doc", "</", "[[", "&lt;", "project gutenberg")), text
