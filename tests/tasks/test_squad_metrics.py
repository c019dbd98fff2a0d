"""EM and F1 equal those of an independent reading of the official scripts, at every edge we could think of."""

import numpy as np
import official_squad
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.squad.metrics import find_best_threshold, normalize_answer, score_answer, summarize_scores
from litebert.tasks.squad.reading import Answer, Question

# words, articles, punctuation (ASCII and not), accents, ligatures, other scripts, odd spaces, a sigma for each place
PLAIN = [
    "the",
    "The",
    "a",
    "an",
    "A",
    "cat",
    "Cat",
    "theatre",
    "an-",
    "’s",
    "'s",
    ",",
    ".",
    "—",
    "“",
    "50",
    "5,000",
    "_",
]
ODD = ["Café", "Café", "ﬁn", "ß", "ΟΔΟΣ", "中文", "的", "İ", "\xa0", "\u3000", "\u200b", "\t", " ", "", "½", "$"]
FRAGMENTS = st.sampled_from([*PLAIN, *ODD])
TEXTS = (
    st.lists(FRAGMENTS, max_size=5).map("".join) | st.lists(FRAGMENTS, max_size=5).map(" ".join) | st.text(max_size=8)
)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_scores_of_1_1_equal_the_reference(prediction: str, golds: list[str]) -> None:
    assert score_answer(prediction, golds, "1.1") == official_squad.scores_v1(prediction, golds)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_scores_of_2_0_equal_the_reference(prediction: str, golds: list[str]) -> None:
    assert score_answer(prediction, golds, "2.0") == official_squad.scores_v2(prediction, golds)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("The Denver Broncos", ["Denver Broncos!"], 1.0, 1.0),
        ("Denver", ["Denver Broncos", "Carolina"], 0.0, 2 / 3),
        ("24–10", ["2410"], 0.0, 0.0),  # an en dash is no ASCII punctuation
        ("24-10", ["2410"], 1.0, 1.0),
        ("Café", ["Cafe"], 0.0, 0.0),  # accents count
        ("the the cat", ["cat"], 1.0, 1.0),
        ("cat cat", ["cat"], 0.0, 2 / 3),
        ("Theatre", ["atre"], 0.0, 0.0),  # an article inside a word stays
        ("", ["cat"], 0.0, 0.0),
    ],
)
def test_known_cases(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    for version in ("1.1", "2.0"):
        assert score_answer(prediction, golds, version) == pytest.approx((exact, f1))  # type: ignore[arg-type]


def test_the_versions_differ_where_nothing_is_left_of_an_answer() -> None:
    assert score_answer("the", ["a"], "1.1") == (1.0, 0.0)
    assert score_answer("the", ["a"], "2.0") == (1.0, 1.0)
    assert score_answer("", [], "2.0") == (1.0, 1.0)
    assert score_answer("cat", [], "2.0") == (0.0, 0.0)


def test_normalisation_keeps_no_superfluous_space() -> None:
    assert normalize_answer("  A  “quick”,\u00a0brown fox. ") == "“quick” brown fox"


QUESTIONS = st.lists(
    st.tuples(
        st.booleans(),  # has an answer
        st.booleans(),  # is answered
        st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 0.7, 1.0]),  # score
        st.sampled_from([-3.0, -1.5, -0.1, 0.0, 0.3, 2.0, 7.5]) | st.floats(-9, 9),  # odds, with many ties
    ),
    max_size=25,
)


@given(QUESTIONS)
def test_the_best_threshold_is_that_of_the_official_sweep(rows: list[tuple[bool, bool, float, float]]) -> None:
    ids = [str(number) for number in range(len(rows))]
    score, threshold = official_squad.best_threshold(
        {id_: "x" if row[1] else "" for id_, row in zip(ids, rows, strict=True)},
        {id_: row[2] for id_, row in zip(ids, rows, strict=True)},
        {id_: row[3] for id_, row in zip(ids, rows, strict=True)},
        {id_: row[0] for id_, row in zip(ids, rows, strict=True)},
    )
    ours = find_best_threshold(
        np.array([row[2] for row in rows]),
        np.array([row[3] for row in rows]),
        np.array([row[0] for row in rows], dtype=np.bool_),
        np.array([row[1] for row in rows], dtype=np.bool_),
    )
    assert (ours.score, ours.value) == (score, threshold)


def test_questions_with_and_without_answer_are_also_scored_separately() -> None:
    questions = [
        Question("1", "?", "a cat", (Answer("cat", 2),)),
        Question("2", "?", "a cat", ()),
        Question("3", "?", "a cat", ()),
    ]
    scores = [score_answer("dog", ["cat"], "2.0"), score_answer("", [], "2.0"), score_answer("cat", [], "2.0")]
    assert summarize_scores(scores, questions, "2.0") == pytest.approx(
        {
            "exact": 1 / 3,
            "f1": 1 / 3,
            "has_answer_exact": 0.0,
            "has_answer_f1": 0.0,
            "no_answer_exact": 0.5,
            "no_answer_f1": 0.5,
        }
    )
