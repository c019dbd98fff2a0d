"""Texts that are sent to a tagger are cut into words as those were that it was trained on."""

from litebert.inference.records import _sentences_of_lines, _sentences_of_values
from litebert.server.functions import _find_words
from litebert.tasks.files.reading import TableOptions


def test_words_of_a_text_are_cut_at_spaces_or_as_in_training() -> None:
    text = "Ada, met\u00a0Bob."
    assert [word for word, *_ in _find_words(text)[1]] == ["Ada,", "met", "Bob."]
    found = _find_words(text, splits_words=True)[1]
    assert [word for word, *_ in found] == ["Ada", ",", "met", "Bob", "."]
    assert all(text[start:end] == word for word, start, end in found)


def test_a_sentence_without_spaces_is_cut_into_characters_with_their_places() -> None:
    text = "李明2018年去NBA。"
    found = _find_words(text)[1]
    assert [word for word, *_ in found] == ["李", "明", "2018", "年", "去", "NBA", "。"]
    assert all(text[start:end] == word for word, start, end in found)
    # words that somebody separated stay words
    assert [word for word, *_ in _find_words("李明 去 北京")[1]] == ["李明", "去", "北京"]


def test_words_of_a_list_stand_in_the_text_that_joins_them() -> None:
    joined, found = _find_words(["a", "", "b a"])
    assert joined == "a  b a"
    assert found == [("a", 0, 1), ("", 2, 2), ("b a", 3, 6)]


def test_predict_gives_the_offsets_of_a_plain_chinese_line() -> None:
    for splits_words in (False, True):
        [one] = _sentences_of_lines("李明去了 \n", "here", TableOptions(), splits_words=splits_words)
        assert one.words == ("李", "明", "去", "了")
        assert one.offsets == ((0, 1), (1, 2), (2, 3), (3, 4))
    [plain, words] = _sentences_of_values(["李明", ["李明"]], splits_words=False)
    assert (plain.words, plain.offsets, words.words, words.offsets) == (("李", "明"), ((0, 1), (1, 2)), ("李明",), ())
