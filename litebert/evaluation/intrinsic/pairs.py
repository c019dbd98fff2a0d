"""Sentence pairs to test on, with balanced labels, both among pairs that open a document and among the others.

Only the relation between the segments of a pair may reveal its label; otherwise the score is meaningless. SOP pairs
come from the planner of the training data. NSP pairs are made here: a negative pair gets its second segment from
another pair of the same kind and length. A document opening is therefore never a second segment, and is always
followed by text that follows openings, so neither reveals the label.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.options import SegmentOptions, SentenceTask
from litebert.batches.random_kernels import hash_integers, permute
from litebert.batches.segment_kernels import RANDOM, SWAPPED
from litebert.batches.segments import SegmentPlan, plan_segments
from litebert.core.errors import DataError
from litebert.evaluation.intrinsic.passages import Passages

IN_ORDER, NOT_IN_ORDER = 0, 1  # NOT_IN_ORDER: swapped (SOP), or the second segment is from another document (NSP)
FEWEST_PAIRS = 8
_SOP, _NSP, _PLAIN, _ORDER = range(4)  # the purpose of a random key


class TooFewPairsError(DataError):
    """The text yields too few pairs for a meaningful score."""


class PairTable(NamedTuple):
    """S labelled sentence pairs."""

    ranges: NDArray[np.int64]  # (S, 4) token addresses: first start, first stop, second start, second stop
    labels: NDArray[np.int64]  # (S,) IN_ORDER or NOT_IN_ORDER
    is_lead: NDArray[np.bool_]  # (S,) contains the opening of a document
    documents: NDArray[np.int64]  # (S,) the document of the pair, or of its first segment
    alternative: int = SWAPPED  # how the segments of a pair that is NOT_IN_ORDER are related: SWAPPED or RANDOM

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Tokens with [CLS] and [SEP]."""
        sizes = self.ranges[:, 1] - self.ranges[:, 0] + self.ranges[:, 3] - self.ranges[:, 2]
        return (sizes + 3).astype(np.int32)


def draw_order_pairs(passages: Passages, *, length: int, count: int, seed: int) -> PairTable:
    """At most `count` pairs for SOP, half of them swapped."""
    plan = _plan(passages, "sop", length, hash_integers(seed, _SOP))
    candidates = _own_pairs(passages, plan, seed)
    kinds = [
        [
            candidates[(plan.opens_document[candidates] == is_lead) & (plan.labels[candidates] == label)]
            for label in (0, 1)
        ]
        for is_lead in (True, False)
    ]
    available = [min(map(len, labels)) for labels in kinds]
    wanted = _share_out(available, count // 2)
    chosen = np.concatenate([of[:n] for labels, n in zip(kinds, wanted, strict=True) for of in labels])
    _check_enough(passages, len(chosen), length)
    return _take(passages, plan, chosen, plan.labels[chosen].astype(np.int64))


def draw_next_pairs(passages: Passages, *, length: int, count: int, seed: int) -> PairTable:
    """At most `count` pairs for NSP; in half of them the second segment is from another document."""
    plan = _plan(passages, "none", length, hash_integers(seed, _NSP))
    candidates = _own_pairs(passages, plan, seed)
    kinds = [candidates[plan.opens_document[candidates] == is_lead] for is_lead in (True, False)]
    shares = _share_out([len(kind) // 2 for kind in kinds], count // 2)
    _check_enough(passages, 2 * sum(shares), length)
    documents = [passages.find_documents(plan.ranges[kind, 0]) for kind in kinds]
    # Every second pair gets a segment of another document; a kind whose pairs are all from one document is left out.
    wanted = [n if len(np.unique(of[1 : 2 * n : 2])) > 1 else 0 for of, n in zip(documents, shares, strict=True)]
    if not any(wanted):
        raise TooFewPairsError(
            "corpus-too-small",
            f"{passages.where} has too few documents to draw random next segments from: add text",
        )
    chosen = np.concatenate([kind[: 2 * n] for kind, n in zip(kinds, wanted, strict=True)])
    labels = np.concatenate([np.arange(2 * n) % 2 for n in wanted])
    _check_enough(passages, len(chosen), length)
    pairs = _take(passages, plan, chosen, labels)._replace(alternative=RANDOM)
    for is_lead in (True, False):
        exchange_seconds(pairs, np.flatnonzero((labels == NOT_IN_ORDER) & (pairs.is_lead == is_lead)))
    return pairs


def draw_plain_pairs(passages: Passages, *, length: int, count: int, seed: int) -> PairTable:
    """At most `count` pairs as written, for masking."""
    plan = _plan(passages, "none", length, hash_integers(seed, _PLAIN))
    candidates = _own_pairs(passages, plan, seed)
    _check_enough(passages, len(candidates), length)  # before the limit, which may be small on purpose
    chosen = candidates[:count]
    return _take(passages, plan, chosen, np.zeros(len(chosen), np.int64))


def exchange_seconds(pairs: PairTable, chosen: NDArray[np.int64]) -> None:
    """Replace the second segment of each chosen pair by that of the next one from another document, the longest first.

    The chosen pairs are from at least two documents, or there are none.
    """
    sizes = pairs.ranges[chosen, 3] - pairs.ranges[chosen, 2]
    order = chosen[np.argsort(-sizes, kind="stable")]
    donors = np.full(len(order), -1)
    for further in range(1, len(order)):
        others = np.roll(order, -further)
        fits = (donors < 0) & (pairs.documents[others] != pairs.documents[order])
        donors[fits] = others[fits]
        if (donors >= 0).all():
            break
    assert (donors >= 0).all(), "all chosen pairs are from one document"
    starts, stops = pairs.ranges[donors, 2], pairs.ranges[donors, 3]
    sizes = pairs.ranges[order, 3] - pairs.ranges[order, 2]
    pairs.ranges[order, 2], pairs.ranges[order, 3] = starts, np.minimum(stops, starts + sizes)


def _plan(passages: Passages, task: SentenceTask, length: int, key: np.uint64) -> SegmentPlan:
    options = SegmentOptions(format="segment-pair", task=task, max_length=length)
    return plan_segments(passages.outline, options, key, where=passages.where)


def _own_pairs(passages: Passages, plan: SegmentPlan, seed: int) -> NDArray[np.int64]:
    """The planned pairs of these documents, in random order."""
    order = permute(hash_integers(seed, _ORDER), len(plan))
    return order[passages.is_ours[passages.find_documents(plan.ranges[order, 0])]]


def _share_out(available: list[int], count: int) -> list[int]:
    """How many of each kind to take, in proportion to the available numbers."""
    share = min(1.0, count / max(1, sum(available)))
    return [int(number * share) for number in available]


def _take(passages: Passages, plan: SegmentPlan, chosen: NDArray[np.int64], labels: NDArray[np.int64]) -> PairTable:
    ranges = plan.ranges[chosen]
    return PairTable(ranges, labels, plan.opens_document[chosen], passages.find_documents(ranges[:, 0]))


def _check_enough(passages: Passages, count: int, length: int) -> None:
    if count < FEWEST_PAIRS:
        raise TooFewPairsError(
            "corpus-too-small",
            f"{passages.where}: {passages.name} ({passages.num_documents} documents) yields only {count} pairs of "
            f"length {length}, too few to score: build the corpus from more text, or with a larger valid_share",
        )
