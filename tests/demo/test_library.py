"""The demo's text: the same every time, prose only, nothing twice, and no code of the library run for it."""

import re
import textwrap
from pathlib import Path

import pytest
from refusals import refuses

from litebert.core.errors import DataError
from litebert.corpus.documents import Document
from litebert.demo.library import collect_documents, list_docstrings, load_topics, standard_library
from litebert.demo.prose import iter_sentences

# What reST, doctest and plain-text layout leave when they are not taken off
LEFTOVERS = re.compile(r"``|`|>>>|::|:(?:class|func|meth|mod|exc|data):|\.\. \w+:|\n| {2,}|={4,}|\*{4,}|https?://|\+--")


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return collect_documents(standard_library(), load_topics())


def test_this_python_carries_more_than_a_megabyte_of_prose(documents: list[Document]) -> None:
    assert len(documents) > 2000
    assert sum(len(sentence) for document in documents for sentence in document.sentences) > 1_000_000


def test_no_sentence_keeps_markup(documents: list[Document]) -> None:
    found = [s for document in documents for s in document.sentences if LEFTOVERS.search(s)]
    assert not found, found[:5]


def test_a_sentence_begins_and_ends_as_one(documents: list[Document]) -> None:
    for document in documents:
        for sentence in document.sentences:
            assert sentence[0].isupper() or sentence[0].isdigit(), sentence
            assert sentence[-1] in ".!?:)\"'”’]", sentence


def test_no_sentence_comes_twice(documents: list[Document]) -> None:
    sentences = [sentence for document in documents for sentence in document.sentences]
    assert len(set(sentences)) == len(sentences)


def test_collecting_is_deterministic_and_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text('raise SystemExit("imported")\n')
    (tmp_path / "a.py").write_text('"""This module is read first. It says two things."""\nimport nothing_like_this\n')
    (tmp_path / "broken.py").write_text("def (:\n")
    for skipped in ("test", "site-packages"):
        (tmp_path / skipped).mkdir()
        (tmp_path / skipped / "c.py").write_text('"""This is skipped by rule. It never comes up."""\n')
    first = collect_documents(tmp_path, {"topic": "A topic comes before modules. It has sentences."})
    assert first == collect_documents(tmp_path, {"topic": "A topic comes before modules. It has sentences."})
    assert [document.id for document in first] == ["topic topic", "module a"]


def test_a_library_without_source_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with refuses(DataError, "no-documentation"):
        collect_documents(tmp_path, {})


def test_docstrings_come_in_the_order_of_the_source() -> None:
    source = '"""m"""\nclass A:\n    """a"""\n    def f(self):\n        """f"""\ndef g():\n    """g"""\n'
    assert list_docstrings(source.encode()) == ["m", "a", "f", "g"]


def test_one_liners_of_a_module_are_gathered_into_one_document(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        'def f():\n    """Return the first of them."""\ndef g():\n    """Return the last of them."""\n'
        'def h():\n    """Sort the items in place. The order is kept."""\n'
    )
    documents = collect_documents(tmp_path, {})
    assert [document.sentences for document in documents] == [
        ("Sort the items in place.", "The order is kept."),
        ("Return the first of them.", "Return the last of them."),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The base of *all* ``such`` classes is :class:`~abc.ABC`.", ["The base of all such classes is abc.ABC."]),
        ("Heading of it\n=============\n\nThe text comes below it.", ["The text comes below it."]),
        ("Code follows here now::\n\n    >>> f(1)\n    2\n\nThen comes more.", ["Code follows here now:"]),
        ("+------+------+\n| This is | a table. |\n+------+------+", []),
        ("object.__init__(self[, ...])\n\n   Called when the instance is made.", ["Called when the instance is made."]),
        ("* The first of two.\n* The second of two.", ["The first of two.", "The second of two."]),
        ("assert_stmt ::= 'assert' expression ['in' more].", []),
        ("Return a wrapped line- \nfeed and the rest.", ["Return a wrapped line-feed and the rest."]),
        (":param name: The name of the thing.", ["The name of the thing."]),
        ("Return the value without a full stop", ["Return the value without a full stop."]),
        ("x = f(y) + g[z] * {a: b}.", []),
        (".. note::\n\n   This part of it stays.", ["This part of it stays."]),
    ],
)  # fmt: skip
def test_prose_stays_and_the_rest_goes(text: str, expected: list[str]) -> None:
    assert list(iter_sentences(textwrap.dedent(text))) == expected
