"""`litebert tokenizer` on the command line."""

import gzip
import json
import re
from pathlib import Path

import pytest

from litebert.cli.main import _run
from litebert.core import progress
from litebert.corpus import vocabulary
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import ReadOptions
from litebert.corpus.notes import Notes
from litebert.corpus.vocabulary import _iter_sentences
from litebert.text.tokenizer import Tokenizer, load_tokenizer


def run(*words: object) -> int:
    return _run([str(word) for word in words], debug=False)


@pytest.fixture
def text_file(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(sentences), "utf-8")
    return file


def test_train_writes_a_tokenizer_that_loads(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tok"
    assert run("tokenizer", "train", text_file, "--out", out, "--vocab-size", 200) == 0
    assert "200 pieces" in capsys.readouterr().out
    assert load_tokenizer(out).vocab_size == 200


def test_train_does_not_replace_unless_forced(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("tokenizer", "train", text_file, "--kind", "wordpiece", "--out", tmp_path / "tok", "--vocab-size")
    assert run(*command, 150) == 0
    assert run(*command, 160) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert load_tokenizer(tmp_path / "tok").vocab_size == 150
    assert run(*command, 160, "--overwrite") == 0
    assert load_tokenizer(tmp_path / "tok").vocab_size == 160


def test_force_keeps_the_old_tokenizer_until_the_new_one_is_complete(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("tokenizer", "train", text_file, "--kind", "wordpiece", "--out", tmp_path / "tok", "--vocab-size")
    assert run(*command, 150) == 0

    def breaks(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", breaks)
    assert run(*command, 160, "--overwrite") == 130
    assert load_tokenizer(tmp_path / "tok").vocab_size == 150


def test_force_never_removes_what_is_no_tokenizer(text_file: Path, tmp_path: Path) -> None:
    assert run("tokenizer", "train", text_file, "--out", tmp_path, "--overwrite") == 2
    assert text_file.exists()


def test_a_failed_training_leaves_nothing_behind(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tokenizer", "train", text_file, "--out", tmp_path / "tok", "--vocab-size", 50_000) == 2
    assert "at most" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [text_file]


@pytest.mark.parametrize("place", ["text.txt/sub", "text.txt/deep/sub", "/proc/litebert/sub"])
def test_an_output_that_cannot_be_written_is_refused_before_any_text_is_read(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    text_file.write_bytes(b"\xff")  # would be refused, if it were read
    assert run("tokenizer", "train", text_file, "--out", tmp_path / place) == 2
    assert "cannot write" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [text_file]


def test_bad_input_stops_the_training_or_is_skipped_and_named(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with text_file.open("ab") as file:
        file.write(b"\ncaf\xe9\n")
    command = ("tokenizer", "train", text_file, "--out", tmp_path / "tok", "--vocab-size", 200)
    assert run(*command) == 2
    assert "(--on-error)" in capsys.readouterr().err
    assert run(*command, "--on-error", "ignore") == 2
    assert "is not one of 'fail', 'skip'" in capsys.readouterr().err
    assert run(*command, "--on-error", "skip") == 0
    shown = capsys.readouterr()
    assert f"skipped: {text_file}:801: byte 0xe9" in shown.err
    assert "encoding 1" in shown.out
    assert load_tokenizer(tmp_path / "tok").vocab_size == 200


def test_reading_shows_share_rate_and_time_left_by_the_bytes_on_disk(
    tmp_path: Path, sentences: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(sentences).encode()
    for part in range(4):
        (tmp_path / f"{part}.gz").write_bytes(gzip.compress(text))
    seconds = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    options = ReadOptions(limits=Limits(chunk=len(text) + 1))  # a chunk for each file
    read = list(_iter_sentences([str(tmp_path)], None, options, Notes("fail")))
    assert read == 4 * sentences
    lines = capsys.readouterr().err.splitlines()
    assert [re.sub(r"\(.*\), .*/s", "()", line) for line in lines[:-1]] == [
        "reading: 25% (), 30 s left",
        "reading: 50% (), 20 s left",
        "reading: 75% (), 10 s left",
        "reading: 100% (), 0 s left",
    ]
    assert lines[-1] == f"training a vocabulary on {4 * len(text) / 1e6:.1f} MB of text ..."


def test_training_a_tokenizer_shows_progress(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tokenizer", "train", text_file, "--out", tmp_path / "tok", "--vocab-size", 200) == 0
    assert capsys.readouterr().err == "training a vocabulary on 0.1 MB of text ...\n"


def test_standard_input_is_learned_from(text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("--vocab-size", 200, "--kind", "wordpiece")
    assert run("tokenizer", "train", text_file, "--out", tmp_path / "file", *command) == 0
    with text_file.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run("tokenizer", "train", "-", "--out", tmp_path / "stdin", *command) == 0
    assert load_tokenizer(tmp_path / "stdin").fingerprint == load_tokenizer(tmp_path / "file").fingerprint


def test_show_displays_pieces_ids_and_places(
    saved: Path, tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "The river 🦔 [MASK]"
    assert run("tokenizer", "show", text, "-t", saved) == 0
    shown = capsys.readouterr().out
    for piece in tokenizer.pieces([tokenizer.cls_id, tokenizer.sep_id, *tokenizer.encode(text)]):
        assert piece in shown
    assert run("tokenizer", "show", text, "-t", saved, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == tokenizer.encode(text)
    assert all(row["text"] == text[row["start"] : row["end"]] for row in rows)


def test_info_describes_the_tokenizer(saved: Path, tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tokenizer", "info", "-t", saved) == 0
    shown = capsys.readouterr().out
    assert tokenizer.kind in shown
    assert tokenizer.fingerprint in shown
    assert run("tokenizer", "info", "-t", saved, "--json") == 0
    assert json.loads(capsys.readouterr().out)["vocab_size"] == tokenizer.vocab_size


def test_wrong_words_are_one_line_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tokenizer", "info", "-t", tmp_path / "nothing") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run("tokenizer", "train", "x", "--out", tmp_path / "tok", "--chinese") == 2
    assert capsys.readouterr().err.endswith("use wordpiece (--kind)\n")


@pytest.mark.parametrize(
    ("sample_size", "free", "fitting"), [(0, 25 * 3_500, 250), (500, 25 * 1_750, 125), (500, 25 * 3_500, None)]
)
def test_a_vocabulary_that_may_not_fit_into_memory_is_foreseen(
    sample_size: int, free: int, fitting: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "text.txt").write_text("A cat.\n" * 1_000, "utf-8")  # 7,000 bytes
    monkeypatch.setattr(vocabulary, "measure_free_memory", lambda: free)
    list(_iter_sentences([str(tmp_path)], None, ReadOptions(), Notes("fail"), sample_size))
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes == [] if fitting is None else notes[0].endswith(f"set max_sentences to {fitting}")
