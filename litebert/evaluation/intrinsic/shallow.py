"""Baselines: bag of words for SOP, word overlap for NSP, unigrams and bigrams for masked tokens."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.evaluation.intrinsic.logistic import fit_classifier, take_rows
from litebert.evaluation.intrinsic.pair_batches import PairWriter
from litebert.evaluation.intrinsic.pairs import IN_ORDER, NOT_IN_ORDER, PairTable


@dataclass(frozen=True)
class Bags:
    """The pieces in each side of sentence pairs: K entries in the order of the pairs, each piece once per side."""

    table: PairTable
    pairs: NDArray[np.int64]  # (K,)
    sides: NDArray[np.int64]  # (K,) 0 or 1
    pieces: NDArray[np.int64]  # (K,)
    vocab_size: int

    @property
    def num_pairs(self) -> int:
        return len(self.table.labels)


def collect_bags(writer: PairWriter, pairs: PairTable, vocab_size: int) -> Bags:
    """The pieces of each side of each pair."""
    special = torch.tensor([writer.writer.special.cls_id, writer.writer.special.sep_id])
    keys = []
    for numbers, batch in writer.iter_batches(pairs):
        is_text = batch.mask & ~torch.isin(batch.token_ids, special)
        owners = torch.from_numpy(numbers)[:, None].expand_as(batch.token_ids)
        keys.append(((owners * 2 + batch.segment_ids) * vocab_size + batch.token_ids)[is_text].numpy())
    places, pieces = np.divmod(np.sort(np.concatenate([np.unique(part) for part in keys])), vocab_size)
    return Bags(pairs, places // 2, places % 2, pieces, vocab_size)


def guess_order(bags: Bags, learned: Bags) -> NDArray[np.int64]:
    """A label per pair from logistic regression on the bags of words of its sides, trained on other pairs.

    Pairs that open a document get their own classifier: their vocabulary differs, and this baseline is stronger.
    """
    features, learned_features = _contrast_sides(bags), _contrast_sides(learned)
    labels, documents = torch.from_numpy(learned.table.labels), torch.from_numpy(learned.table.documents)
    says_swapped = np.zeros(bags.num_pairs, np.bool_)
    for is_lead in (True, False):
        own = torch.from_numpy(learned.table.is_lead == is_lead)
        own = own if own.any() else ~own  # no training pairs of this kind: use the other kind
        classifier = fit_classifier(take_rows(learned_features, own), labels[own], documents[own])
        judged = bags.table.is_lead == is_lead
        says_swapped[judged] = (classifier.logits(features) > 0).numpy()[judged]
    return np.where(says_swapped, NOT_IN_ORDER, IN_ORDER)


def _contrast_sides(bags: Bags) -> Tensor:
    """A row per pair (S, V): 1 for a piece in the first side, -1 in the second, 0 in both.

    Swapping a pair flips its label, so a piece has opposite weights in the two sides.
    """
    signs = torch.from_numpy(1.0 - 2.0 * bags.sides).float()
    places = torch.from_numpy(np.stack([bags.pairs, bags.pieces]))
    shape = bags.num_pairs, bags.vocab_size
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # torch calls CSR beta; our tests cover what we use
        return torch.sparse_coo_tensor(places, signs, shape).coalesce().to_sparse_csr()


def guess_next(bags: Bags, learned: Bags) -> NDArray[np.int64]:
    """A label per pair from the overlap of rare words between its sides; the threshold is fitted on other pairs."""
    weights = _inverse_frequencies(learned)
    threshold = _find_threshold(_share_words(learned, weights), learned.table.labels)
    return np.where(_share_words(bags, weights) <= threshold, NOT_IN_ORDER, IN_ORDER)


def _inverse_frequencies(bags: Bags) -> NDArray[np.float64]:
    """The inverse document frequency of each piece, counting each side as a document."""
    counts = np.bincount(bags.pieces, minlength=bags.vocab_size)
    return np.asarray(np.log((2 * bags.num_pairs + 1) / (counts + 1)))


def _share_words(bags: Bags, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of the pieces that occur in both sides, as a share of all pieces of the pair: 0 to 1."""
    held, times = np.unique(bags.pairs * bags.vocab_size + bags.pieces, return_counts=True)
    owners, pieces = np.divmod(held, bags.vocab_size)
    of_all = np.bincount(owners, weights[pieces], bags.num_pairs)
    of_both = np.bincount(owners, weights[pieces] * (times == 2), bags.num_pairs)
    return np.asarray(of_both / np.maximum(of_all, 1e-12))


def _find_threshold(values: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The value up to which NOT_IN_ORDER is the better guess."""
    order = np.argsort(values, kind="stable")
    gains = np.cumsum(np.where(labels[order] == NOT_IN_ORDER, 1, -1))
    is_last = np.append(np.diff(values[order]) > 0, True)  # equal values fall on one side
    return float(values[order][np.where(is_last, gains, -len(labels)).argmax()])


class FrequentPieces(NamedTuple):
    """Predictions for masked tokens from counts alone."""

    anywhere: int  # the most frequent piece
    after: NDArray[np.int64]  # (V,) the most frequent successor of each piece


def count_pieces(writer: PairWriter, pairs: PairTable, vocab_size: int) -> FrequentPieces:
    """The most frequent piece of a text, and the most frequent successor of each piece."""
    special = torch.tensor([writer.writer.special.cls_id, writer.writer.special.sep_id, writer.writer.special.pad_id])
    steps = []
    for _, batch in writer.iter_batches(pairs):
        before, here = batch.token_ids[:, :-1], batch.token_ids[:, 1:]
        steps.append((before * vocab_size + here)[~torch.isin(here, special)].numpy())
    followed, counts = np.unique(np.concatenate(steps), return_counts=True)
    pieces, successors = np.divmod(followed, vocab_size)
    anywhere = int(np.bincount(successors, counts).argmax())
    after = np.full(vocab_size, anywhere)
    rarest_first = np.argsort(counts, kind="stable")
    after[pieces[rarest_first]] = successors[rarest_first]  # the last assignment wins: the most frequent
    return FrequentPieces(anywhere, after)
