"""Traditional and simplified Chinese: converted by the tokenizer, with offsets in the text as it was given."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from tokenizers import Tokenizer as TheirTokenizer

from litebert.core.errors import ConfigError
from litebert.text.chinese_script import read_table
from litebert.text.tokenizer import ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import BERT_SPECIAL, VocabularyOptions, train_tokenizer

pytest.importorskip("opencc")

SIMPLIFIED = "台湾的图书馆在发展，头发很长，他去图书馆读书。"
TRADITIONAL = "臺灣的圖書館在發展，頭髮很長，他去圖書館讀書。"
MARKS = "漢̀漢҈ 漢\u0301a\u0301\u0301漢\ufe0f"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("zh") / "vocab.txt"
    pieces = [*BERT_SPECIAL, *dict.fromkeys(SIMPLIFIED + TRADITIONAL + "汉"), "a", "##b", "\u0301", "҈"]
    file.write_text("\n".join(pieces), "utf-8")
    return file


@pytest.fixture(scope="module")
def simplified(vocabulary: Path) -> Tokenizer:
    return load_tokenizer(vocabulary).adapted(script="simplified")


def test_both_scripts_have_the_same_ids_and_offsets(vocabulary: Path, simplified: Tokenizer) -> None:
    plain = load_tokenizer(vocabulary)
    assert plain.encode(TRADITIONAL) != plain.encode(SIMPLIFIED) == simplified.encode(TRADITIONAL)
    assert simplified.encode_with_offsets(TRADITIONAL) == simplified.encode_with_offsets(SIMPLIFIED)
    for start, end in simplified.encode_with_offsets(TRADITIONAL).offsets:
        assert end == start + 1
    traditional = plain.adapted(script="traditional")
    assert traditional.encode("图书馆") == plain.encode("圖書館")


def test_every_character_is_converted_as_opencc_does(simplified: Tokenizer) -> None:
    table = read_table("simplified")
    assert len(table) > 4000
    assert [simplified.normalize(before).strip() for before in table] == list(table.values())
    # one traditional character may stand for several others: only words say which, and characters are converted alone
    assert simplified.normalize("乾隆").replace(" ", "") == "干隆"


@settings(max_examples=200)
@given(
    st.text(alphabet=st.sampled_from([*(SIMPLIFIED + TRADITIONAL + MARKS), " ", "B", "\u3000", "[", "]"]), max_size=9)
)
def test_encoding_at_once_and_with_offsets_agree(simplified: Tokenizer, text: str) -> None:
    assert simplified.encode(text) == simplified.encode_with_offsets(text).token_ids
    for start, end in simplified.encode_with_offsets(text).offsets:
        assert 0 <= start <= end <= len(text)


@pytest.mark.parametrize("lowercase", [True, False])
def test_marks_after_a_character_change_nothing(vocabulary: Path, lowercase: bool) -> None:
    tokenizer = load_tokenizer(vocabulary, ReadingOptions(lowercase=lowercase)).adapted(script="simplified")
    assert tokenizer.encode(MARKS) == tokenizer.encode_with_offsets(MARKS).token_ids


def test_the_conversion_is_saved_and_needs_no_opencc(
    simplified: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simplified.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "manifest.json").read_text())["script"] == "simplified"
    monkeypatch.setitem(sys.modules, "opencc", None)
    saved = load_tokenizer(tmp_path / "saved")
    assert saved.settings == {"script": "simplified", "words": "pieces"}
    assert saved.encode(TRADITIONAL) == simplified.encode(TRADITIONAL)
    # and neither does anyone else's library
    theirs = TheirTokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    assert theirs.encode(TRADITIONAL, add_special_tokens=False).ids == simplified.encode(TRADITIONAL)
    assert saved.adapted(script="simplified").fingerprint == simplified.fingerprint
    with refuses(ConfigError, "conflicting-options"):
        saved.adapted(script="traditional")


def test_a_vocabulary_is_learned_from_converted_text() -> None:
    options = VocabularyOptions("wordpiece", 22, words="jieba", script="simplified", max_alphabet=8000)
    tokenizer = train_tokenizer([SIMPLIFIED, TRADITIONAL] * 2, options)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    assert set(SIMPLIFIED) <= set(pieces)
    assert not set(pieces) & (set(TRADITIONAL) - set(SIMPLIFIED))


def test_jieba_reads_the_simplified_text(vocabulary: Path) -> None:
    pytest.importorskip("jieba")
    plain = load_tokenizer(vocabulary, ReadingOptions(words="jieba"))
    converted = plain.adapted(script="simplified")
    expected = plain.mark_words(SIMPLIFIED, plain.encode(SIMPLIFIED)).tolist()
    assert converted.mark_words(TRADITIONAL, converted.encode(TRADITIONAL)).tolist() == expected


def test_only_wordpiece_is_converted() -> None:
    bpe = train_tokenizer(["some words"] * 9, VocabularyOptions("bpe", 262))
    for options in ({"script": "simplified"}, {"words": "jieba"}):
        with refuses(ConfigError, "kind-not-chinese"):
            bpe.adapted(**options)  # type: ignore[arg-type]
    with refuses(ConfigError, "kind-not-chinese"):
        VocabularyOptions("unigram", script="simplified")


def test_without_opencc_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with refuses(ConfigError, "missing-package"):
        read_table("simplified")
