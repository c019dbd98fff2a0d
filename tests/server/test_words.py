"""The page says everything in both languages, and never words that it does not have."""

import re
from pathlib import Path

from litebert.server.refusals import CODES

PACKAGE = Path(__file__).parents[2] / "litebert"
PAGES = (PACKAGE / "page", PACKAGE / "server" / "page", PACKAGE / "exporters" / "page")


def words_by_language() -> dict[str, dict[str, str]]:
    text = (PAGES[0] / "words.js").read_text("utf-8")
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


def test_every_word_of_the_page_has_a_translation() -> None:
    known = set(words_by_language()["en"])
    files = [file for page in PAGES for file in page.glob("*.js") if not file.name.startswith("docs")]
    scripts = "".join(file.read_text("utf-8") for file in files)
    said = set(re.findall(r'\b(?:say\(|privacy: |words: )"([\w.-]+)"', scripts))
    assert said <= known, said - known
    assert len(said) > 40


def test_every_word_of_the_description_is_there_in_chinese() -> None:
    page = PAGES[1]
    known = set(re.findall(r'^  "(.+?)": ', (page / "docs-words.js").read_text("utf-8"), re.MULTILINE))
    said = set(re.findall(r'\bsay\("([^"]+)"', (page / "docs.js").read_text("utf-8")))
    assert said, "docs.js says its words with say()"
    assert said <= known, said - known


def test_every_refusal_of_the_server_has_its_words() -> None:
    sources = "".join(file.read_text("utf-8") for file in (PACKAGE / "server").glob("*.py"))
    codes = set(re.findall(r'code="(\w+)"', sources)) | set(CODES.values())
    assert {"too_long", "stopping", "not_http", "wrong_origin"} <= codes  # found where they are
    assert {f"error.{code}" for code in codes} <= set(words_by_language()["en"])
