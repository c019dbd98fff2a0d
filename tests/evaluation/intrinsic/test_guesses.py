"""What a model says of pairs: one that knows the text is always right, and class 0 means as written."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from litebert.batches.masking import list_vocabulary
from litebert.batches.options import MaskingOptions
from litebert.batches.row_kernels import SpecialIds
from litebert.batches.rows import RowWriter
from litebert.batches.segment_kernels import RANDOM, SWAPPED
from litebert.evaluation.intrinsic.guesses import PairStates, answer, guess_words, probe, read_pairs
from litebert.evaluation.intrinsic.pair_batches import PairWriter
from litebert.evaluation.intrinsic.pairs import PairTable, draw_next_pairs, draw_order_pairs, draw_plain_pairs
from litebert.evaluation.intrinsic.shallow import FrequentPieces
from litebert.model.encoder import EncoderOutput
from litebert.model.model import build_model
from litebert.model.presets import preset
from tests.batches.toy_corpus import CLS, FIRST, MASK, PAD, SEP, random_documents
from tests.evaluation.intrinsic.test_pairs import make_passages

LENGTH = 32


class Oracle(nn.Module):
    """Knows the toy text, where the token at address k is FIRST + k, and so what is hidden and how segments follow.

    The state of a gap is the hidden token's id. That of [CLS] is 1 where the second segment does not go on after the
    first: because it was written before it, or too far behind it.
    """

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.config = replace(preset("nano"), hidden_size=2, num_heads=1, vocab_size=vocab_size)
        self.encoder = self
        self.embeddings = nn.ModuleDict({"token": nn.Embedding(1, 1)})
        self.embeddings.token = self.embeddings["token"]
        self.heads = {"sentence": lambda pooled: torch.cat([1 - pooled[:, :1], pooled[:, :1]], -1) * 10}

    def pool(self, first: Tensor) -> Tensor:
        return first

    def forward(
        self, token_ids: Tensor, segment_ids: Tensor, _: Tensor | None, *, read_at: Tensor, **__: None
    ) -> EncoderOutput:
        states = torch.zeros(*token_ids.shape, 2)
        for row, (ids, segments) in enumerate(zip(token_ids.tolist(), segment_ids.tolist(), strict=True)):
            ends = []
            for segment in (0, 1):
                places = [k for k, s in enumerate(segments) if s == segment and ids[k] not in (PAD, CLS, SEP)]
                known = [k for k in places if ids[k] != MASK]
                for place in places:
                    near = min(known, key=lambda k: abs(k - place), default=place)
                    states[row, place, 1] = ids[near] + place - near
                ends.append((states[row, places[0], 1], states[row, places[-1], 1]))
            states[row, 0, 0] = float(not 0 < ends[1][0] - ends[0][1] < LENGTH)
        return EncoderOutput(states.gather(1, read_at[:, :, None].expand(-1, -1, 2)), ())

    def masked_lm_logits(self, states: Tensor) -> Tensor:
        return nn.functional.one_hot(states[:, 1].long(), self.config.vocab_size).float() * 100


@pytest.fixture(scope="module")
def writer() -> PairWriter:
    passages = make_passages(random_documents(150, seed=4, most_sentences=10, most_tokens=9))
    vocab_size = FIRST + int(passages.outline.sentence_starts[-1])
    masking = MaskingOptions()
    vocabulary = list_vocabulary(vocab_size, frozenset(range(FIRST)), MASK, masking)
    writer = RowWriter([passages.text], SpecialIds(CLS, SEP, PAD), vocabulary, masking)
    return PairWriter(passages, LENGTH, writer, seed=1)


def vocab_size_of(writer: PairWriter) -> int:
    return int(writer.writer.vocabulary.ordinary_ids[-1]) + 1


def nothing(_: int) -> None:
    pass


@pytest.mark.parametrize("draw", [draw_order_pairs, draw_next_pairs])
def test_a_model_that_knows_the_text_is_always_right(draw: object, writer: PairWriter) -> None:
    pairs: PairTable = draw(writer.passages, length=LENGTH, count=200, seed=1)  # type: ignore[operator]
    states = read_pairs(Oracle(vocab_size_of(writer)), writer, pairs, nothing)  # type: ignore[arg-type]
    assert np.array_equal(states.answers, pairs.labels)
    half = np.arange(len(pairs.labels)) % 4 < 2
    learned = PairTable(*(column[half] for column in pairs[:4]))
    learned_states = PairStates(states.first[torch.from_numpy(half)], None)
    assert np.array_equal(probe(states, learned_states, learned), pairs.labels)


def test_a_model_that_knows_the_text_fills_every_gap(writer: PairWriter) -> None:
    pairs = draw_plain_pairs(writer.passages, length=LENGTH, count=60, seed=1)
    vocab_size = vocab_size_of(writer)
    frequent = FrequentPieces(FIRST, np.arange(1, vocab_size + 1))  # the successor of a piece is the next id
    seen = []
    words = guess_words(Oracle(vocab_size), writer, pairs, frequent, seen.append)  # type: ignore[arg-type]
    share = len(words.documents) / (pairs.lengths - 3).sum()
    assert 0.12 < share < 0.25
    assert words.by_model.mean() > 0.98  # a segment that is hidden as a whole cannot be known
    assert words.losses[words.by_model].max() < 1e-6
    assert words.by_left_neighbour.sum() == count_visible_left_neighbours(writer, pairs)
    assert words.by_model_usual.mean() < words.by_model.mean()
    assert sum(seen) == 2 * len(pairs.labels)


def count_visible_left_neighbours(writer: PairWriter, pairs: PairTable) -> int:
    """Gaps whose left neighbour is text that is not a gap itself."""
    count = 0
    for _, batch in writer.iter_batches(pairs, is_masked=True):
        targets = set(batch.mlm_positions.tolist())
        original = batch.token_ids.flatten().clone()
        original[batch.mlm_positions] = batch.mlm_labels
        count += sum(place - 1 not in targets and int(original[place - 1]) >= FIRST for place in targets)
    assert count > 20
    return count


def test_each_word_belongs_to_the_document_of_its_pair(writer: PairWriter) -> None:
    pairs = draw_plain_pairs(writer.passages, length=LENGTH, count=60, seed=1)
    for numbers, batch in writer.iter_batches(pairs, is_masked=True):
        rows = (batch.mlm_positions // batch.token_ids.shape[1]).numpy()
        addresses = batch.mlm_labels.numpy() - FIRST
        assert np.array_equal(writer.passages.find_documents(addresses), pairs.documents[numbers][rows])


def test_batches_hold_every_pair_once_and_keep_to_their_budget(writer: PairWriter) -> None:
    pairs = draw_order_pairs(writer.passages, length=LENGTH, count=10**6, seed=1)
    numbers = [number for batch in writer.iter_batches(pairs) for number in batch.numbers.tolist()]
    assert sorted(numbers) == list(range(len(pairs.labels)))
    for part, batch in writer.iter_batches(pairs):
        assert batch.token_ids.numel() <= 8192 + 8 * len(part)
        assert np.array_equal(batch.mask.sum(1).numpy(), pairs.lengths[part])
        firsts = batch.token_ids[:, 1].numpy() - FIRST
        assert np.array_equal(firsts, pairs.ranges[part, 0])


@pytest.mark.parametrize(
    ("logits", "if_swapped", "if_random"),
    [
        ([2.0, 1.0], 0, 0),
        ([1.0, 2.0], 1, 1),
        ([2.0, 0.0, 0.0], 0, 0),
        ([0.0, 2.0, -1.0], 1, 0),  # which of the other two it is, a head of three classes can say
        ([0.0, -1.0, 2.0], 0, 1),
        ([1.0, 0.9, 0.9], 0, 0),
    ],
)
def test_class_0_is_the_original_order_of_two_classes_and_of_three(
    logits: list[float], if_swapped: int, if_random: int
) -> None:
    assert answer(torch.tensor([logits]), SWAPPED).tolist() == [if_swapped]
    assert answer(torch.tensor([logits]), RANDOM).tolist() == [if_random]


def test_pairs_know_what_else_they_could_be(writer: PairWriter) -> None:
    words = {"length": LENGTH, "count": 50, "seed": 1}
    assert draw_order_pairs(writer.passages, **words).alternative == SWAPPED
    assert draw_next_pairs(writer.passages, **words).alternative == RANDOM


def test_a_model_of_one_segment_type_without_pooler_or_head_can_be_read(writer: PairWriter) -> None:
    config = replace(preset("nano"), vocab_size=vocab_size_of(writer), num_segments=1, has_pooler=False)
    model = build_model(config, ["mlm"], seed=1).eval()
    pairs = draw_order_pairs(writer.passages, length=LENGTH, count=50, seed=1)
    states = read_pairs(model, writer, pairs, nothing)
    assert states.answers is None
    sequence = [CLS, *(FIRST + k for k in range(*pairs.ranges[0, :2])), SEP]
    sequence += [*(FIRST + k for k in range(*pairs.ranges[0, 2:])), SEP]
    with torch.no_grad():
        alone = model.encoder(torch.tensor([sequence])).hidden[0, 0]
    assert torch.allclose(states.first[0], alone, atol=1e-5)
