"""Other people's files that are cut, rot or lie: refused by our exceptions, in no time."""

import json
from pathlib import Path

import pytest
from mutants import read_mutants
from refusals import refuses

from litebert.core.errors import DataError
from litebert.corpus.sources import TruncatedError, detect_packing, iter_blocks
from litebert.tasks.files.columnar import read_columns
from litebert.text.tokenizer import Tokenizer, load_tokenizer

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_an_id_far_beyond_the_pieces_is_refused(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    facts = json.loads(tiny_tokenizer.model)
    facts["model"]["vocab"]["e"] = 2**31
    (tmp_path / "tokenizer.json").write_text(json.dumps(facts))
    with refuses(DataError, "corrupt-tokenizer", at="tokenizer.json"):
        load_tokenizer(tmp_path)


def test_an_id_far_beyond_the_pieces_of_a_byte_level_vocabulary_is_refused(tmp_path: Path) -> None:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary | {"b": 2**31}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with refuses(DataError, "corrupt-tokenizer", at="vocab.json"):
        load_tokenizer(tmp_path)


def test_a_vocabulary_without_its_unknown_piece_is_refused_when_it_is_loaded(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    facts = json.loads(tiny_tokenizer.model)
    del facts["model"]["vocab"]["[UNK]"]  # it is still among the added tokens
    (tmp_path / "tokenizer.json").write_text(json.dumps(facts))
    with refuses(DataError, "corrupt-tokenizer", at="tokenizer.json"):
        load_tokenizer(tmp_path)


def test_mutants_of_a_foreign_tokenizer_raise_only_our_errors(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(tiny_tokenizer.model)
    found = read_mutants(file, lambda: load_tokenizer(tmp_path).encode("the cat ☃"), seed=5, count=100, is_json=True)
    assert found["refused"]


@pytest.mark.parametrize(("name", "start"), [("a.zst", b"\x28"), ("a.parquet", b"PA"), ("a.gz", b"\x1f")])
def test_a_packed_file_cut_in_its_first_bytes_is_not_text(tmp_path: Path, name: str, start: bytes) -> None:
    (tmp_path / name).write_bytes(start)
    with pytest.raises(TruncatedError, match="breaks off"):
        list(iter_blocks(tmp_path / name, detect_packing(tmp_path / name)))
    (tmp_path / "a.txt").write_bytes(start)
    assert detect_packing(tmp_path / "a.txt") == "plain"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two rows, of which the second is not UTF-8 though its column says so."""
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 3, 6))
    column = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"abcd\xff\xfe")])
    parquet.write_table(pa.table({"text": column}), tmp_path / "bad.parquet")
    return tmp_path / "bad.parquet"


def test_parquet_that_is_not_utf8_is_refused_by_its_name(table: Path) -> None:
    with refuses(DataError, "corrupt-file", at="bad.parquet"):
        read_columns(table)


def test_a_librarys_message_of_two_lines_becomes_one(table: Path) -> None:
    data = bytearray(table.read_bytes())
    data[8] = 0xFF  # inside the header of the first page
    table.write_bytes(data)
    for read in (lambda: read_columns(table), lambda: list(iter_blocks(table, "parquet"))):
        with pytest.raises((DataError, TruncatedError)) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_row_of_parquet_that_is_not_utf8_is_left_to_the_reader_of_rows(table: Path) -> None:
    (block,) = iter_blocks(table, "parquet")
    good, bad, _ = block.data.split(b"\n")
    assert json.loads(good) == {"text": "abc"}
    with pytest.raises(UnicodeDecodeError):
        bad.decode("utf-8")


def test_parquet_whose_names_are_not_utf8_is_refused_by_its_name(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"textname": ["a"]}), tmp_path / "bad.parquet")
    data = (tmp_path / "bad.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(data.replace(b"textname", b"textnam\xec"))
    with pytest.raises(DataError, match=r"bad\.parquet: not a valid Parquet"):
        read_columns(tmp_path / "bad.parquet")
