"""Laws that every tokenizer obeys, with either library."""

import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tokenizers as library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refuses
from varied_lines import FRAGMENTS

from litebert.core.errors import ConfigError, DataError
from litebert.core.sealed import read_sealed, write_sealed
from litebert.text.tokenizer import SPECIAL_NAMES, ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import BERT_SPECIAL

NAMES = [name for names in SPECIAL_NAMES.values() for name in names]
RARE_TEXT = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(), st.sampled_from([" ", "\ud800", *NAMES]))).map(
    "".join
)
with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@with_fixture
@given(text=RARE_TEXT)
def test_any_text_has_ids_with_places_in_order(tokenizer: Tokenizer, text: str) -> None:
    token_ids, offsets = tokenizer.encode_with_offsets(text)
    assert token_ids == tokenizer.encode(text) == tokenizer.encode_batch([text, "a"])[0]
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert offsets == sorted(offsets)
    assert [end for _, end in offsets] == sorted(end for _, end in offsets)
    assert tokenizer.mark_words(text, token_ids).shape == (len(token_ids),)
    tokenizer.decode(token_ids)


@with_fixture
@given(text=RARE_TEXT)
def test_text_never_yields_a_special_token(tokenizer: Tokenizer, text: str) -> None:
    assert not set(tokenizer.encode(text)) & (tokenizer.special_ids - {tokenizer.unk_id})


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_special_token_is_ordinary_text(tokenizer: Tokenizer, name: str) -> None:
    token_ids, offsets = tokenizer.encode_with_offsets(f"the {name} of{name}")
    assert len(token_ids) >= 2 + 2 * 3, "cut into brackets and letters"
    assert not set(token_ids) & (tokenizer.special_ids - {tokenizer.unk_id})
    covered = {place for start, end in offsets for place in range(start, end)}
    assert covered == set(range(4 + len(name))) - {3} | set(range(5 + len(name), 7 + 2 * len(name)))


def build_whitespace_vocabulary() -> library.Tokenizer:
    """Words as they stand: the model itself would find "[MASK]" in its vocabulary."""
    vocabulary = {piece: index for index, piece in enumerate([*BERT_SPECIAL, "the", "cat"])}
    backend = library.Tokenizer(library.models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(list(BERT_SPECIAL))
    return backend


def build_unigram_vocabulary() -> library.Tokenizer:
    pieces = [*SPECIAL_NAMES["pad"][:1], "<unk>", "[CLS]", "[SEP]", "[MASK]", "▁", *"<>[]padcat"]
    scores = {"<unk>": 0.0} | {piece: -float(index) for index, piece in enumerate(pieces)}
    backend = library.Tokenizer(library.models.Unigram(list(scores.items()), unk_id=list(scores).index("<unk>")))
    backend.pre_tokenizer = library.pre_tokenizers.Metaspace()
    backend.add_special_tokens(pieces[:5])
    return backend


@pytest.mark.parametrize("build", [build_whitespace_vocabulary, build_unigram_vocabulary])
def test_no_tokenizer_json_finds_special_tokens_in_text(build, tmp_path: Path) -> None:
    backend = build()
    backend.enable_truncation(2)
    backend.save(str(tmp_path / "tokenizer.json"))
    text = " ".join(NAMES)
    tokenizer = load_tokenizer(tmp_path)
    names_found = tokenizer.special_ids - {tokenizer.unk_id}
    assert set(backend.encode(text).ids) & names_found, "the library alone does find them"
    assert not set(tokenizer.encode(text)) & names_found
    assert len(tokenizer.encode(text)) >= len(NAMES), "and nothing is cut off"


def test_saving_and_loading_changes_nothing(tokenizer: Tokenizer, saved: Path, sentences: list[str]) -> None:
    loaded = load_tokenizer(saved)
    texts = [*sentences[:50], *FRAGMENTS]
    assert loaded.encode_batch(texts) == tokenizer.encode_batch(texts)
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.settings == tokenizer.settings
    assert loaded.special_ids == tokenizer.special_ids
    assert np.array_equal(loaded.word_starts, tokenizer.word_starts)


def test_a_changed_model_file_is_refused(saved: Path) -> None:
    model_file = saved / json.loads((saved / "manifest.json").read_text())["model_file"]
    model_file.write_bytes(model_file.read_bytes() + b"\n")
    with refuses(DataError, "corrupt-tokenizer"):
        load_tokenizer(saved)


def test_a_changed_setting_is_refused(tokenizers_by_kind: dict[str, Tokenizer], tmp_path: Path) -> None:
    tokenizers_by_kind["unigram"].save(tmp_path / "tok")
    manifest = tmp_path / "tok" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"lowercase": true', '"lowercase": false'))
    with refuses(DataError, "corrupt-file", at="manifest.json"):
        load_tokenizer(tmp_path / "tok")
    unsealed = json.loads(manifest.read_text())
    del unsealed["checksum"]  # as earlier versions wrote it
    manifest.write_text(json.dumps(unsealed))
    with refuses(DataError, "corrupt-tokenizer"):
        load_tokenizer(tmp_path / "tok")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"words": "foo"}, "corrupt-tokenizer"),
        ({"normalization": {"lowrcase": True}}, "corrupt-tokenizer"),
        ({"normalization": None}, "corrupt-tokenizer"),
        ({"digit_comma": "on"}, "corrupt-tokenizer"),
        ({"model_file": 5}, "corrupt-file"),
        ({"model_file": "gone"}, "missing-file"),
    ],
)
def test_an_impossible_setting_is_refused(
    tokenizers_by_kind: dict[str, Tokenizer], tmp_path: Path, change: dict[str, object], code: str
) -> None:
    tokenizers_by_kind["unigram"].save(tmp_path / "tok")
    file = tmp_path / "tok" / "manifest.json"
    write_sealed(file, read_sealed(file) | change)
    with refuses(DataError, code) as caught:
        load_tokenizer(tmp_path / "tok")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ('{"format": "litebert-corpus"}', "not-a-tokenizer"),
        ('{"format_version": 1}', "not-a-tokenizer"),
        ('{"format": "litebert-tokenizer", "version": 99}', "newer-version"),
        ('{"format": "litebert-tokenizer", "version": 1, "model_file": "gone"}', "corrupt-file"),
        ('{"format": "litebert-tokenizer"}', "newer-version"),
        ('{"format"', "bad-json"),
    ],
)
def test_a_manifest_of_something_else_is_refused(tmp_path: Path, manifest: str, code: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with refuses(DataError, code) as caught:
        load_tokenizer(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_the_manifest_of_a_corpus_leads_to_its_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format_version": 1}')
    tokenizer.save(tmp_path / "tokenizer")
    with refuses(DataError, "not-a-tokenizer"):
        load_tokenizer(tmp_path)


def test_a_saved_tokenizer_takes_no_reading_options(saved: Path) -> None:
    with refuses(ConfigError, "conflicting-options"):
        load_tokenizer(saved, ReadingOptions(lowercase=False))


def test_saving_over_something_fails_and_leaves_it(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        tokenizer.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_decoding_gives_the_text_back(tokenizers_by_kind: dict[str, Tokenizer]) -> None:
    text = "The old river, walked in 1999."
    for kind, expected in (("bpe", text), ("unigram", text.lower()), ("wordpiece", text.lower())):
        tokenizer = tokenizers_by_kind[kind]
        token_ids = [tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id, tokenizer.pad_id]
        assert tokenizer.decode(token_ids) == expected


# --- reading other people's files


@pytest.fixture
def unreadable_folder() -> Iterator[Path]:
    """A folder that this process may not look into; root may look into any, and becomes somebody else meanwhile."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0)
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(user)
            Path(name).chmod(0o700)


def test_an_unreadable_folder_is_not_reported_as_empty(unreadable_folder: Path) -> None:
    with pytest.raises(DataError, match=rf"{unreadable_folder}: Permission denied"):
        load_tokenizer(unreadable_folder)


def write_vocabulary(folder: Path, pieces: list[str], newline: str = "\n") -> Path:
    file = folder / "vocab.txt"
    file.write_text("".join(f"{piece}\n" for piece in pieces), "utf-8", newline=newline)
    return file


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_a_newline_ends_a_line_of_vocab_txt(tmp_path: Path, newline: str) -> None:
    file = write_vocabulary(tmp_path, [*BERT_SPECIAL, "\u2028", "the", "##x"], newline)
    tokenizer = load_tokenizer(file)
    assert tokenizer.vocab_size == 8
    assert tokenizer.pieces(tokenizer.encode("The thex")) == ["the", "the", "##x"]


def test_a_vocabulary_with_capitals_is_read_as_cased(tmp_path: Path) -> None:
    pieces = [*BERT_SPECIAL, "The", "the", "<S>"]
    cased = load_tokenizer(write_vocabulary(tmp_path, pieces))
    assert cased.pieces(cased.encode("The the")) == ["The", "the"]
    uncased = load_tokenizer(tmp_path, ReadingOptions(lowercase=True))
    assert uncased.pieces(uncased.encode("The the")) == ["the", "the"]
    without = load_tokenizer(write_vocabulary(tmp_path, [*BERT_SPECIAL, "the", "<S>"]))
    assert without.pieces(without.encode("The")) == ["the"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    stated = load_tokenizer(tmp_path)
    assert stated.pieces(stated.encode("The")) == ["[UNK]"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("vocab.txt", b"the\n[CLS]\n", "corrupt-tokenizer"),
        ("vocab.txt", b"[UNK]\n[CLS]\n", "missing-special-token"),
        ("vocab.txt", b"[UNK]\ncaf\xe9\n", "bad-encoding"),
        ("spiece.model", b"nonsense", "corrupt-tokenizer"),
        ("tokenizer.json", b"{}", "corrupt-tokenizer"),
        ("vocab.json", b"{}", "corrupt-tokenizer"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path, tmp_path / name):
        with refuses(DataError, code) as caught:
            load_tokenizer(path)
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [(b"{", "not valid JSON"), (b"\xff", "not valid JSON"), (b'{"do_lower_case": "no"}', "neither true nor false")],
)
def test_a_corrupt_config_next_to_a_vocabulary_is_named(tmp_path: Path, config: bytes, message: str) -> None:
    write_vocabulary(tmp_path, [*BERT_SPECIAL, "the"])
    (tmp_path / "tokenizer_config.json").write_bytes(config)
    with pytest.raises(DataError, match=rf"tokenizer_config\.json.*{message}"):
        load_tokenizer(tmp_path)


def test_only_files_are_taken_for_vocabularies(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with refuses(DataError, "not-a-tokenizer", at="manifest.json"):
        load_tokenizer(tmp_path)
    write_vocabulary(tmp_path, [*BERT_SPECIAL, "the"])
    assert load_tokenizer(tmp_path).vocab_size == 6


def test_the_error_for_a_folder_without_a_vocabulary_lists_the_expected_files(tmp_path: Path) -> None:
    with refuses(DataError, "not-a-tokenizer", at="manifest.json"):
        load_tokenizer(tmp_path)
    with refuses(DataError, "missing-file"):
        load_tokenizer(tmp_path / "nothing")


# --- the digit-comma rule


@pytest.fixture(scope="module")
def comma_model(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A vocabulary with "9," inside words and "▁2010," in front: the official one has only the second kind."""
    sentences = request.getfixturevalue("sentences")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(f"{sentence.lower()[:-1]}9, of 9 in 2010, or 2010 the9, the" for sentence in sentences),
        model_writer=model,
        vocab_size=150,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    file = tmp_path_factory.mktemp("comma") / "spiece.model"
    file.write_bytes(model.getvalue())
    return file


@pytest.mark.parametrize(
    ("mode", "text", "pieces", "places"),
    [
        ("off", "in 2010, the", ["▁in", "▁2010,", "▁the"], ["in", "2010,", "the"]),
        ("intended", "in 2010, the", ["▁in", "▁2010", ",", "▁the"], ["in", "2010", ",", "the"]),
        ("google_py3", "in 2010, the", ["▁in", "▁2010", ",", "▁the"], ["in", "2010", ",", "the"]),
        ("off", "the9, of", ["▁the", "9,", "▁of"], ["the", "9,", "of"]),
        ("intended", "the9, of", ["▁the", "9", ",", "▁of"], ["the", "9", ",", "of"]),
        ("google_py3", "the9, of", ["▁the", "▁9", ",", "▁of"], ["the", "9", ",", "of"]),
    ],
)
def test_the_three_digit_comma_modes(
    comma_model: Path, mode: str, text: str, pieces: list[str], places: list[str], tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(comma_model, ReadingOptions(digit_comma=mode))
    encoding = tokenizer.encode_with_offsets(text)
    assert tokenizer.pieces(encoding.token_ids) == pieces
    assert [text[start:end] for start, end in encoding.offsets] == places
    assert tokenizer.encode(text) == encoding.token_ids
    tokenizer.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").settings["digit_comma"] == mode


def test_modes_that_give_other_ids_have_other_fingerprints(comma_model: Path) -> None:
    modes = ("off", "intended", "google_py3")
    prints = {load_tokenizer(comma_model, ReadingOptions(digit_comma=mode)).fingerprint for mode in modes}
    cased = load_tokenizer(comma_model, ReadingOptions(lowercase=False)).fingerprint
    assert len(prints | {cased}) == 4


def test_where_words_come_from_does_not_change_the_fingerprint(comma_model: Path) -> None:
    assert (
        load_tokenizer(comma_model).fingerprint
        == load_tokenizer(comma_model, ReadingOptions(words="jieba")).fingerprint
    )


def test_the_official_model_is_read_as_google_meant_it(real_data: Path) -> None:
    tokenizer = load_tokenizer(real_data / "vocab")
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (
        0,
        1,
        2,
        3,
        4,
    )
    pieces = tokenizer.pieces(tokenizer.encode("Founded in 2010, it costs 1,000."))
    assert pieces == ["▁founded", "▁in", "▁2010", ",", "▁it", "▁costs", "▁1,000", "."]
