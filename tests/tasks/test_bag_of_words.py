"""The bag-of-words baseline equals scikit-learn's, and learns every kind of task that it is for."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from litebert.tasks.bag_of_words import PENALTY, RIDGE_PENALTY, split_words
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.report import learn_baseline
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample

WORDS = ("cat", "dog", "town", "sea", "red", "runs", "the", "old", "Łódź")


def draw_texts(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=generator.integers(1, 9))) for _ in range(count)]


TRAIN, ASKED = draw_texts(150, 1), draw_texts(40, 2)


def make_examples(texts: list[str], label: Any) -> list[TextExample]:
    return [TextExample(str(n), text, label=label(text)) for n, text in enumerate(texts)]


def weigh_theirs() -> tuple[Any, Any]:
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    return theirs.fit_transform(TRAIN), theirs.transform(ASKED)


def test_labels_are_those_of_scikit_learns_tfidf_and_logistic_regression() -> None:
    label = lambda text: "cat" if "cat" in text else "dog" if "dog" in text else "none"  # noqa: E731
    task = Classification("own", ("cat", "dog", "none"))
    baseline = learn_baseline(task, make_examples(TRAIN, label))
    assert baseline is not None
    assert (baseline.name, baseline.num_examples) == ("bag of words", 150)
    known, asked = weigh_theirs()
    theirs = LogisticRegression(C=1 / PENALTY, max_iter=2000, tol=1e-8).fit(known, [label(text) for text in TRAIN])
    ours = baseline.answer(make_examples(ASKED, label))
    assert np.allclose(ours, theirs.predict_proba(asked), atol=2e-3)


def test_several_labels_are_as_many_logistic_regressions() -> None:
    label = lambda text: tuple(word for word in ("cat", "sea") if word in text)  # noqa: E731
    task = MultiLabel("own", ("cat", "sea"))
    baseline = learn_baseline(task, make_examples(TRAIN, label))
    assert baseline is not None
    known, asked = weigh_theirs()
    marks = np.array([[word in text for word in task.labels] for text in TRAIN], dtype=int)
    theirs = OneVsRestClassifier(LogisticRegression(C=1 / PENALTY, max_iter=2000, tol=1e-8)).fit(known, marks)
    assert np.allclose(baseline.answer(make_examples(ASKED, label)), theirs.predict_proba(asked), atol=2e-3)


def test_numbers_are_those_of_scikit_learns_ridge() -> None:
    label = lambda text: 1000.0 + 50 * text.count("red") - 20 * text.count("sea")  # noqa: E731
    baseline = learn_baseline(Regression("own", scale=10.0), make_examples(TRAIN, label))
    assert baseline is not None
    known, asked = weigh_theirs()
    theirs = Ridge(alpha=RIDGE_PENALTY).fit(known, [label(text) for text in TRAIN])
    assert np.allclose(baseline.answer(make_examples(ASKED, label)), theirs.predict(asked), atol=0.2)


def test_pairs_are_known_by_what_they_share() -> None:
    pairs = list(pairwise(draw_texts(301, 3)))
    examples = [
        TextExample(str(n), one, one if n % 2 else other, label="same" if n % 2 else "other")
        for n, (one, other) in enumerate(pairs)
    ]
    task = Classification("own", ("other", "same"))
    baseline = learn_baseline(task, examples[:200])
    assert baseline is not None
    assert task.score(baseline.answer(examples[200:]), examples[200:])["accuracy"] > 0.9


def test_a_word_gets_its_tags_and_an_unknown_word_those_of_rare_words() -> None:
    train = [
        TaggedWords("1", ("Ann", "saw", "Ann", "the"), ("B-PER", "O", "B-PER", "O")),
        TaggedWords("2", ("the", "Ann", "Bob"), ("O", "O", "B-PER")),
    ]
    baseline = learn_baseline(TokenTags("tags", ("O", "B-PER")), train)
    assert baseline is not None
    [output] = baseline.answer([TaggedWords("3", ("Ann", "the", "Zoe"))])
    assert output == [[pytest.approx(1 / 3), pytest.approx(2 / 3)], [1.0, 0.0], [0.5, 0.5]]


def test_a_tag_that_the_model_does_not_know_is_not_learned() -> None:
    train = [TaggedWords("1", ("Ann", "Rome", "ran"), ("B-PER", "B-LOC", "O"))]
    baseline = learn_baseline(TokenTags("tags", ("O", "B-PER")), train)
    assert baseline is not None
    [output] = baseline.answer([TaggedWords("2", ("Ann", "Rome"))])
    assert output == [[0.0, 1.0], [0.5, 0.5]]


def test_choices_are_known_by_the_passage() -> None:
    generator = np.random.default_rng(4)
    examples = []
    for number in range(60):
        words = [str(word) for word in generator.permutation(list("abcdefghijkl"))]
        num_choices = 2 + number % 3
        label = int(generator.integers(num_choices))
        choices = tuple(words[0] if n == label else words[6 + n] for n in range(num_choices))
        examples.append(ChoiceExample(str(number), " ".join(words[:5]), "which?", choices, label))
    task = Choices("choice")
    baseline = learn_baseline(task, examples[:40])
    assert baseline is not None
    assert task.score(baseline.answer(examples[40:]), examples[40:])["accuracy"] == 1.0


def test_spans_have_no_baseline_and_neither_has_nothing_to_learn_from() -> None:
    assert learn_baseline(SpanTask("squad-v1"), ["a question"]) is None
    assert learn_baseline(Classification("own", ("a", "b")), []) is None


def test_texts_without_known_words_get_the_usual_answer() -> None:
    examples = make_examples(["cat", "cat", "dog"], lambda text: text)
    baseline = learn_baseline(Classification("own", ("cat", "dog")), examples)
    assert baseline is not None
    [empty, other] = baseline.answer([TextExample("1", ""), TextExample("2", "!?")])
    assert empty == other
    assert empty[0] > empty[1]


def test_scripts_without_spaces_are_cut_into_characters() -> None:
    assert split_words("It's 日本 X2漢 ไทย") == ["it", "s", "日", "本", "x2", "漢", "ไ", "ท", "ย"]
