"""The word cache: the same ids as without it, for any text and any earlier texts."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from varied_lines import FRAGMENTS, iter_rare_lines

from litebert.text import word_cache
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.word_cache import find_cut

TEXT = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(), st.sampled_from([" ", "  ", "'s", "don't ", "中"]))
).map("".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(texts=st.lists(TEXT, max_size=5))
def test_a_text_has_the_same_ids_alone_and_after_others(tokenizer: Tokenizer, texts: list[str]) -> None:
    # encode_with_offsets never uses the memory
    assert tokenizer.encode_batch(texts) == [tokenizer.encode_with_offsets(text).token_ids for text in texts]


def test_forgetting_changes_nothing(tokenizer: Tokenizer, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MAX_WORDS", 10)
    fresh = load_tokenizer(saved)
    lines = list(iter_rare_lines(200))
    assert [fresh.encode(line) for line in lines] == tokenizer.encode_batch(lines)


def test_only_rules_that_never_look_across_a_space_are_cut(saved: Path, tokenizer: Tokenizer) -> None:
    if tokenizer.kind == "unigram":  # sentencepiece, which needs no memory
        assert not (saved / "tokenizer.json").exists()
        return
    facts = json.loads((saved / "tokenizer.json").read_text("utf-8"))
    assert find_cut(facts) is not None
    extra = {**facts["added_tokens"][0], "content": "New York", "special": False}
    assert find_cut({**facts, "added_tokens": [extra]}) is None
    assert find_cut({**facts, "pre_tokenizer": {"type": "Metaspace"}}) is None
    assert find_cut({**facts, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}) is None
    assert find_cut({**facts, "normalizer": {"type": "Replace"}}) is None
