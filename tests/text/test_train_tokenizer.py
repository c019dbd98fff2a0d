"""Training vocabularies: exact sizes, the same result everywhere, and helpful errors."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_text
from refusals import refuses
from small_text import SIZES

from litebert.core.errors import ConfigError, DataError
from litebert.text.tokenizer import ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

FIRST_PIECES = {
    "unigram": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "(", ")", '"', "-", ".", "–", "£", "€", ","],
    "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    "bpe": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
}

# what else makes room in a vocabulary, by an option that every caller has; BPE always has the same 256 bytes
KNOBS = {"unigram": "character_coverage"}


def test_special_tokens_have_the_ids_of_the_published_models(tokenizer: Tokenizer) -> None:
    expected = FIRST_PIECES[tokenizer.kind]
    assert tokenizer.pieces(range(len(expected))) == expected
    assert tokenizer.special_ids == frozenset(range(5))


def test_the_same_text_gives_the_same_tokenizer_in_another_process(tokenizer: Tokenizer) -> None:
    code = (
        f"import sys; sys.path.append({str(Path(small_text.__file__).parent)!r})\n"
        "from small_text import make_sentences\n"
        "from litebert.text.train_tokenizer import *\n"
        f"options = VocabularyOptions({tokenizer.kind!r}, {tokenizer.vocab_size})\n"
        "print(train_tokenizer(make_sentences(), options).fingerprint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tokenizer.fingerprint


@pytest.mark.parametrize("kind", SIZES)
def test_a_vocabulary_that_is_too_large_is_refused_with_the_largest_that_works(kind: str, sentences: list[str]) -> None:
    with refuses(ConfigError, "vocabulary-too-large") as caught:
        train_tokenizer(sentences, VocabularyOptions(kind, 50_000))
    largest = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert train_tokenizer(sentences, VocabularyOptions(kind, largest)).vocab_size == largest


@pytest.mark.parametrize("kind", SIZES)
def test_a_vocabulary_that_is_too_small_is_refused_with_the_smallest_that_works(
    kind: str, sentences: list[str]
) -> None:
    with refuses(ConfigError, "vocabulary-too-small") as caught:
        train_tokenizer(sentences, VocabularyOptions(kind, 20))
    for name in ("character_coverage", "max_alphabet"):
        assert (name in str(caught.value)) == (name == KNOBS.get(kind)), "only advice that helps"
    smallest = int(re.search(r"take (\d+)", str(caught.value))[1])
    assert train_tokenizer(sentences, VocabularyOptions(kind, smallest + 1)).vocab_size == smallest + 1


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("texts", [[], ["", " \n"], ["\0"]])
def test_no_text_is_an_error(kind: str, texts: list[str]) -> None:
    with refuses(DataError, "empty-corpus"):
        train_tokenizer(texts, VocabularyOptions(kind, 100))


@pytest.mark.parametrize("kind", SIZES)
def test_an_error_of_the_reader_comes_through(kind: str, sentences: list[str]) -> None:
    def read() -> Iterator[str]:
        yield from sentences
        raise DataError("bad-encoding", "books.txt:3: not UTF-8")

    with pytest.raises(DataError, match=r"books\.txt:3"):
        train_tokenizer(read(), VocabularyOptions(kind, 100))


@pytest.mark.parametrize("kind", SIZES)
def test_text_without_line_breaks_is_learned_as_well(kind: str, sentences: list[str]) -> None:
    """SentencePiece alone would silently drop a line above 4,192 bytes."""
    tokenizer = train_tokenizer([" ".join(sentences)], VocabularyOptions(kind, SIZES[kind]))
    assert len(tokenizer.encode(" mountain")) <= 3


def test_every_digit_comma_mode_gives_the_same_ids_for_our_vocabularies(
    tokenizers_by_kind: dict[str, Tokenizer], sentences: list[str], tmp_path: Path
) -> None:
    tokenizers_by_kind["unigram"].save(tmp_path / "tok")
    model = tmp_path / "tok" / "spiece.model"
    ids = [
        load_tokenizer(model, ReadingOptions(digit_comma=m)).encode_batch(sentences)
        for m in ("off", "intended", "google_py3")
    ]
    assert ids[0] == ids[1] == ids[2]
    pieces = tokenizers_by_kind["unigram"].pieces(range(tokenizers_by_kind["unigram"].vocab_size))
    assert [piece for piece in pieces if "," in piece] == [","]


@pytest.mark.parametrize("size", [0, 101])
def test_the_smallest_samples_are_learned_from(size: int, sentences: list[str]) -> None:
    options = VocabularyOptions("unigram", 100, input_sentence_size=size)
    assert train_tokenizer(sentences, options).vocab_size == 100


def test_case_is_kept_if_requested(sentences: list[str]) -> None:
    for kind in SIZES:
        cased = train_tokenizer(sentences, VocabularyOptions(kind, SIZES[kind], lowercase=False))
        assert cased.encode("The") != cased.encode("the")
        uncased = train_tokenizer(sentences, VocabularyOptions(kind, SIZES[kind], lowercase=True))
        assert uncased.encode("The CAFÉ") == uncased.encode("the café")


def test_rare_characters_give_way_to_frequent_ones() -> None:
    texts = ["abc abc 中文"] * 50 + ["xyz"]
    tokenizer = train_tokenizer(texts, VocabularyOptions("wordpiece", 14, max_alphabet=5))
    assert tokenizer.unk_id not in tokenizer.encode("abc 中文")
    assert tokenizer.encode("x") == [tokenizer.unk_id]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"kind": "wordpeice"}, "unknown-value"),
        ({"vocab_size": 3}, "vocabulary-too-small"),
        ({"vocab_size": 999_999_999}, "vocabulary-too-large"),
        ({"input_sentence_size": -1}, "out-of-range"),
        ({"input_sentence_size": 100}, "out-of-range"),
        ({"input_sentence_size": 10**20}, "out-of-range"),
        ({"character_coverage": 0.5}, "out-of-range"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], code: str) -> None:
    with refuses(ConfigError, code):
        VocabularyOptions(**options)


def test_rare_chinese_characters_leave_room_for_the_others() -> None:
    pytest.importorskip("jieba")
    common = "".join(chr(0x4E00 + n) for n in range(50))
    rare = "".join(chr(0x5E00 + n) for n in range(300))
    texts = [common, *(f"{common} lite bert albert pretraining sentences {letter}" for letter in rare)]
    tokenizer = train_tokenizer(texts, VocabularyOptions("wordpiece", 100, words="jieba", max_alphabet=8000))
    assert tokenizer.vocab_size == 100
    assert tokenizer.unk_id not in tokenizer.encode(common)
    assert tokenizer.unk_id in tokenizer.encode(rare)
