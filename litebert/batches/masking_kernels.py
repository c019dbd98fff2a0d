"""The two ways to choose groups of words in one sequence, as compiled loops: freely, or within the official budget."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.randomness import State, draw_below, draw_unit, shuffle
from litebert.core.compiled import compiled

CONTINUES, BEGINS, SPECIAL = 0, 1, 2  # word codes
MASKED, REPLACED, KEPT = 0, 1, 2  # actions
_ATTEMPTS = 64


class ChoiceRules(NamedTuple):
    """MaskingOptions as numbers that compiled code reads."""

    rate: float
    mean_words: float  # of a group
    splits_words: bool  # every token is a word
    may_straddle: bool
    max_predictions: int
    mask_share: float
    random_share: float
    is_action_per_group: bool
    fills_budget: bool


class Scratch(NamedTuple):
    """Room to work in for one sequence after another."""

    state: State
    tokens: NDArray[np.int64]  # positions that may be chosen, from left to right
    words: NDArray[np.int64]  # where in `tokens` each word begins, and the end
    segment_ends: NDArray[np.int64]  # for each word, the first word of the next segment: no group goes beyond
    order: NDArray[np.int64]
    groups: NDArray[np.int32]  # by position: 0, or which group chose it
    sizes: NDArray[np.int8]
    actions: NDArray[np.int8]
    random_ids: NDArray[np.int64]


@compiled
def find_words(codes: NDArray[np.uint8], rules: ChoiceRules, scratch: Scratch) -> int:
    """List the words of a sequence in `scratch`; returns how many there are."""
    num_tokens = num_words = segment_start = 0
    opens = True  # the first piece of a segment begins a word there, even when trimming cut the word
    for position in range(len(codes)):
        scratch.groups[position] = 0
        if codes[position] == SPECIAL:
            if not rules.may_straddle:
                scratch.segment_ends[segment_start:num_words] = num_words
                segment_start, opens = num_words, True
            continue
        # written whether or not a word begins: words are too irregular for a branch
        scratch.words[num_words] = num_tokens
        num_words += opens | rules.splits_words | (codes[position] == BEGINS)
        scratch.tokens[num_tokens] = position
        num_tokens += 1
        opens = False
    scratch.words[num_words] = num_tokens
    scratch.segment_ends[segment_start:num_words] = num_words
    return num_words


@compiled
def choose_freely(
    num_words: int,
    rules: ChoiceRules,
    cumulated: NDArray[np.float64],
    ordinary_ids: NDArray[np.int64],
    scratch: Scratch,
) -> None:
    """Draw as many groups as cover the rate on average; each draws its n first and keeps it until a place is free."""
    if rules.rate == 0:
        return
    # rounded up or down by chance, so that the mean is exact
    wanted = max(1, int(np.floor(rules.rate * num_words / rules.mean_words + draw_unit(scratch.state))))
    largest = max(1, scratch.words[num_words] // 2)  # a group never hides more than half of a sequence
    for group in range(1, wanted + 1):
        for size in range(draw_size(cumulated, scratch.state), 0, -1):
            word = _find_place(num_words, size, largest, scratch)
            if word >= 0:
                take_group(word, word + size, group, size, rules, ordinary_ids, scratch)
                break


@compiled
def choose_within_budget(
    num_words: int,
    length: int,
    rules: ChoiceRules,
    cumulated: NDArray[np.float64],
    ordinary_ids: NDArray[np.int64],
    scratch: Scratch,
) -> None:
    """The official choice: visit every word once, in random order, until the budget is used."""
    if rules.rate == 0:
        return
    budget = min(rules.max_predictions, max(1, int(np.rint(length * rules.rate))))  # the length has the specials in it
    for word in range(num_words):
        scratch.order[word] = word
    shuffle(scratch.state, scratch.order, num_words)
    used = group = 0
    for visit in range(num_words):
        if used >= budget:
            return
        word = scratch.order[visit]
        size = draw_size(cumulated, scratch.state)
        while size > 0 and used + _count_tokens(word, size, scratch) > budget:
            size -= 1
        if size == 0 or not _is_free(word, size, scratch):
            continue
        used += _count_tokens(word, size, scratch)
        group += 1
        end = min(word + size, scratch.segment_ends[word])
        take_group(word, end, group, end - word, rules, ordinary_ids, scratch)


@compiled
def draw_size(cumulated: NDArray[np.float64], state: State) -> int:
    """How many words the next group has."""
    point = draw_unit(state)
    size = 1
    while size < len(cumulated) and point >= cumulated[size - 1]:
        size += 1
    return size


@compiled
def take_group(
    word: int,
    end: int,
    group: int,
    size: int,
    rules: ChoiceRules,
    ordinary_ids: NDArray[np.int64],
    scratch: Scratch,
) -> None:
    """Mark the tokens of the words word..end, and decide what happens to each."""
    action = MASKED
    for k in range(scratch.words[word], scratch.words[end]):
        if k == scratch.words[word] or not rules.is_action_per_group:
            action = _draw_action(rules, scratch.state)
        position = scratch.tokens[k]
        scratch.groups[position] = group
        scratch.sizes[position] = size
        scratch.actions[position] = action
        if action == REPLACED:
            scratch.random_ids[position] = ordinary_ids[draw_below(scratch.state, len(ordinary_ids))]


@compiled
def _draw_action(rules: ChoiceRules, state: State) -> int:
    if draw_unit(state) < rules.mask_share:
        return MASKED
    # two draws, as in the official code: first whether [MASK], then which of the other two
    rest = 1 - rules.mask_share
    return KEPT if draw_unit(state) * rest < rest - rules.random_share else REPLACED


@compiled
def _find_place(num_words: int, size: int, largest: int, scratch: Scratch) -> int:
    """The first word of a free place for `size` words, every such place as likely as any other; -1 if none is found."""
    for _ in range(_ATTEMPTS):
        word = draw_below(scratch.state, num_words)
        if word + size > scratch.segment_ends[word]:
            continue
        if _count_tokens(word, size, scratch) <= largest and _is_free(word, size, scratch):
            return word
    return -1


@compiled
def _count_tokens(word: int, size: int, scratch: Scratch) -> int:
    count: int = scratch.words[min(word + size, scratch.segment_ends[word])] - scratch.words[word]
    return count


@compiled
def _is_free(word: int, size: int, scratch: Scratch) -> bool:
    end = min(word + size, scratch.segment_ends[word])
    is_free = True
    for k in range(scratch.words[word], scratch.words[end]):
        is_free &= scratch.groups[scratch.tokens[k]] == 0
    return is_free
