"""The page says everything in both languages, and never words that it does not have."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "litebert" / "serve" / "page"


def words_by_language() -> dict[str, dict[str, str]]:
    text = (PAGE / "words.js").read_text("utf-8")
    parts = re.split(r"^  (en|zh): \{$", text, flags=re.MULTILINE)[1:]
    pattern = r'^    "?([\w.-]+)"?: "(.*)",$'
    return {
        name: dict(re.findall(pattern, body, re.MULTILINE)) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_both_languages_say_the_same_things_with_the_same_values() -> None:
    english, chinese = words_by_language().values()
    assert list(english) == list(chinese)
    assert len(english) > 80
    for key, words in english.items():
        assert sorted(re.findall(r"\{\w+\}", words)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key


def test_chinese_words_are_chinese() -> None:
    chinese = words_by_language()["zh"]
    others = {key for key, words in chinese.items() if not re.search("[\u4e00-\u9fff]", words)}
    assert others == {"language", "first", "then", "classify.say", "choose.say"}  # A and B, and names of the model's


def test_every_word_that_is_said_is_there() -> None:
    known = set(words_by_language()["en"])
    said = {key for file in PAGE.glob("*.js") for key in re.findall(r'\bsay\("([\w.-]+)"', file.read_text("utf-8"))}
    assert said <= known, said - known
    assert len(said) > 40
