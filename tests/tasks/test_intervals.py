"""Intervals hold the truth as often as they say, and follow what belongs together."""

from dataclasses import dataclass

import numpy as np
import pytest

from litebert.tasks import intervals
from litebert.tasks.intervals import TWO_SIDED, find_intervals, find_lead, find_wilson
from litebert.tasks.kinds.choices import ChoiceExample, Choices
from litebert.tasks.kinds.classification import Classification, MultiLabel, Regression
from litebert.tasks.kinds.token_tags import TaggedWords, TokenTags
from litebert.tasks.squad.reading import Answer, Question
from litebert.tasks.squad.task import SpanTask
from litebert.tasks.texts import TextExample

TASK = Classification("own", ("a", "b"), ("macro_f1", "accuracy"))


def make_answers(count: int, share: float, seed: int) -> tuple[list[list[float]], list[TextExample]]:
    generator = np.random.default_rng(seed)
    labels = generator.choice(["a", "b"], size=count)
    is_right = generator.random(count) < share
    outputs = [[0.9, 0.1] if (label == "a") == right else [0.1, 0.9] for label, right in zip(labels, is_right)]  # noqa: B905
    return outputs, [TextExample(str(n), "text", label=str(label)) for n, label in enumerate(labels)]


def test_95_of_100_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "NUM_RESAMPLES", 200)
    held = {"accuracy": 0, "macro_f1": 0}
    for seed in range(40):
        for name, (low, high) in find_intervals(TASK, *make_answers(150, 0.8, seed)).items():
            held[name] += low <= 0.8 <= high
    assert all(35 <= count <= 40 for count in held.values()), held


def test_few_right_answers_are_not_certainty() -> None:
    outputs, examples = make_answers(10, 1.0, 1)
    assert find_intervals(TASK, outputs, examples)["accuracy"] == pytest.approx([0.722, 1.0], abs=1e-3)
    assert find_wilson(0.0, 10) == pytest.approx([0.0, 0.278], abs=1e-3)
    assert all(find_wilson(0.0, n)[0] >= 0 and find_wilson(1.0, n)[1] <= 1 for n in range(1, 200))


def test_a_lead_is_measured_on_the_same_examples() -> None:
    outputs, examples = make_answers(300, 0.9, 2)
    assert find_lead(TASK, outputs, outputs, examples) == [0.0, 0.0]
    worse = [
        [0.5 - (n % 10 == 0) * (output[0] - 0.5), 0.5] if n % 10 == 0 else output for n, output in enumerate(outputs)
    ]
    low, high = find_lead(TASK, outputs, worse, examples)
    assert 0 < low < high, "a tenth of the answers turned wrong is more than luck when pairs are compared"
    separate = find_intervals(TASK, outputs, examples)["macro_f1"], find_intervals(TASK, worse, examples)["macro_f1"]
    assert high - low < sum(high - low for low, high in separate)


@dataclass(frozen=True)
class GroupedText(TextExample):
    group: str = ""


def test_rows_of_one_group_are_drawn_together() -> None:
    outputs, examples = make_answers(40, 0.5, 3)
    doubled = [GroupedText(f"{e.id}-{n}", e.text, label=e.label, group=e.id) for e in examples for n in range(10)]
    repeated = [output for output in outputs for _ in range(10)]
    low, high = find_intervals(TASK, repeated, doubled)["accuracy"]
    once = find_intervals(TASK, outputs, examples)["accuracy"]
    assert high - low == pytest.approx(once[1] - once[0], abs=0.03), "ten copies of an answer are no more than one"


def test_every_kind_of_task_has_intervals_around_its_scores() -> None:
    texts = [TextExample(str(n), "text", label=float(n)) for n in range(20)]
    labels = [TextExample(str(n), "text", label=("a",)) for n in range(20)]
    words = [TaggedWords(str(n), ("Ann", "ran"), ("B-PER", "O")) for n in range(20)]
    choices = [ChoiceExample(str(n), f"passage {n // 2}", "?", ("a", "b"), 0) for n in range(20)]
    questions = [Question(str(n), "who?", "Ann ran", (Answer("Ann", 0),)) for n in range(20)]
    span = {"spans": [["Ann", 0, 3, 0.9, 1.0, 1.0]], "null_odds": -1.0}
    cases = [
        (Regression("r"), [n + 0.5 * (n % 3) for n in range(20)], texts),
        (MultiLabel("m", ("a", "b")), [[0.9, 0.9 * (n % 2)] for n in range(20)], labels),
        (TokenTags("t", ("O", "B-PER")), [[[0.1, 0.9], [0.6 - 0.3 * (n % 2), 0.4]] for n in range(20)], words),
        (Choices("c"), [[0.6, 0.4 + 0.3 * (n % 2)] for n in range(20)], choices),
        (SpanTask("squad-v1"), [span] * 20, questions),
    ]
    for task, outputs, examples in cases:
        scores, found = task.score(outputs, examples), find_intervals(task, outputs, examples)  # type: ignore[arg-type]
        assert task.metric in found
        for name, (low, high) in found.items():
            assert low - 1e-6 <= scores[name] <= high + 1e-6, (task.name, name)


@pytest.mark.parametrize("num_sentences", [1, 5, 50])
def test_a_perfect_f1_of_few_sentences_is_not_certainty(num_sentences: int) -> None:
    task = TokenTags("tags", ("O", "B-PER"))
    sentences = [TaggedWords(str(n), ("Ada", "ran"), ("B-PER", "O")) for n in range(num_sentences)]
    found = find_intervals(task, [[[0.0, 1.0], [1.0, 0.0]]] * num_sentences, sentences)
    low, high = found["span_f1"]
    assert (low, high) == (pytest.approx(num_sentences / (num_sentences + TWO_SIDED**2), abs=1e-6), 1.0)


def test_a_draw_without_a_rare_label_is_not_perfect() -> None:
    examples = [TextExample(str(n), "text", label="ab"[n < 2]) for n in range(30)]
    low, high = find_intervals(TASK, [[0.9, 0.1]] * 30, examples)["macro_f1"]
    assert 0.4 < low < 14 / 29 < high <= 0.5, "a model that never answers the rare label"


def test_a_correlation_that_no_draw_changes_has_no_interval() -> None:
    task = Classification("classification", ("no", "yes"), ("matthews", "accuracy"))
    examples = [TextExample(str(n), "", label="yes" if n else "no") for n in range(20)]
    found = find_intervals(task, [[0.0, 1.0]] * 20, examples)  # the same answer to all
    assert found.keys() == {"accuracy"}
