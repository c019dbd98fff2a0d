"""Tags: spans as conlleval counts them, words that become several pieces, sentences that are too long."""

import pytest

from litebert.cli.scores import print_split
from litebert.tasks.groups import build_form
from litebert.tasks.kinds.token_tags import IGNORED, Span, TaggedWords, TokenTags, find_spans, score_kinds, span_f1
from litebert.tasks.report import describe_split
from litebert.text.tokenizer import Tokenizer

TASK = TokenTags("tags", ("O", "B-X", "I-X"))


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O B-X I-X O", [("X", 1, 3)]),
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("I-X I-X O I-X", [("X", 0, 2), ("X", 3, 4)]),  # IOB1: no B- is needed
        ("B-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
        ("B-X E-X S-Y S-Y B-X", [("X", 0, 2), ("Y", 2, 3), ("Y", 3, 4), ("X", 4, 5)]),
        ("I-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
        ("B_X I_X O S_Y", [("X", 0, 2), ("Y", 3, 4)]),
        ("B-X-Y I-X-Y", [("X-Y", 0, 2)]),
        ("B-X M-X E-X B-X", [("X", 0, 3), ("X", 3, 4)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_are_found_as_conlleval_does(tags: str, spans: list[tuple[str, int, int]]) -> None:
    assert find_spans(tags.split()) == [Span(*span) for span in spans]


def test_a_span_counts_only_if_kind_start_and_end_are_right() -> None:
    truth = ["B-X", "I-X", "O", "B-Y"]
    assert span_f1([truth], [truth]) == 1
    assert span_f1([["B-X", "O", "O", "B-Y"]], [truth]) == 0.5
    assert span_f1([["O"] * 4], [truth]) == 0


def test_the_first_piece_of_a_word_carries_its_tag(tiny_tokenizer: Tokenizer) -> None:
    words = ("the", "theor", "house")
    form = build_form(tiny_tokenizer, max_length=32, num_segments=2)
    (group,) = TASK.encode([TaggedWords("0", words, ("O", "B-X", "I-X"))], tiny_tokenizer, form)
    pieces = [len(ids) for ids in tiny_tokenizer.encode_batch(list(words))]
    assert pieces[1] > 1
    expected = [IGNORED]
    for tag, count in enumerate(pieces):
        expected += [tag, *[IGNORED] * (count - 1)]
    assert group.target is not None
    assert group.target.tolist() == [*expected, IGNORED]
    assert group.about.sum() == 3


def test_a_long_sentence_becomes_several_sequences_and_keeps_all_its_words(tiny_tokenizer: Tokenizer) -> None:
    words = ("cat", "house") * 20
    form = build_form(tiny_tokenizer, max_length=16, num_segments=2)
    (group,) = TASK.encode([TaggedWords("0", words, ("O",) * 40)], tiny_tokenizer, form)
    assert len(group.sequences) > 1
    assert all(len(sequence.token_ids) <= 16 for sequence in group.sequences)
    assert group.about.sum() == 40
    assert group.target is not None
    assert len(group.target) == group.num_tokens


def test_a_word_longer_than_the_model_is_cut_and_still_answered(tiny_tokenizer: Tokenizer) -> None:
    form = build_form(tiny_tokenizer, max_length=8, num_segments=2)
    (group,) = TASK.encode([TaggedWords("0", ("lo" * 20, "dog"))], tiny_tokenizer, form)
    assert group.about.sum() == 2
    assert group.target is None


@pytest.mark.parametrize(
    ("labels", "metric", "told"),
    [
        (("O", "B-X", "I-X"), "span_f1", "scored by entity spans"),
        (("O", "B_X", "I_X"), "span_f1", "scored by entity spans"),
        (("O", "PER", "B-X"), "accuracy", "not by entity spans: 'PER' has no prefix such as B- or I-"),
        (("B", "M", "E"), "accuracy", "not by entity spans: no tag is O"),
    ],
)
def test_how_tags_are_scored_follows_from_their_names_and_is_reported(
    labels: tuple[str, ...], metric: str, told: str
) -> None:
    task = TokenTags("tags", labels)
    assert task.metric == metric
    assert told in task.describe_scoring()


def test_spans_that_anybody_could_find_are_chance() -> None:
    examples = [TaggedWords(str(n), ("a", "b"), ("B-X", "O")) for n in range(50)]
    chance = TASK.chance(examples)
    assert chance.score == pytest.approx(2 * 50 / 150)  # every word a span: half of them are right, none is missed
    assert 0 < chance.margin < 0.2
    assert TASK.chance([TaggedWords("0", ("a",), ("O",))]).score == 0


def test_each_kind_has_its_precision_and_recall() -> None:
    kinds = score_kinds([["B-X", "O", "B-Y"], ["B-X", "O", "O"]], [["B-X", "O", "B-X"], ["O", "O", "O"]])
    assert {name: kinds["X"][name] for name in ("precision", "recall", "f1")} == {
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
    }
    assert kinds["Y"]["precision"] == kinds["Y"]["f1"] == 0.0


def test_a_tag_that_was_not_learned_is_no_target_and_its_word_is_answered(tiny_tokenizer: Tokenizer) -> None:
    form = build_form(tiny_tokenizer, max_length=16, num_segments=2)
    (group,) = TASK.encode([TaggedWords("0", ("cat", "house"), ("B-Z", "O"))], tiny_tokenizer, form)
    assert group.about.sum() == 2
    assert group.target is not None
    assert (group.target != IGNORED).sum() == 1


def test_a_tagger_with_more_errors_than_answering_o_everywhere_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    examples = [TaggedWords(str(n), ("a", "b", "c", "d"), ("B-X", "O", "O", "O")) for n in range(50)]
    eager = [[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]] * 50  # finds every span, and another
    lazy = [[[1.0, 0.0, 0.0]] * 4] * 50
    told = []
    for outputs in ([[*eager[0][:1], eager[0][1], eager[0][1], eager[0][2]]] * 50, lazy):
        facts = describe_split(TokenTags("tags", ("O", "B-X", "I-X")), outputs, examples)
        print_split("dev", facts, "span_f1")
        told.append(capsys.readouterr().out)
        assert facts["outside_accuracy"] == 0.75
    assert "below the baseline that tags every word O (0.7500)" in told[0]
    assert "below the baseline" not in told[1]
    assert "not above chance" in told[1]
