"""Decoding: the n-best list of the official loops, for the simple head and for the start-conditioned one."""

import numpy as np
import official_squad
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.groups import SequenceForm
from litebert.tasks.squad import decoding
from litebert.tasks.squad.decoding import Passage, Reply, Span
from litebert.tasks.squad.features import build_groups
from litebert.tasks.squad.reading import Question
from litebert.tasks.squad.windows import WindowOptions
from litebert.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def passage(tiny_tokenizer: Tokenizer) -> Passage:
    """A paragraph of several windows."""
    context = "The cat sees a small dog near the old house. " * 3 + "A bird leaves the tree below the river."
    question = Question("1", "who sees the dog", context)
    form = SequenceForm(2, 3, 0, max_length=32)
    [group] = build_groups([question], tiny_tokenizer, form, WindowOptions(max_question_length=6, stride=7))
    assert len(group.sequences) > 3
    about: Passage = group.about
    return about


@given(seed=st.integers(0, 10_000), levels=st.sampled_from([3, 1000]), max_length=st.integers(1, 12))
def test_the_n_best_list_is_that_of_the_official_loops(
    passage: Passage, seed: int, levels: int, max_length: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = len(passage.firsts), int((passage.columns + passage.lengths).max()) + 1
    start, end = rng.integers(0, levels, (2, *shape)).astype(np.float32)  # three levels: ties everywhere
    candidates = decoding.propose_pairs(start, end, 5)
    spans = decoding.list_spans(decoding.keep_possible(candidates, passage, max_length), passage, 5)
    expected = official_squad.nbest(passage, start, end, 5, max_length)
    assert [(span.text, span.start_score + span.end_score) for span in spans] == expected
    assert all(passage.context[span.start : span.end] == span.text for span in spans)
    if spans:
        scores = np.exp([score - expected[0][1] for _, score in expected])
        assert np.allclose([span.probability for span in spans], scores / scores.sum())


def test_ends_belong_to_their_own_start(passage: Passage) -> None:
    column, width = int(passage.columns[0]), int((passage.columns + passage.lengths).max()) + 1
    num_windows = len(passage.firsts)
    starts = np.full((num_windows, 2), column)
    starts[:, 1] = column + 2
    ends = np.full((num_windows, 2, width), -50.0)
    ends[:, 0, column + 1] = -1.0  # after the first start
    ends[:, 1, column + 3] = -2.0  # after the second
    candidates = decoding.propose_conditioned(starts, np.full((num_windows, 2), -0.5), ends, 1)
    spans = decoding.list_spans(decoding.keep_possible(candidates, passage, 30), passage, 20)
    first = Span("", int(passage.starts[0]), int(passage.ends[1]), 0, 0, 0)
    assert (spans[0].start, spans[0].end) == (first.start, first.end)
    assert (spans[1].start, spans[1].end) == (passage.starts[2], passage.ends[3])
    assert (spans[0].start_score, spans[0].end_score) == (-0.5, -1.0)


def test_where_nothing_is_possible_nothing_is_listed(passage: Passage) -> None:
    width = int((passage.columns + passage.lengths).max()) + 1
    question_only = np.zeros((len(passage.firsts), width), dtype=np.float32)
    question_only[:, 1] = 9.0
    candidates = decoding.propose_pairs(question_only, question_only, 1)
    assert decoding.list_spans(decoding.keep_possible(candidates, passage, 30), passage, 20) == ()


def test_an_ensemble_averages_over_the_union_of_spans() -> None:
    one = Reply((Span("cat", 2, 5, 0.6, 1.0, 1.0), Span("dog", 9, 12, 0.4, 0.5, 1.0)), 1.0)
    two = Reply((Span("dog", 9, 12, 0.7, 3.0, 1.0), Span("bird", 15, 19, 0.3, 2.0, 1.0)), -2.0)
    both = decoding.combine_replies([one, two], 20)
    assert [span.text for span in both.spans] == ["dog", "cat", "bird"]
    assert [span.probability for span in both.spans] == pytest.approx([0.55, 0.3, 0.15])
    assert both.null_odds == -0.5
    assert decoding.combine_replies([one], 20) == one
