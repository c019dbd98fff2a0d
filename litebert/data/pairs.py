"""Planning pairs of segments: chunks of sentences cut in two, kept in order, swapped, or given a stranger's text."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.data.compiled import compiled
from litebert.data.randomness import State, combine, draw_below, draw_unit
from litebert.data.relations import IN_ORDER, MERGE_NEXT, NONE, NSP, RANDOM, RANDOM_DOC, SOP, SWAPPED

Starts = NDArray[np.int64]
_ATTEMPTS = 10  # as official; ours then takes another document by counting on, the official one its own


class PairRules(NamedTuple):
    """SegmentOptions as numbers that compiled code reads."""

    room: int
    short_rate: float
    task: int
    single_sentence: int
    is_target_per_document: bool
    may_start_with_lead: bool


@compiled
def plan_segment_pairs(
    sentences: Starts,
    documents: Starts,
    rules: PairRules,
    key: np.uint64,
    ranges: NDArray[np.int64],
    relations: NDArray[np.int8],
    is_lead: NDArray[np.bool_],
) -> int:
    """Fill `ranges`, `relations` and `is_lead` for each pair of one pass; returns how many there are."""
    state = np.zeros(1, np.uint64)
    count = 0
    for document in range(len(documents) - 1):
        state[0] = combine(key, np.uint64(document))
        first, stop = documents[document], documents[document + 1]
        target = draw_target(rules, state)
        start = first
        while start < stop:
            if start > first and not rules.is_target_per_document:
                target = draw_target(rules, state)
            end = close_chunk(sentences, start, stop, target, rules)
            if end - start == 1 and rules.single_sentence != RANDOM_DOC:
                start = end  # one sentence cannot be put in order: left out of this pass
                continue
            cut = start + 1 if end - start == 1 else start + 1 + draw_below(state, end - start - 1)
            relation = draw_relation(rules.task, end - start, state)
            if relation == RANDOM:
                wanted = target - (sentences[cut] - sentences[start])
                other, other_stop = draw_stranger(documents, document, rules, state)
                other_end = fill_from(sentences, other, other_stop, wanted)
                write_pair(sentences, (start, cut, other, other_end), rules.room, state, ranges[count])
                end = cut  # what the stranger replaced comes again
            elif relation == SWAPPED:
                write_pair(sentences, (cut, end, start, cut), rules.room, state, ranges[count])
            else:
                write_pair(sentences, (start, cut, cut, end), rules.room, state, ranges[count])
            relations[count] = relation
            is_lead[count] = start == first
            count += 1
            start = end
    return count


@compiled
def plan_sentence_pairs(
    sentences: Starts,
    documents: Starts,
    rules: PairRules,
    key: np.uint64,
    ranges: NDArray[np.int64],
    relations: NDArray[np.int8],
    is_lead: NDArray[np.bool_],
) -> int:
    """The same for pairs of single sentences; every other pass starts at a document's second sentence."""
    state = np.zeros(1, np.uint64)
    count = 0
    for document in range(len(documents) - 1):
        state[0] = combine(key, np.uint64(document))
        first, stop = documents[document], documents[document + 1]
        start = first + draw_below(state, 2) if stop - first > 2 else first
        while start + 1 < stop:
            relation = draw_relation(rules.task, 2, state)
            if relation == RANDOM:
                other, _ = draw_stranger(documents, document, rules, state)
                write_pair(sentences, (start, start + 1, other, other + 1), rules.room, state, ranges[count])
            elif relation == SWAPPED:
                write_pair(sentences, (start + 1, start + 2, start, start + 1), rules.room, state, ranges[count])
            else:
                write_pair(sentences, (start, start + 1, start + 1, start + 2), rules.room, state, ranges[count])
            relations[count] = relation
            is_lead[count] = start == first
            count += 1
            start += 1 if relation == RANDOM else 2
    return count


@compiled
def draw_target(rules: PairRules, state: State) -> int:
    """How many tokens of text this chunk should reach."""
    if draw_unit(state) < rules.short_rate:
        return 2 + draw_below(state, rules.room - 1)
    return rules.room


@compiled
def close_chunk(sentences: Starts, start: int, stop: int, target: int, rules: PairRules) -> int:
    """The first sentence after the chunk that begins at sentence `start`."""
    end = fill_from(sentences, start, stop, target)
    if end - start == 1 and end < stop and rules.single_sentence == MERGE_NEXT:
        return end + 1
    return end


@compiled
def fill_from(sentences: Starts, start: int, stop: int, wanted: int) -> int:
    """Take sentences from `start`, at least one, until `wanted` tokens are reached or the document ends."""
    end = start + 1
    while end < stop and sentences[end] - sentences[start] < wanted:
        end += 1
    return end


@compiled
def draw_relation(task: int, num_sentences: int, state: State) -> int:
    """In order, swapped or random, each as likely as its label should be."""
    if task == NONE:
        return IN_ORDER
    if num_sentences == 1:
        return RANDOM
    if task == SOP:
        return SWAPPED if draw_unit(state) < 0.5 else IN_ORDER
    if task == NSP:
        return RANDOM if draw_unit(state) < 0.5 else IN_ORDER
    return draw_below(state, 3)


@compiled
def draw_stranger(documents: Starts, document: int, rules: PairRules, state: State) -> tuple[int, int]:
    """A sentence of another document, and where that document stops."""
    if rules.may_start_with_lead:
        return _draw_from_any_document(documents, document, state)
    return _draw_inside_another_document(documents, document, state)


@compiled
def _draw_from_any_document(documents: Starts, document: int, state: State) -> tuple[int, int]:
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
    # Every sentence is as likely as any other, but a document's first: true second segments never begin there, and a
    # lead is so easy to tell that the task would be learned from it.
    for _ in range(_ATTEMPTS):
        sentence = draw_below(state, documents[-1])
        owner = np.searchsorted(documents, sentence, "right") - 1
        if owner != document and sentence != documents[owner]:
            return sentence, documents[owner + 1]
    other = (document + 1 + draw_below(state, len(documents) - 2)) % (len(documents) - 1)
    first, stop = documents[other], documents[other + 1]
    return first if stop - first == 1 else first + 1 + draw_below(state, stop - first - 1), stop


@compiled
def write_pair(
    sentences: Starts, pair: tuple[int, int, int, int], room: int, state: State, target: NDArray[np.int64]
) -> None:
    """Write the token ranges of two sentence ranges, trimmed to the room.

    Tokens go one by one from the longer side, front or back by coin, as in the official code: each side is treated
    alike wherever it stands, so that ragged ends do not tell the label.
    """
    for k in range(4):
        target[k] = sentences[pair[k]]
    while target[1] - target[0] + target[3] - target[2] > room:
        side = 0 if target[1] - target[0] > target[3] - target[2] else 2
        if draw_unit(state) < 0.5:
            target[side] += 1
        else:
            target[side + 1] -= 1
