"""The sentence splitter: a table of tricky cases, and what holds for any text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.text.sentences import split_sentences

# Each text has its boundaries written as " | " (or "|" where the language has no space).
CASES = [
    "It rained. | We stayed at home.",
    "Is it so? | Yes! | Well then.",
    "Dr. Smith met Mrs. Jones and Prof. Lee on Mt. Hood. | They talked.",
    "St. Paul's is in London. | Visit it.",
    "J. R. R. Tolkien wrote it. | C. S. Lewis read it.",
    "George W. Bush won. | The vote was close.",
    "He moved to the U.S. in 1990. | He liked it.",
    "He lives in the U.S. | The army called him.",
    "The U.S. Army called him.",
    "They met at 5 p.m. on Monday. | Nobody came.",
    "They met at 5 p.m. | Then they left.",
    "Use fruit, e.g. Apples, or vegetables, i.e. Carrots.",
    "Smith v. Jones was decided in 1901. | It mattered.",
    "Acme Inc. Shares rose.",
    "Acme Inc. | The shares rose.",
    "He earned a Ph.D. in physics. | It took years.",
    "See Fig. 3 and vol. 2, pp. 12-14. | It is there.",
    "No. 5 is alive. | No. | Really.",
    "On Jan. 5 it began. | On Dec. 24 it ended.",
    "Pi is 3.14159. | The rest is 0.5 of it.",
    "It cost $3.50. | That is cheap.",
    "Version 2.0.1 is out. | Get it at www.example.com. | It is free.",
    "Mail me at a.b@example.org. | I will answer.",
    "Read https://example.org/a.b?c=d. | Then write.",
    "The codec is G.722. | Radio uses it.",
    'He said, "I am here." | Then he left.',
    'He said, "I am here. | You are not."',
    '"Stop!" he cried. | "Why?" she asked.',
    "“Who is it?” asked Anna. | “It is I.” | Silence fell.",
    "‘Oh!’ said Dora. | ‘Never mind.’ | She smiled.",
    "(He left early.) | Nobody saw it.",
    "It works (see p. 5). | Trust me.",
    "The claim is old.[1] | It was denied.[2][3] | So what.",
    "Wait... | What was that?",
    "Well... maybe not.",
    "Well… maybe not. | Or so…",
    "What?! | No way!!! | Yes.",
    "1. Preheat the oven. | 2. Bake.",
    "IV. The Return. | It begins.",
    "He is taller than I. | Susan is not.",
    "The 1920's. | Henceforth all was well.",
    "Élan is good. | Été is summer. and élan goes on. étéless too.",
    "Он пришёл. | Она ушла.",
    "a sentence without an end",
    "Two\nlines of one sentence. | And one more.",
    "¿Qué tal? | ¡Bien! | ¿Y tú?",
    "他来了。|她走了！|真的吗？|是的",
    "他说：“你好。”|然后走了。",
    "（他走了。）|我们留下了。",
    "等等……|你说什么？！|没有",
    "面积1.5平方公里。|人口24,704人。",
    "真的?|我不信!|好吧",
    "これは本です。|「はい。」|終わり。",
]


@pytest.mark.parametrize("case", CASES)
def test_boundaries_are_where_a_reader_puts_them(case: str) -> None:
    text = case.replace(" | ", " ").replace("|", "")
    assert split_sentences(text) == [part.strip() for part in case.split("|")]


def test_an_empty_line_ends_a_sentence_and_a_single_newline_does_not() -> None:
    assert split_sentences("A title\n\nthe text\ngoes on") == ["A title", "the text\ngoes on"]


@pytest.mark.parametrize("text", ["", " \n\n\t ", "\u3000"])
def test_text_without_letters_has_no_sentences(text: str) -> None:
    assert split_sentences(text) == []


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from(list(" .!?\n\"')]([1]AaÉé。！？…”中_")))))
def test_no_character_is_lost_or_moved(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@given(st.lists(st.sampled_from(["Mr. Fox ran.", "Is it?", "中文。", "It cost 3.5 dollars."]), min_size=1))
def test_joined_sentences_are_split_again(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize("unit", [".", "Mr. A ", "a. ", '."', "\n ", ".[1]", "…", "é.a", "! ", "é. "])
def test_time_grows_only_in_proportion_to_the_text(unit: str) -> None:
    started = time.perf_counter()
    split_sentences(unit * 100_000)
    assert time.perf_counter() - started < 5  # quadratic: minutes
