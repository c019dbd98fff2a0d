"""Compiled loops that cut a corpus into sequences: pairs of segments, and runs of whole sentences.

Sentence order must not be visible from lengths alone. The sentence that did not fit a chunk is longer than most; it
comes last in its chunk if chunks overfill (as the official ones do) and first in the next chunk if they do not. Half of
the documents are therefore filled from their end, which gives both orders the same lengths.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.random_kernels import State, combine, draw_below, draw_unit
from litebert.core.compiled import compiled

IN_ORDER, SWAPPED, RANDOM = range(3)  # how the two segments of a pair are related

TASKS = ("none", "sop", "nsp", "three-way")
NONE, SOP, NSP, THREE_WAY = range(4)

SINGLE_SENTENCE = ("merge_next", "drop", "random_doc")
MERGE_NEXT, DROP, RANDOM_DOC = range(3)

_ATTEMPTS = 10

Offsets = NDArray[np.int64]


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
    """Output arrays of the pair planners (S pairs)."""

    ranges: NDArray[np.int64]  # (S, 4)
    relations: NDArray[np.int8]  # (S,)
    opens_document: NDArray[np.bool_]  # (S,)
    exchanging: NDArray[np.int64]  # (S,) the document of a pair that still has to exchange its second segment; else -1


@compiled
def plan_segment_pairs(sentences: Offsets, documents: Offsets, rules: PairRules, key: np.uint64, pairs: Pairs) -> int:
    """Write the pairs of one pass over the corpus; returns how many there are."""
    state = np.zeros(1, np.uint64)
    count = 0
    for document in range(len(documents) - 1):
        state[0] = combine(key, np.uint64(document))
        low, high = documents[document], documents[document + 1]  # the sentences that are left
        num_sentences = high - low
        target = draw_target(rules.room, rules.short_rate, state)
        is_backward = rules.fills_from_either_end and draw_unit(state) < 0.5
        if not rules.exchanges and rules.task in (NSP, THREE_WAY):
            is_backward = False  # the text that a random segment replaced is put back, which works forward only
        while low < high:
            if high - low < num_sentences and not rules.is_target_per_document:
                target = draw_target(rules.room, rules.short_rate, state)
            if is_backward:
                start, end = fill_backward(sentences, low, high, target, rules.overfills), high
                if end - start == 1 and start > low and rules.single_sentence == MERGE_NEXT:
                    start -= 1
            else:
                start, end = low, fill_forward(sentences, low, high, target, rules.overfills)
                if end - start == 1 and end < high and rules.single_sentence == MERGE_NEXT:
                    end += 1
            next_low = end
            if end - start > 1 or rules.single_sentence == RANDOM_DOC:
                cut = start + 1 if end - start == 1 else start + 1 + draw_below(state, end - start - 1)
                chunk = start, cut, end
                next_low = write_pair(sentences, documents, document, chunk, target, rules, state, pairs, count)
                count += 1
            if is_backward:
                high = start
            else:
                low = next_low
    return count


@compiled
def plan_sentence_pairs(sentences: Offsets, documents: Offsets, rules: PairRules, key: np.uint64, pairs: Pairs) -> int:
    """The same for pairs of single sentences; by coin, a document's pairs start at its second sentence."""
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
    sentences: Offsets,
    documents: Offsets,
    document: int,
    chunk: tuple[int, int, int],
    target: int,
    rules: PairRules,
    state: State,
    pairs: Pairs,
    count: int,
) -> int:
    """Write a pair from a chunk (start, cut, end) of sentences; returns the first sentence that it did not use."""
    start, cut, end = chunk
    relation = draw_relation(rules.task, end - start, state)
    next_sentence = end
    first, first_end, second, second_end = start, cut, cut, end
    pairs.exchanging[count] = -1
    if relation == SWAPPED:
        first, first_end, second, second_end = cut, end, start, cut
    elif relation == RANDOM and rules.exchanges and end > cut:
        pairs.exchanging[count] = document
    elif relation == RANDOM:
        second, stop = draw_random_sentence(documents, document, rules.exchanges, state)
        wanted = target - (sentences[cut] - sentences[start])
        second_end = fill_forward(sentences, second, stop, wanted, rules.overfills)
        next_sentence = cut  # the replaced text is used again
    row = pairs.ranges[count]
    row[0], row[1], row[2], row[3] = sentences[first], sentences[first_end], sentences[second], sentences[second_end]
    trim(row, rules.room, state)
    pairs.relations[count] = relation
    pairs.opens_document[count] = start == documents[document]
    return next_sentence


@compiled
def draw_target(room: int, short_rate: float, state: State) -> int:
    """The number of text tokens that the next sequence should reach."""
    return 2 + draw_below(state, room - 1) if draw_unit(state) < short_rate else room


@compiled
def fill_forward(sentences: Offsets, start: int, stop: int, wanted: int, overfills: bool) -> int:
    """Take at least one sentence from `start` on, while they fit; if overfilling, also the first that does not fit.

    Returns the end of the taken sentences.
    """
    end = start + 1
    looks_ahead = 0 if overfills else 1  # whether the sentence in question counts
    while end < stop and sentences[end + looks_ahead] - sentences[start] < wanted + looks_ahead:
        end += 1
    return end


@compiled
def fill_backward(sentences: Offsets, low: int, stop: int, wanted: int, overfills: bool) -> int:
    """The same from the end of a document; returns the start of the taken sentences."""
    start = stop - 1
    looks_ahead = 0 if overfills else 1
    while start > low and sentences[stop] - sentences[start - looks_ahead] < wanted + looks_ahead:
        start -= 1
    return start


@compiled
def draw_relation(task: int, num_sentences: int, state: State) -> int:
    """In order, swapped or random: every label of the task is equally likely."""
    if num_sentences == 1:
        return IN_ORDER if task == NONE else RANDOM
    if task == NONE:
        draw_unit(state)  # keeps later draws the same as with SOP, so that arms of a study read the same pieces of text
        return IN_ORDER
    if task == SOP:
        return SWAPPED if draw_unit(state) < 0.5 else IN_ORDER
    if task == NSP:
        return RANDOM if draw_unit(state) < 0.5 else IN_ORDER
    return draw_below(state, 3)


@compiled
def draw_random_sentence(documents: Offsets, document: int, avoids_openings: bool, state: State) -> tuple[int, int]:
    """A random sentence of another document, and the end of that document."""
    num_documents = len(documents) - 1
    if avoids_openings:
        other = (document + 1 + draw_below(state, num_documents - 1)) % num_documents
        first, stop = documents[other], documents[other + 1]
        return first if stop - first == 1 else first + 1 + draw_below(state, stop - first - 1), stop
    # official: all documents are equally likely; after ten attempts it may be the same one
    other = document
    for _ in range(_ATTEMPTS):
        other = draw_below(state, num_documents)
        if other != document:
            break
    first, stop = documents[other], documents[other + 1]
    return first + draw_below(state, stop - first), stop


@compiled
def exchange_seconds(
    sentences: Offsets, documents: Offsets, order: NDArray[np.int64], pairs: Pairs, key: np.uint64
) -> None:
    """Give each pair of `order` (longest second segment first) the second segment of the next from another document.

    Random segments are then real second segments of the same lengths that open no document, so that only their content
    distinguishes them.
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
            if pairs.exchanging[other] != pairs.exchanging[pair]:
                start, stop = seconds[other]
                break
        if start < 0:  # a corpus of few documents
            sentence, _ = draw_random_sentence(documents, pairs.exchanging[pair], True, state)
            start, stop = sentences[sentence], sentences[sentence + 1]
        pairs.ranges[pair, 2], pairs.ranges[pair, 3] = start, min(stop, start + length)


@compiled
def trim(row: NDArray[np.int64], room: int, state: State) -> None:
    """Shorten two token ranges to the room.

    Tokens are dropped one by one from the longer side, front or back by coin, as in the official code. Both sides are
    treated alike, so that a cut sentence does not reveal the label.
    """
    while row[1] - row[0] + row[3] - row[2] > room:
        side = 0 if row[1] - row[0] > row[3] - row[2] else 2
        if draw_unit(state) < 0.5:
            row[side] += 1
        else:
            row[side + 1] -= 1


@compiled
def plan_runs(
    sentences: Offsets,
    documents: Offsets,
    room: int,
    short_rate: float,
    may_cross: bool,
    key: np.uint64,
    ranges: NDArray[np.int64],
    lengths: NDArray[np.int32],
    opens_document: NDArray[np.bool_],
) -> int:
    """Write the runs of whole sentences of one pass (RoBERTa's two formats); returns how many there are.

    A run that crosses documents (`may_cross`) has one more [SEP] at each border. A sentence longer than the room is cut
    into windows, so that no text is lost.
    """
    state = np.zeros(1, np.uint64)
    state[0] = key
    target = draw_target(room, short_rate, state)
    count = 0
    begin = end = separators = 0  # the open run: tokens begin..end
    is_opening = True
    for document in range(len(documents) - 1):
        if not may_cross:
            state[0] = combine(key, np.uint64(document))
        for sentence in range(documents[document], documents[document + 1]):
            is_first = sentence == documents[document]
            border = 1 if may_cross and is_first and end > begin else 0
            stop = sentences[sentence + 1]
            fits = stop - begin + separators + border <= target and (may_cross or not is_first)
            if end > begin and not fits:
                count = write_run(begin, end, separators, is_opening, count, ranges, lengths, opens_document)
                target = draw_target(room, short_rate, state)
                begin, separators, border, is_opening = end, 0, 0, is_first
            while stop - begin > room:  # only a sentence that is alone in its run
                count = write_run(begin, begin + room, 0, is_opening, count, ranges, lengths, opens_document)
                begin, is_opening = begin + room, False
            end = stop
            separators += border
    if end > begin:
        count = write_run(begin, end, separators, is_opening, count, ranges, lengths, opens_document)
    return count


@compiled
def write_run(
    begin: int,
    end: int,
    separators: int,
    is_opening: bool,
    count: int,
    ranges: NDArray[np.int64],
    lengths: NDArray[np.int32],
    opens_document: NDArray[np.bool_],
) -> int:
    """Write one run and return the new count."""
    ranges[count, 0], ranges[count, 1] = begin, end
    lengths[count] = end - begin + separators + 2
    opens_document[count] = is_opening
    return count + 1
