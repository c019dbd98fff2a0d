"""transformers.AutoTokenizer on the files that we write gives our ids; each input where it does not is explained."""

import io
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from small_configs import NARROW
from small_text import SIZES, make_sentences
from tokenizers import Regex, normalizers
from varied_lines import FRAGMENTS, iter_rare_lines, iter_varied_lines

from litebert.checkpoint import CheckpointContent, load_checkpoint, save_checkpoint
from litebert.core.files import write_json
from litebert.interop.tokenizer_files import write_tokenizer_files
from litebert.model.config import HeadSpec
from litebert.model.model import build_model
from litebert.text.normalize import Normalization, normalize
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.tokenizer import ReadingOptions, Tokenizer, load_tokenizer
from litebert.text.train_tokenizer import VocabularyOptions, train_tokenizer

Feature = Callable[[str], object]
SPECIAL_NAMES = re.compile(r"\[(CLS|SEP|MASK|PAD|UNK)\]|<(pad|unk|s|/s|mask)>")
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
FILES = ["spiece.model", "tokenizer.json", "tokenizer_config.json"]
ALBERT = replace(NARROW, vocab_size=SIZES["unigram"], initializer_range=0.3)
BERT = replace(ALBERT, embedding_size=16, sharing="none")
ROBERTA = replace(BERT, vocab_size=SIZES["bpe"], num_segments=1, activation="gelu")
MODELS = {"unigram": ALBERT, "wordpiece": BERT, "bpe": ROBERTA}


def has_newer_character(text: str) -> bool:
    """One that Python's Unicode tables know and the library's do not, or the other way about."""
    if "Σ" in text and any(c in newer_neighbours() for c in text):
        return True  # whether a sigma ends a word depends on what stands beside it
    return any(not c.isascii() and c in newer_characters() for c in text)


@cache
def newer_characters() -> frozenset[str]:
    forms, lowercase = normalizers.NFKD(), normalizers.Lowercase()
    return frozenset(
        c
        for c in CHARACTERS
        if forms.normalize_str(c) != unicodedata.normalize("NFKD", c) or lowercase.normalize_str(c) != c.lower()
    )


@cache
def newer_neighbours() -> frozenset[str]:
    """The characters that the two sides do not agree to be letters, or to be passed over between letters."""
    passed_over = normalizers.Replace(Regex(r"\p{Case_Ignorable}"), "")
    letter = normalizers.Replace(Regex(r"[\p{Cased}&&[^\p{Case_Ignorable}]]"), "")

    def is_letter(c: str) -> bool:
        return f"1{c}Σ".lower().endswith("ς")

    def is_passed_over(c: str) -> bool:
        return f"a{c}Σ".lower().endswith("ς") and not is_letter(c)

    return frozenset(
        c
        for c in CHARACTERS
        if is_letter(c) != (not letter.normalize_str(c)) or is_passed_over(c) != (not passed_over.normalize_str(c))
    )


def has_swallowed_mark(text: str) -> bool:
    """A mark without combining class right behind a character that SentencePiece maps to a space."""
    return any(
        before in "▁\ufffd\u200c\u200d" and unicodedata.category(mark).startswith("M")
        for before, mark in pairwise(text)
    )


UNIGRAM_FEATURES = (SPECIAL_NAMES.search, has_newer_character, has_swallowed_mark)
FEATURES: dict[str, tuple[Feature, ...]] = {
    "unigram": UNIGRAM_FEATURES,
    "wordpiece": (SPECIAL_NAMES.search,),
    "bpe": (SPECIAL_NAMES.search,),
}


@pytest.fixture(scope="module")
def small() -> dict[str, Tokenizer]:
    sentences = make_sentences()
    return {kind: train_tokenizer(sentences, VocabularyOptions(kind, size)) for kind, size in SIZES.items()}


@pytest.fixture(scope="module")
def small_pairs(
    small: dict[str, Tokenizer], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Tokenizer, Any]]:
    return {kind: (ours, load_theirs(ours, tmp_path_factory.mktemp(kind))) for kind, ours in small.items()}


@pytest.fixture(scope="module")
def lines(real_data: Path) -> list[str]:
    lines = [*list(iter_varied_lines(real_data))[::4], *iter_rare_lines(1000)]
    assert len(set(lines)) > 5000
    return lines


def load_theirs(tokenizer: Tokenizer, folder: Path, **options: Any) -> Any:
    write_tokenizer_files(tokenizer, folder, **options)
    # the class that AutoTokenizer would take by itself is the one that ignores our normalizer
    write_json(folder / "config.json", {"model_type": "albert"})
    return transformers.AutoTokenizer.from_pretrained(folder)


def save_toy(kind: str, tokenizer: Tokenizer, path: Path) -> None:
    torch.manual_seed(1)
    heads = [HeadSpec("mlm")] if kind == "bpe" else [HeadSpec("mlm"), HeadSpec("sentence")]
    save_checkpoint(path, build_model(MODELS[kind], heads), tokenizer, CheckpointContent(step=1))


def encode_theirs(theirs: Any, lines: Sequence[str]) -> list[list[int]]:
    ids: list[list[int]] = theirs(list(lines), add_special_tokens=False)["input_ids"]
    return ids


def is_seen_alike(tokenizer: Tokenizer, theirs: Any, line: str) -> bool:
    """Ids alone would hide every difference between characters that the vocabulary does not know."""
    normalizer = theirs.backend_tokenizer.normalizer
    if tokenizer.model_file != "spiece.model" or normalizer is None:
        return True  # the normalizer of their own library, carried over as it is
    seen = normalizer.normalize_str(line).replace("▁", " ")  # Metaspace writes them alike, as SentencePiece does
    return bool(seen.removeprefix(" ") == tokenizer.normalize(line))


def assert_same_except(tokenizer: Tokenizer, theirs: Any, lines: Sequence[str], *explained: Feature) -> list[str]:
    """The lines that differ, in ids or in the text that the vocabulary sees; each has an explained feature."""
    ids = zip(lines, tokenizer.encode_batch(lines), encode_theirs(theirs, lines), strict=True)
    differing = [line for line, a, b in ids if a != b or not is_seen_alike(tokenizer, theirs, line)]
    unexplained = [line for line in differing if not any(feature(line) for feature in explained)]
    assert not unexplained, (len(unexplained), [ascii(line) for line in unexplained[:5]])
    return differing


@pytest.mark.parametrize("kind", SIZES)
def test_ids_are_ours_on_real_text_with_vocabularies_that_we_train(kind: str, lines: list[str], tmp_path: Path) -> None:
    ours = train_tokenizer(lines[:3000], VocabularyOptions(kind, 3000, max_alphabet=2000))
    differing = assert_same_except(ours, load_theirs(ours, tmp_path), lines, *FEATURES[kind])
    assert differing, "special tokens' names should differ"
    assert set(differing) <= set(iter_rare_lines(5000)), "a line of real text differs"


def test_ids_are_ours_on_real_text_with_the_official_vocabulary(
    lines: list[str], real_data: Path, tmp_path: Path
) -> None:
    file = real_data / "vocab/albert-30k.model"
    theirs = load_theirs(load_tokenizer(file), tmp_path)
    without_rule = load_tokenizer(file, ReadingOptions(digit_comma="off"))
    differing = assert_same_except(without_rule, theirs, lines, *UNIGRAM_FEATURES)
    assert set(differing) <= set(iter_rare_lines(5000)), "a line of real text differs"

    def is_touched(line: str) -> bool:
        pieces = without_rule.pieces(without_rule.encode(line))
        return any(len(piece) > 1 and piece.endswith(",") and piece[-2].isdigit() for piece in pieces)

    differing = assert_same_except(load_tokenizer(file), theirs, lines, is_touched, *UNIGRAM_FEATURES)
    touched = [line for line in lines if is_touched(line)]
    assert touched
    assert set(touched) <= set(differing)


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_has_our_ids_with_the_official_vocabulary(
    lowercase: bool, real_data: Path, tmp_path: Path
) -> None:
    options = ReadingOptions(digit_comma="off", lowercase=lowercase)
    ours = load_tokenizer(real_data / "vocab/albert-30k.model", options)
    lines = [f"{c}a {c} Σ{c}Σ{c}" for c in CHARACTERS[:0x20000]]
    differing = assert_same_except(ours, load_theirs(ours, tmp_path), lines, has_newer_character)
    assert any(map(has_newer_character, differing)), "an explanation explains nothing"


@pytest.mark.parametrize("kind", SIZES)
def test_constructed_rarities_have_our_ids(kind: str, small_pairs: dict[str, tuple[Tokenizer, Any]]) -> None:
    ours, theirs = small_pairs[kind]
    assert_same_except(ours, theirs, list(iter_rare_lines(3000)), *FEATURES[kind])


ODD_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([*FRAGMENTS, " ", "\u0301", "\u07a6", "Σ", "ΑΣ", "'", "the", "▁"])
    | st.characters(categories=["Mn", "Mc", "Me", "Zs", "Cc", "Cf", "Lm", "Sk", "Lo"])
).map("".join)


@pytest.mark.parametrize("kind", SIZES)
@given(text=ODD_TEXT)
def test_any_text_has_our_ids(kind: str, small_pairs: dict[str, tuple[Tokenizer, Any]], text: str) -> None:
    ours, theirs = small_pairs[kind]
    assert_same_except(ours, theirs, [text], *FEATURES[kind])


def test_a_mark_behind_what_becomes_a_space_is_swallowed_there(
    small_pairs: dict[str, tuple[Tokenizer, Any]],
) -> None:
    ours, theirs = small_pairs["unigram"]
    line = "river▁\u07a6river"
    assert has_swallowed_mark(line)
    assert ours.encode(line) != encode_theirs(theirs, [line])[0]


def test_capital_sigma_becomes_what_python_makes_of_it(small_pairs: dict[str, tuple[Tokenizer, Any]]) -> None:
    _, theirs = small_pairs["unigram"]
    for line in ("ΟΔΟΣ", "ΟΔΟΣ'", "Σ", "ΣΑΣ ΑΣΣ", "Α'Σ Α", "Α.Σ.Α", "1Σ", "ʰΣ", "ΑΣ\u00ad", "Α\u00adΣ1"):
        seen = theirs.backend_tokenizer.normalizer.normalize_str(line)
        assert seen == normalize(line, Normalization()), line


def test_korean_is_put_together_again(tmp_path: Path) -> None:
    text = "한국어 문장을 읽고 쓰는 사람들이 산과 강을 보았다 그리고 마을에서 노래를 불렀다"
    ours = train_tokenizer([text] * 20, VocabularyOptions(vocab_size=45, character_coverage=1.0))
    theirs = load_theirs(ours, tmp_path)
    assert ours.unk_id not in ours.encode(text)
    assert not assert_same_except(ours, theirs, [text, unicodedata.normalize("NFKD", text)])


def test_a_model_without_dummy_prefix_or_space_rules_has_our_ids(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_sentences()),
        model_writer=model,
        vocab_size=200,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    policy = Normalization(collapses_whitespace=False, unicode_form="none", drops_accents=False, lowercase=False)
    ours = Tokenizer(SentencePieceBackend(model.getvalue(), policy, "off"))
    lines = ["The river", " The  river ", "river", "", " ", "Café e\u0301\tx", "▁the"]
    assert not assert_same_except(ours, load_theirs(ours, tmp_path), lines)


@pytest.mark.parametrize("kind", SIZES)
def test_a_checkpoint_gives_a_tokenizer_with_special_tokens_and_segments(
    kind: str, small: dict[str, Tokenizer], tmp_path: Path
) -> None:
    ours = small[kind]
    save_toy(kind, ours, tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    a, b = ours.encode("The old river."), ours.encode("A village, early.")
    single = theirs("The old river.")
    assert single["input_ids"] == [ours.cls_id, *a, ours.sep_id]
    pair = theirs("The old river.", "A village, early.")
    if kind == "bpe":
        assert pair["input_ids"] == [ours.cls_id, *a, ours.sep_id, ours.sep_id, *b, ours.sep_id]
        assert "token_type_ids" not in pair
    else:
        assert pair["input_ids"] == [ours.cls_id, *a, ours.sep_id, *b, ours.sep_id]
        assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    for name in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(theirs, f"{name}_token_id") == getattr(ours, f"{name}_id")
    assert len(theirs) == ours.vocab_size
    assert theirs.model_max_length == 32
    assert len(theirs("river " * 100, truncation=True)["input_ids"]) == 32


@pytest.mark.parametrize("kind", SIZES)
def test_decoding_gives_our_text(kind: str, small_pairs: dict[str, tuple[Tokenizer, Any]]) -> None:
    ours, theirs = small_pairs[kind]
    for line in make_sentences(50):
        token_ids = ours.encode(line)
        assert ours.unk_id not in token_ids
        assert theirs.decode(theirs(line)["input_ids"], skip_special_tokens=True) == ours.decode(token_ids)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("text", ["We saw the {} of the north.", "{} of the river", "the old {}, and", "the {}"])
def test_a_mask_takes_the_place_of_a_word(kind: str, text: str, small_pairs: dict[str, tuple[Tokenizer, Any]]) -> None:
    ours, theirs = small_pairs[kind]
    word = "a" if kind == "bpe" and text.startswith("{}") else "station"  # one piece, also without a space before it
    token_ids = ours.encode(text.format(word))
    [target] = {i for i in token_ids if ours.pieces([i])[0].lstrip("▁Ġ") == word}
    masked = [ours.mask_id if i == target else i for i in token_ids]
    assert masked.count(ours.mask_id) == 1
    assert encode_theirs(theirs, [text.format(theirs.mask_token)]) == [masked]


@pytest.mark.parametrize("kind", SIZES)
def test_fill_mask_gives_our_probabilities(kind: str, small: dict[str, Tokenizer], tmp_path: Path) -> None:
    ours = small[kind]
    save_toy(kind, ours, tmp_path / "saved")
    fill = transformers.pipeline("fill-mask", model=str(tmp_path / "saved"), device="cpu")
    answers = fill(f"The old {fill.tokenizer.mask_token} walks slowly.", top_k=5)
    before, after = ours.encode("The old"), ours.encode("x walks slowly.")[len(ours.encode("x")) :]
    token_ids = torch.tensor([[ours.cls_id, *before, ours.mask_id, *after, ours.sep_id]])
    model = load_checkpoint(tmp_path / "saved").load_model().eval()
    with torch.no_grad():
        logits = model.masked_lm_logits(model.encoder(token_ids).hidden)[0, 1 + len(before)]
    scores, best = logits.softmax(-1).topk(5)
    assert [answer["token"] for answer in answers] == best.tolist()
    torch.testing.assert_close(torch.tensor([answer["score"] for answer in answers]), scores, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", SIZES)
def test_two_checkpoints_have_the_same_tokenizer_files(kind: str, small: dict[str, Tokenizer], tmp_path: Path) -> None:
    small[kind].save(tmp_path / "tokenizer")
    save_toy(kind, small[kind], tmp_path / "first")
    save_toy(kind, load_tokenizer(tmp_path / "tokenizer"), tmp_path / "second")
    names = FILES if kind == "unigram" else FILES[1:]
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert (tmp_path / "first" / FILES[0]).exists() == (kind == "unigram")


@pytest.mark.parametrize("lowercase", [True, False])
def test_we_read_our_own_vocabulary_back_from_these_files(lowercase: bool, tmp_path: Path) -> None:
    ours = train_tokenizer(make_sentences(), VocabularyOptions(vocab_size=200, lowercase=lowercase))
    write_tokenizer_files(ours, tmp_path)
    assert load_tokenizer(tmp_path).fingerprint == ours.fingerprint
