"""Normalization: Google's steps, and offsets into the original text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from varied_lines import FRAGMENTS

from litebert.text.normalize import Normalization, align, normalize

POLICIES = [
    Normalization(),
    Normalization(lowercase=False),
    Normalization(unicode_form="NFKC", drops_accents=False),
    Normalization(unicode_form="none", drops_accents=False, lowercase=False),
    Normalization(collapses_whitespace=False),
    Normalization(collapses_whitespace=False, unicode_form="NFKC", drops_accents=False),
]
RARE_TEXT = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(), st.sampled_from([" ", "\ud800"]))).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Hello \t\n WORLD ", "hello world"),
        ("Café naïve ÅNGSTRÖM", "cafe naive angstrom"),
        ("ﬁne ½ Ⅳ ①", "fine 1⁄2 iv 1"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("ΟΔΟΣ İ", "οδος i"),
        ("中文。", "中文。"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
        ("", ""),
        ("\u0301", ""),
    ],
)
def test_the_default_is_what_the_released_albert_saw(text: str, expected: str) -> None:
    assert normalize(text, Normalization()) == expected


@given(RARE_TEXT)
def test_the_default_is_googles_recipe_step_by_step(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    decomposed = unicodedata.normalize("NFKD", " ".join(text.strip().split()))
    assert normalize(text, Normalization()) == "".join(c for c in decomposed if not unicodedata.combining(c)).lower()


@given(RARE_TEXT, st.sampled_from(POLICIES))
def test_each_character_has_a_span_in_the_original_in_order(text: str, policy: Normalization) -> None:
    normalized, starts, ends = align(text, policy)
    assert normalized == normalize(text, policy)
    assert len(normalized) == len(starts) == len(ends)
    assert list(starts) == sorted(starts)
    assert list(ends) == sorted(ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))


@given(RARE_TEXT, st.sampled_from(POLICIES))
def test_the_text_at_a_characters_span_normalizes_to_that_character(text: str, policy: Normalization) -> None:
    for character, start, end in zip(*align(text, policy), strict=True):
        # ς and σ: a capital sigma's small form depends on its neighbours
        seen = normalize(text[start:end], policy).replace("ς", "σ")
        assert character.replace("ς", "σ") in seen or (character == " " and not seen)
