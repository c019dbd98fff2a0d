"""Texts that are sent to a tagger are cut into words as those were that it was trained on."""

from litebert.server.functions import _find_words


def test_words_of_a_text_are_cut_at_spaces_or_as_in_training() -> None:
    text = "Ada, met\u00a0Bob."
    assert [word for word, *_ in _find_words(text)[1]] == ["Ada,", "met", "Bob."]
    found = _find_words(text, splits_words=True)[1]
    assert [word for word, *_ in found] == ["Ada", ",", "met", "Bob", "."]
    assert all(text[start:end] == word for word, start, end in found)
