"""Reading: each format gives its documents, and each kind of bad input is reported with file and line."""

import gzip
import io
import json
import random
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from refusals import refuses

from litebert.core.errors import ConfigError, DataError
from litebert.corpus.chunks import Limits
from litebert.corpus.documents import Document, ReadOptions, describe_source, iter_documents
from litebert.corpus.formats import parsers
from litebert.corpus.formats.wiki import clean_markup
from litebert.corpus.notes import Notes

ARRAYS = ('[{"text": "One."}, {"text": "Two."}]', '\ufeff\n[\n  {\n "text": "One."\n  }\n]\n')
LINES = "The cat sat.\nThe dog ran.\n\nA house.\nIt stood.\n"
LINE_DOCUMENTS = [("The cat sat.", "The dog ran."), ("A house.", "It stood.")]
PROSE = "The cat sat on the mat. Then it slept.\nIt was late! Nobody came. The dog ran.\n"
WRAPPED = (
    "It was a day of rain, and then it was a day of sun, and it was\r\n"
    "the age of wisdom, it was the age of foolishness. The well-\r\n"
    "known epoch of belief came; it was the epoch of incredulity--\r\n"
    "the season of light.\r\n\r\n"
    "There were a king with a large jaw and a queen with a plain\r\n"
    "face on the throne of England.\r\n"
)
WIKI = """<doc id="1" url="http://x" title="Cats &amp; dogs">
Cats &amp; dogs

Cats () are animals (; and pets) that people keep in their houses.<br>They sleep &lt;b&gt;much&lt;/b&gt;.
Early life.
Their first years are spent with the family and are described in many books. It is so.
France
</doc>
<doc id="2" url="http://x" title="Empty">
Empty


</doc>
"""
SQUAD = {
    "version": "1",
    "data": [{"title": "T", "paragraphs": [{"context": "One is. Two is.", "qas": []}, {"context": "Three."}]}],
}
RACE = {"article": "A passage. It ends.", "questions": ["q?"], "options": [["a"]], "answers": ["A"], "id": "1"}


def read(path: Path | str, **options: object) -> list[tuple[str, ...]]:
    return [document.sentences for document in iter_documents([path], ReadOptions(**options))]  # type: ignore[arg-type]


def problems(path: Path, **options: object) -> tuple[list[tuple[str, ...]], list[str], dict[str, int]]:
    """What is read with on_error "skip", what is reported, and that "fail" stops with the first of it."""
    notes = Notes("skip")
    documents = list(iter_documents([path], ReadOptions(on_error="skip", **options), notes=notes))  # type: ignore[arg-type]
    with pytest.raises(DataError) as stopped:
        list(iter_documents([path], ReadOptions(on_error="fail", **options)))  # type: ignore[arg-type]
    assert str(stopped.value).startswith(notes.examples[0])
    assert (stopped.value.code, stopped.value.option) == ("bad-text", "on_error")
    return [document.sentences for document in documents], notes.examples, dict(notes.counts)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_lines_are_sentences_and_blank_lines_end_documents(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.txt", LINES)) == LINE_DOCUMENTS
    assert read(write(tmp_path / "y.txt", LINES.replace("\n", "\r\n"))) == LINE_DOCUMENTS


def test_a_line_with_two_sentences_is_kept_as_is_when_lines_are_sentences(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.txt", "One. Two.\nThree.\n"), format="lines") == [("One. Two.", "Three.")]


def test_prose_is_split_into_sentences(tmp_path: Path) -> None:
    expected = ("The cat sat on the mat.", "Then it slept.", "It was late!", "Nobody came.", "The dog ran.")
    assert read(write(tmp_path / "x.txt", PROSE)) == [expected]


def test_hard_wrapped_lines_are_joined(tmp_path: Path) -> None:
    (sentences,) = read(write(tmp_path / "x.txt", WRAPPED))
    assert sentences[0].endswith("it was the age of foolishness.")
    assert sentences[1] == "The well-known epoch of belief came; it was the epoch of incredulity--the season of light."
    assert sentences[2].startswith("There were a king")
    assert len(sentences) == 3


def test_a_wiki_article_loses_title_headings_items_and_markup(tmp_path: Path) -> None:
    notes = Notes("skip")
    (document,) = iter_documents([write(tmp_path / "wiki_00", WIKI)], notes=notes)
    assert document.sentences == (
        "Cats are animals (and pets) that people keep in their houses.",
        "They sleep much.",
        "Their first years are spent with the family and are described in many books.",
        "It is so.",
    )
    assert notes.counts == {"wiki_headings_and_items": 2, "empty_documents": 1}


def test_chinese_variants_and_emptied_brackets_are_cleaned() -> None:
    text = "《龍珠-{zh-hans:任务;zh-tw:任務;}-》（，）是[[動畫|動畫片]]，-{万}-象（; 今日）。[[Category:甲]]"
    assert clean_markup(text) == "《龍珠任务》是動畫片，万象（今日）。"


def gutenberg(body: str, *, charset: str = "UTF-8") -> str:
    return (
        "The Project Gutenberg EBook of A Book, by Somebody\r\n\r\nThis eBook is for the use of anyone.\r\n\r\n"
        f"Character set encoding: {charset}\r\n\r\n"
        "*** START OF THIS PROJECT GUTENBERG EBOOK A BOOK,\r\nCOMPLETE ***\r\n\r\n"
        f"Produced by A Volunteer\r\n\r\nCHAPTER I.\r\n\r\n{body}\r\n\r\n"
        "End of the Project Gutenberg EBook of A Book\r\n\r\n"
        "*** END OF THIS PROJECT GUTENBERG EBOOK A BOOK ***\r\n\r\nLicence. You may copy it.\r\n"
    )


BODY = (
    "It was a _very_ dark night, and the\r\nrain fell. Nobody [Illustration: a\r\nlamp] came.\r\n\r\n"
    "* * * * *\r\n\r\nThe end came."
)
BOOK = ("It was a very dark night, and the rain fell.", "Nobody came.", "The end came.")


def test_a_gutenberg_book_loses_licence_headings_and_illustrations(tmp_path: Path) -> None:
    assert read(write(tmp_path / "book.txt", gutenberg(BODY))) == [BOOK]


def test_an_old_gutenberg_book_ends_its_header_with_the_small_print(tmp_path: Path) -> None:
    text = (
        "The Project Gutenberg Etext of A Book\r\n\r\n"
        "***START**THE SMALL PRINT!**FOR PUBLIC DOMAIN ETEXTS**START***\r\n"
        f"Lawyers say much.\r\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\r\n\r\n{BODY}\r\n\r\n"
        "End of The Project Gutenberg Etext of A Book\r\n"
    )
    assert read(write(tmp_path / "book.txt", text)) == [BOOK]


def test_a_book_that_declares_latin_1_is_read(tmp_path: Path) -> None:
    text = gutenberg("The café was closed. Nobody came.", charset="ISO-8859-1")
    assert read(write(tmp_path / "book.txt", text.encode("latin-1"))) == [("The café was closed.", "Nobody came.")]


def test_jsonl_reads_the_named_field(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"body": "One is. Two is.\\nThree."}\n\n{"body": "Four."}\n')
    assert read(path, field="body") == [("One is.", "Two is.", "Three."), ("Four.",)]


def test_parquet_reads_the_named_column(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [1, 2], "body": ["One is. Two is.", "Three ü."]})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet", field="body") == [("One is.", "Two is."), ("Three ü.",)]
    with refuses(ConfigError, "unknown-field", at="x.parquet"):
        read(tmp_path / "x.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.parquet", b"PAR1 and so on")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with refuses(ConfigError, "missing-package"):
        read(path)


def test_squad_and_race_are_read_as_text(tmp_path: Path) -> None:
    assert read(write(tmp_path / "dev.json", json.dumps(SQUAD))) == [("One is.", "Two is.", "Three.")]
    assert read(write(tmp_path / "1.txt", json.dumps(RACE))) == [("A passage.", "It ends.")]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("text", [LINES, PROSE, WRAPPED, WIKI, gutenberg(BODY), json.dumps(SQUAD), json.dumps(RACE)])
def test_a_packed_file_reads_as_the_plain_one(tmp_path: Path, text: str, pack: object) -> None:
    plain, packed = write(tmp_path / "a", text), tmp_path / "b"
    packed.write_bytes(pack(text.encode()))  # type: ignore[operator]
    assert read(packed) == read(plain)
    assert read(plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINES, "lines"),
        (PROSE, "prose"),
        (WRAPPED, "wrapped"),
        (WIKI, "wiki"),
        ("\ufeff" + WIKI, "wiki"),
        (gutenberg(BODY), "gutenberg"),
        ('{"text": "x"}\n', "jsonl"),
        (json.dumps(SQUAD), "squad"),
        (json.dumps(RACE), "race"),
        ("A paragraph of one sentence.\n\nAnother one.\n\nA third.\n", "prose"),
        ("他走了。\n她來了。\n\n貓睡了。\n狗跑了。\n", "lines"),
    ],
)
def test_the_format_is_guessed(tmp_path: Path, text: str, expected: str) -> None:
    assert describe_source(write(tmp_path / "x", text), ReadOptions()).format == expected


def test_the_formats_of_the_real_data_are_guessed(real_data: Path) -> None:
    folders = {"corpora/enwiki": "wiki", "corpora/zhwiki": "wiki", "corpora/gutenberg": "gutenberg", "squad": "squad"}
    for folder, expected in folders.items():
        for path in (real_data / folder).iterdir():
            assert describe_source(path, ReadOptions()).format == expected, path
    for path in (real_data / "race").rglob("*.txt"):
        assert describe_source(path, ReadOptions()).format == "race", path


def test_an_unknown_format_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with refuses(ConfigError, "unknown-format"):
        read(write(tmp_path / "x", LINES), format="wikki")


def test_folders_globs_and_files_give_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden"):
        write(tmp_path / name, f"Here is {name[-5]}.\nIt is.\n")
    documents = list(iter_documents([tmp_path, str(tmp_path / "*.txt"), tmp_path / "b.txt"]))
    assert [document.sentences[0] for document in documents] == ["Here is a.", "Here is b.", "Here is c."]


def test_a_path_that_is_nothing_is_refused() -> None:
    with refuses(ConfigError, "no-file"):
        read("/no/such/*")


def test_standard_input_is_read_packed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (LINES.encode(), gzip.compress(LINES.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read("-") == LINE_DOCUMENTS


def test_bytes_that_are_not_utf8_are_reported_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", b"One is.\nTwo \xff is.\nThree is.\n")
    documents, reported, counts = problems(path, format="lines")
    assert documents == [("One is.", "Three is.")]
    assert reported == [f"{path}:2: byte 0xff at column 5 is not UTF-8"]
    assert counts == {"encoding": 1}


def test_nul_bytes_are_reported_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", b"One is.\nTwo is.\nThr\0ee is.\n")
    documents, reported, _ = problems(path, format="lines")
    assert documents == [("One is.", "Two is.")]
    assert reported == [f"{path}:3: a NUL byte"]


def test_utf16_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "One is.".encode("utf-16"))
    documents, reported, _ = problems(path)
    assert documents == []
    assert reported == [f"{path}:1: UTF-16 text; convert it to UTF-8 first"]


@pytest.mark.parametrize("content", [b"", b" \n\n", gzip.compress(b"")], ids=["empty", "blank", "gzip"])
@pytest.mark.parametrize("format_", ["auto", "squad", "gutenberg"])
def test_an_empty_file_is_reported(tmp_path: Path, content: bytes, format_: str) -> None:
    path = write(tmp_path / "x.txt", content)
    assert problems(path, format=format_) == ([], [f"{path}:1: an empty file"], {"empty": 1})


def noise_lines(number: int) -> bytes:
    words = random.Random(0)
    return "".join(f"Line {i} is {words.random()}.\n" for i in range(1, number + 1)).encode()


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_truncated_file_is_reported_with_the_line_where_it_breaks(tmp_path: Path, name: str) -> None:
    pack = gzip.compress if name == "gzip" else zstandard.compress
    packed = pack(noise_lines(100_000))
    path = write(tmp_path / "x.txt.packed", packed[: len(packed) // 2])
    documents, reported, counts = problems(path, format="lines")
    sentences = [sentence for document in documents for sentence in document]
    assert counts == {"truncated": 1}
    assert reported[0].startswith(f"{path}:{len(sentences) + 1}: the {name} stream breaks off")
    assert len(sentences) > 10_000
    assert sentences == noise_lines(100_000).decode().split("\n")[: len(sentences)]


def test_damage_in_the_middle_of_gzip_is_reported(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(noise_lines(20_000)))
    packed[len(packed) // 2 :] = b"\xff" * 1000
    _, reported, _ = problems(write(tmp_path / "x.gz", bytes(packed)), format="lines")
    assert "the gzip stream breaks off" in reported[0]


def test_a_truncated_parquet_file_is_reported(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["One is."] * 100}), tmp_path / "x.parquet")
    path = write(tmp_path / "y.parquet", (tmp_path / "x.parquet").read_bytes()[:-20])
    _, reported, counts = problems(path)
    assert counts == {"truncated": 1}
    assert reported[0].startswith(f"{path}:1: the Parquet file breaks off")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"text": "cut', "not a usable JSON record (Unterminated string"),
        ('{"body": "x"}', "not a usable JSON record (no field 'text'; choose a field among: body)"),
        ('{"text": 3}', "not a usable JSON record (field 'text' contains a int, not text)"),
        ('["text"]', "not a usable JSON record (no field 'text'; choose a field among: a list)"),
        ('{"text": "a\\u0000b"}', "not a usable JSON record (field 'text' contains a NUL character)"),
        ('{"text": "a\\ud800b"}', "not a usable JSON record ('utf-8' codec can't encode"),
        ('{"text": ' + "[" * 100_000, "not a usable JSON record ("),
    ],
)
def test_a_broken_json_line_is_reported_with_its_line(tmp_path: Path, line: str, expected: str) -> None:
    path = write(tmp_path / "x.jsonl", f'{{"text": "One is."}}\n{line}\n{{"text": "Two is."}}\n')
    documents, reported, counts = problems(path, format="jsonl")
    assert documents == [("One is.",), ("Two is.",)]
    assert reported[0].startswith(f"{path}:2: {expected}")
    assert counts == {"broken_json": 1}


def test_a_broken_squad_file_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.json", json.dumps(SQUAD)[:-10])
    assert problems(path)[1][0].startswith(f"{path}:1: not a SQuAD file (JSONDecodeError")


def test_a_book_without_licence_header_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", PROSE)
    assert problems(path, format="gutenberg")[1] == [
        f"{path}:1: no licence header found; if this is not a Project Gutenberg file, choose another format"
    ]


SMALL = Limits(chunk=2000, shard=8000, line=4000, whole_file=3000)


def test_a_line_that_is_too_long_is_cut_and_reported(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(3000)]
    path = write(tmp_path / "x.txt", f"One is.\n{' '.join(words)}\nTwo is.\n")
    documents, reported, counts = problems(path, format="lines", limits=SMALL)
    assert counts["long_line"] == len(reported) >= 3
    assert set(reported) == {f"{path}:2: longer than 4,000 bytes: cut"}
    text = " ".join(sentence for document in documents for sentence in document)
    assert text.split() == ["One", "is.", *words, "Two", "is."]


def test_a_long_line_without_spaces_is_not_cut_inside_a_character(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "貓" * 9000)
    documents, _, counts = problems(path, format="prose", limits=SMALL)
    assert "".join(sentence for document in documents for sentence in document) == "貓" * 9000
    assert set(counts) == {"long_line"}


def test_a_json_record_that_is_too_long_is_left_out_and_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", f'{{"text": "One."}}\n{{"text": "{"a b " * 5000}"}}\n{{"text": "Two."}}\n')
    documents, reported, _ = problems(path, format="jsonl", limits=SMALL)
    assert documents == [("One.",), ("Two.",)]
    assert reported == [f"{path}:2: longer than 4,000 bytes: left out"]


def test_a_file_too_large_to_be_read_at_once_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", gutenberg("It was a dark night.\r\n\r\n" * 500))
    assert problems(path, limits=SMALL)[1][0].startswith(f"{path}: larger than")


def test_a_sentence_longer_than_the_limit_is_cut_at_spaces_and_counted(tmp_path: Path) -> None:
    notes = Notes("fail")
    path = write(tmp_path / "x.txt", " ".join(["word"] * 5000))
    (document,) = iter_documents([path], ReadOptions(format="lines"), notes=notes)
    assert max(map(len, document.sentences)) <= parsers.SENTENCE_CHARACTERS
    assert " ".join(document.sentences).split() == ["word"] * 5000
    assert notes.counts == {"long_sentences_cut": 1}


def test_a_text_without_document_ends_becomes_bounded_documents(tmp_path: Path) -> None:
    line = "A sentence that is rather long and goes on for a while, as sentences do.\n"
    documents = read(write(tmp_path / "x.txt", line * 20_000), format="lines")
    assert len(documents) > 4
    assert sum(map(len, documents)) == 20_000


def test_small_chunks_give_the_same_documents_as_large_ones(tmp_path: Path) -> None:
    documents = [f"Document {i} is here.\nIt has {i % 7} friends.\n" for i in range(500)]
    path = write(tmp_path / "x.txt", "\n".join(documents))
    assert read(path, limits=SMALL) == read(path)
    assert len(read(path)) == 500


def test_a_document_has_the_file_and_line_it_came_from(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", LINES)
    assert [document.id for document in iter_documents([path])] == [f"{path}:1", f"{path}:4"]
    assert isinstance(next(iter_documents([path])), Document)


@pytest.mark.parametrize("text", ARRAYS)
def test_a_json_array_is_refused_and_not_taken_for_prose(tmp_path: Path, text: str) -> None:
    path = tmp_path / "array.json"
    path.write_text(text, encoding="utf-8")
    with refuses(DataError, "bad-text", at="array.json:1"):
        read(path)
    path.write_text("[Illustration: a cat] The cat sat. It ran.\n")
    assert read(path)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_packed_parquet_file_is_a_table(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "table"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["The cat sat. It ran.", "The dog."]}), path)
    pack = gzip.compress if packing == "gzip" else zstandard.compress
    packed = tmp_path / "table.packed"
    packed.write_bytes(pack(path.read_bytes()))
    assert read(packed) == [("The cat sat.", "It ran."), ("The dog.",)]
    with refuses(ConfigError, "unknown-field", at="table.packed"):
        read(packed, field="body")
    packed.write_bytes(pack(path.read_bytes())[:-9])
    with refuses(DataError, "bad-text"):
        read(packed)
