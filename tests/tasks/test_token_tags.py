"""Tags: spans as conlleval counts them, words that become several pieces, sentences that are too long."""

import pytest

from litebert.data.groups import build_form
from litebert.tasks.token_tags import IGNORED, Span, TaggedWords, TokenTags, find_spans, span_f1
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
