"""Planning pairs of segments: chunks of sentences cut in two, kept in order, swapped, or given a stranger's text.

The sentence that did not fit a chunk is longer than most, and it comes last in its chunk when chunks overfill (as the
official ones do), first in the next one when they do not: either way, length alone tells the order better than chance.
Half of the documents are therefore filled from their end, which makes the two orders alike.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.randomness import State, combine, draw_below, draw_unit
from litebert.batches.relations import IN_ORDER, MERGE_NEXT, NONE, NSP, RANDOM, RANDOM_DOC, SOP, SWAPPED, THREE_WAY
from litebert.core.compiled import compiled

Starts = NDArray[np.int64]
_ATTEMPTS = 10


class PairRules(NamedTuple):
    """SegmentOptions as numbers that compiled code reads."""

    room: int
    short_rate: float
    task: int
    single_sentence: int
    overfills: bool
    fills_from_either_end: bool
    is_target_per_document: bool
    exchanges: bool


class Pairs(NamedTuple):
    """Where pairs are written (S of them)."""

    ranges: NDArray[np.int64]  # (S, 4)
    relations: NDArray[np.int8]  # (S,)
    is_lead: NDArray[np.bool_]  # (S,)
    waiting: NDArray[np.int64]  # (S,) the document of a pair that still has to exchange its second segment; else -1


@compiled
def plan_segment_pairs(sentences: Starts, documents: Starts, rules: PairRules, key: np.uint64, pairs: Pairs) -> int:
    """Write each pair of one pass; returns how many there are."""
    state = np.zeros(1, np.uint64)
    count = 0
    for document in range(len(documents) - 1):
        state[0] = combine(key, np.uint64(document))
        low, high = documents[document], documents[document + 1]  # the sentences that are still to be taken
        target = draw_target(rules, state)
        is_backward = rules.fills_from_either_end and draw_unit(state) < 0.5
        if not rules.exchanges and rules.task in (NSP, THREE_WAY):
            is_backward = False  # what a stranger replaces comes again only forwards
        while low < high:
            if high - low < documents[document + 1] - documents[document] and not rules.is_target_per_document:
                target = draw_target(rules, state)
            start, end = take_chunk(sentences, low, high, target, is_backward, rules)
            taken = end
            if end - start > 1 or rules.single_sentence == RANDOM_DOC:
                cut = start + 1 if end - start == 1 else start + 1 + draw_below(state, end - start - 1)
                taken = write_pair(
                    sentences, documents, document, (start, cut, end), target, rules, state, pairs, count
                )
                count += 1
            if is_backward:
                high = start
            else:
                low = taken
    return count


@compiled
def plan_sentence_pairs(sentences: Starts, documents: Starts, rules: PairRules, key: np.uint64, pairs: Pairs) -> int:
    """The same for pairs of single sentences; every other pass starts at a document's second sentence."""
    state = np.zeros(1, np.uint64)
    count = 0
    for document in range(len(documents) - 1):
        state[0] = combine(key, np.uint64(document))
        first, stop = documents[document], documents[document + 1]
        start = first + draw_below(state, 2) if stop - first > 2 else first
        while start + 1 < stop:
            chunk = start, start + 1, start + 2
            start = write_pair(sentences, documents, document, chunk, 0, rules, state, pairs, count)
            count += 1
    return count


@compiled
def write_pair(
    sentences: Starts,
    documents: Starts,
    document: int,
    chunk: tuple[int, int, int],
    target: int,
    rules: PairRules,
    state: State,
    pairs: Pairs,
    count: int,
) -> int:
    """Write a pair from a chunk (start, cut, end) of sentences; returns the first sentence that it has not used."""
    start, cut, end = chunk
    relation = draw_relation(rules.task, end - start, state)
    used = end
    first, first_end, second, second_end = start, cut, cut, end
    pairs.waiting[count] = -1
    if relation == SWAPPED:
        first, first_end, second, second_end = cut, end, start, cut
    elif relation == RANDOM and rules.exchanges and end > cut:
        pairs.waiting[count] = document
    elif relation == RANDOM:
        second, stop = draw_stranger(documents, document, rules.exchanges, state)
        second_end = fill_from(sentences, second, stop, target - (sentences[cut] - sentences[start]), rules.overfills)
        used = cut  # what the stranger replaced comes again
    row = pairs.ranges[count]
    row[0], row[1], row[2], row[3] = sentences[first], sentences[first_end], sentences[second], sentences[second_end]
    trim(row, rules.room, state)
    pairs.relations[count] = relation
    pairs.is_lead[count] = start == documents[document]
    return used


@compiled
def draw_target(rules: PairRules, state: State) -> int:
    """How many tokens of text this chunk should reach."""
    if draw_unit(state) < rules.short_rate:
        return 2 + draw_below(state, rules.room - 1)
    return rules.room


@compiled
def take_chunk(
    sentences: Starts, low: int, high: int, target: int, is_backward: bool, rules: PairRules
) -> tuple[int, int]:
    """The sentences of the next chunk, from the front or the back of what is left of a document."""
    if is_backward:
        start = fill_back_from(sentences, low, high, target, rules.overfills)
        if high - start == 1 and start > low and rules.single_sentence == MERGE_NEXT:
            start -= 1
        return start, high
    end = fill_from(sentences, low, high, target, rules.overfills)
    if end - low == 1 and end < high and rules.single_sentence == MERGE_NEXT:
        end += 1
    return low, end


@compiled
def fill_from(sentences: Starts, start: int, stop: int, wanted: int, overfills: bool) -> int:
    """Take sentences from `start`, at least one, while they fit or, overfilling, until one does not: where it ends."""
    end = start + 1
    asked = 0 if overfills else 1  # is the sentence in question counted?
    while end < stop and sentences[end + asked] - sentences[start] < wanted + asked:
        end += 1
    return end


@compiled
def fill_back_from(sentences: Starts, low: int, stop: int, wanted: int, overfills: bool) -> int:
    """The same from the back: where it starts."""
    start = stop - 1
    asked = 0 if overfills else 1
    while start > low and sentences[stop] - sentences[start - asked] < wanted + asked:
        start -= 1
    return start


@compiled
def draw_relation(task: int, num_sentences: int, state: State) -> int:
    """In order, swapped or random, each as likely as its label should be."""
    if num_sentences == 1:
        return IN_ORDER if task == NONE else RANDOM
    if task == NONE:
        draw_unit(state)  # so that what follows is drawn alike, and arms of a study read the same pieces of text
        return IN_ORDER
    if task == SOP:
        return SWAPPED if draw_unit(state) < 0.5 else IN_ORDER
    if task == NSP:
        return RANDOM if draw_unit(state) < 0.5 else IN_ORDER
    return draw_below(state, 3)


@compiled
def draw_stranger(documents: Starts, document: int, avoids_leads: bool, state: State) -> tuple[int, int]:
    """A sentence of another document, and where that document stops."""
    if avoids_leads:
        return _draw_inside_another_document(documents, document, state)
    # official: every document is as likely as any other; after ten attempts it may be the same one
    other = document
    for _ in range(_ATTEMPTS):
        other = draw_below(state, len(documents) - 1)
        if other != document:
            break
    first, stop = documents[other], documents[other + 1]
    return first + draw_below(state, stop - first), stop


@compiled
def _draw_inside_another_document(documents: Starts, document: int, state: State) -> tuple[int, int]:
    other = (document + 1 + draw_below(state, len(documents) - 2)) % (len(documents) - 1)
    first, stop = documents[other], documents[other + 1]
    return first if stop - first == 1 else first + 1 + draw_below(state, stop - first - 1), stop


@compiled
def exchange_seconds(
    sentences: Starts, documents: Starts, order: NDArray[np.int64], pairs: Pairs, key: np.uint64
) -> None:
    """Give each pair of `order`, longest second segment first, the second segment of the next from another document.

    Random segments are then true ones, of the same lengths, that begin no document: only what they say tells them.
    """
    state = np.zeros(1, np.uint64)
    seconds = pairs.ranges[:, 2:].copy()
    for place in range(len(order)):
        pair = order[place]
        state[0] = combine(key, np.uint64(pair))
        length = seconds[pair, 1] - seconds[pair, 0]
        start = stop = -1
        for further in range(1, min(len(order), 1 + 8 * _ATTEMPTS)):
            other = order[(place + further) % len(order)]
            if pairs.waiting[other] != pairs.waiting[pair]:
                start, stop = seconds[other]
                break
        if start < 0:  # a corpus of few documents
            sentence, _ = draw_stranger(documents, pairs.waiting[pair], True, state)
            start, stop = sentences[sentence], sentences[sentence + 1]
        pairs.ranges[pair, 2], pairs.ranges[pair, 3] = start, min(stop, start + length)


@compiled
def trim(row: NDArray[np.int64], room: int, state: State) -> None:
    """Shorten two token ranges to the room.

    Tokens go one by one from the longer side, front or back by coin, as in the official code: each side is treated
    alike wherever it stands, so that ragged ends do not tell the label.
    """
    while row[1] - row[0] + row[3] - row[2] > room:
        side = 0 if row[1] - row[0] > row[3] - row[2] else 2
        if draw_unit(state) < 0.5:
            row[side] += 1
        else:
            row[side + 1] -= 1
