"""Compiled loops that choose groups of words in each sequence, freely or within the official budget, and mask them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.random_kernels import State, draw_below, draw_unit, shuffle
from litebert.core.compiled import compiled

CONTINUES, BEGINS, SPECIAL = range(3)  # word codes: a token continues a word, begins one, or is special
MASKED, REPLACED, KEPT = range(3)  # actions
_ATTEMPTS = 64


class MaskRules(NamedTuple):
    """MaskingOptions as numbers that compiled code reads."""

    rate: float
    mean_words: float  # per group
    splits_words: bool  # every token is a word
    may_straddle: bool
    max_predictions: int
    mask_share: float
    random_share: float
    is_action_per_group: bool
    fills_budget: bool


class Vocabulary(NamedTuple):
    """What masking knows about a tokenizer."""

    mask_id: int
    ordinary_ids: NDArray[np.int64]  # random replacements are drawn from these


class KeyedSpans(NamedTuple):
    """Where sequences are in a flat array of tokens, and the key of each one's generator."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    keys: NDArray[np.uint64]


class Targets(NamedTuple):
    """The tokens to predict (M of them) by position, and why each was chosen."""

    positions: NDArray[np.int64]  # flat, like the sequences' starts
    labels: NDArray[np.int64]  # the original token
    groups: NDArray[np.int32]  # the group within its sequence, from 1 in the order they were drawn
    sizes: NDArray[np.int8]  # the number of words of that group
    actions: NDArray[np.int8]  # MASKED, REPLACED or KEPT


class Scratch(NamedTuple):
    """Working memory, reused for one sequence after another."""

    state: State
    tokens: NDArray[np.int64]  # positions that may be chosen, from left to right
    words: NDArray[np.int64]  # where in `tokens` each word begins, and the end
    segment_ends: NDArray[np.int64]  # for each word, the first word of the next segment: no group continues beyond it
    order: NDArray[np.int64]
    groups: NDArray[np.int32]  # by position: 0, or the group that chose it
    sizes: NDArray[np.int8]
    actions: NDArray[np.int8]
    random_ids: NDArray[np.int64]


@compiled
def mask_sequences(
    token_ids: NDArray[np.int64],
    word_codes: NDArray[np.uint8],
    spans: KeyedSpans,
    kinds: tuple[tuple[MaskRules, NDArray[np.float64]], tuple[MaskRules, NDArray[np.float64]]],
    token_share: float,
    vocabulary: Vocabulary,
    scratch: Scratch,
    targets: Targets,
) -> int:
    """Mask each sequence by the first kind, or with probability `token_share` by the second; returns the target count.

    A kind is its rules and the cumulative p(n) of its group sizes.
    """
    count = 0
    for row in range(len(spans.starts)):
        start, length = spans.starts[row], spans.lengths[row]
        scratch.state[0] = spans.keys[row]
        rules, cumulative = kinds[0]
        if token_share > 0 and draw_unit(scratch.state) < token_share:
            rules, cumulative = kinds[1]
        num_words = find_words(word_codes[start : start + length], rules, scratch)
        if num_words == 0 or rules.rate == 0:
            continue
        # a flag rather than a function argument, for which numba would compile again in every process
        if rules.fills_budget:
            choose_within_budget(num_words, length, rules, cumulative, vocabulary.ordinary_ids, scratch)
        else:
            choose_freely(num_words, rules, cumulative, vocabulary.ordinary_ids, scratch)
        for position in range(length):
            if scratch.groups[position] == 0:
                continue
            targets.positions[count] = start + position
            targets.labels[count] = token_ids[start + position]
            targets.groups[count] = scratch.groups[position]
            targets.sizes[count] = scratch.sizes[position]
            targets.actions[count] = scratch.actions[position]
            if scratch.actions[position] == MASKED:
                token_ids[start + position] = vocabulary.mask_id
            elif scratch.actions[position] == REPLACED:
                token_ids[start + position] = scratch.random_ids[position]
            count += 1
    return count


@compiled
def find_words(codes: NDArray[np.uint8], rules: MaskRules, scratch: Scratch) -> int:
    """List the words of a sequence in `scratch`; returns how many there are."""
    num_tokens = num_words = segment_start = 0
    opens = True  # the first token of a segment begins a word there, even if trimming cut the word
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
    rules: MaskRules,
    cumulative: NDArray[np.float64],
    ordinary_ids: NDArray[np.int64],
    scratch: Scratch,
) -> None:
    """Choose as many groups as reach the rate on average.

    Each group draws its size first, then a free place, where every free place is equally likely; only if none is found
    does it become smaller. Both the rate and the shares of the sizes are therefore as specified.
    """
    # rounded up or down at random, so that the mean is exact
    num_groups = max(1, int(np.floor(rules.rate * num_words / rules.mean_words + draw_unit(scratch.state))))
    most_tokens = max(1, scratch.words[num_words] // 2)  # no group hides more than half of a sequence
    for group in range(1, num_groups + 1):
        is_placed = False
        for size in range(draw_size(cumulative, scratch.state), 0, -1):
            for _ in range(_ATTEMPTS):
                word = draw_below(scratch.state, num_words)
                end = word + size
                if end > scratch.segment_ends[word] or scratch.words[end] - scratch.words[word] > most_tokens:
                    continue
                if is_free(word, end, scratch):
                    take_group(word, end, group, rules, ordinary_ids, scratch)
                    is_placed = True
                    break
            if is_placed:
                break


@compiled
def choose_within_budget(
    num_words: int,
    length: int,
    rules: MaskRules,
    cumulative: NDArray[np.float64],
    ordinary_ids: NDArray[np.int64],
    scratch: Scratch,
) -> None:
    """The official choice: visit every word once in random order until the token budget is used up."""
    # the official length includes the special tokens
    budget = min(rules.max_predictions, max(1, int(np.rint(length * rules.rate))))
    for word in range(num_words):
        scratch.order[word] = word
    shuffle(scratch.state, scratch.order, num_words)
    used = group = 0
    for visit in range(num_words):
        if used >= budget:
            return
        word = scratch.order[visit]
        end = min(word + draw_size(cumulative, scratch.state), scratch.segment_ends[word])
        while end > word and used + scratch.words[end] - scratch.words[word] > budget:
            end -= 1
        if end == word or not is_free(word, end, scratch):
            continue
        used += scratch.words[end] - scratch.words[word]
        group += 1
        take_group(word, end, group, rules, ordinary_ids, scratch)


@compiled
def draw_size(cumulative: NDArray[np.float64], state: State) -> int:
    """The number of words of the next group."""
    point = draw_unit(state)
    size = 1
    while size < len(cumulative) and point >= cumulative[size - 1]:
        size += 1
    return size


@compiled
def is_free(word: int, end: int, scratch: Scratch) -> bool:
    """Whether no token of the words word..end is chosen yet."""
    is_free = True
    for k in range(scratch.words[word], scratch.words[end]):
        is_free &= scratch.groups[scratch.tokens[k]] == 0
    return is_free


@compiled
def take_group(
    word: int, end: int, group: int, rules: MaskRules, ordinary_ids: NDArray[np.int64], scratch: Scratch
) -> None:
    """Mark the tokens of the words word..end as chosen, and decide how each is replaced."""
    action = MASKED
    for k in range(scratch.words[word], scratch.words[end]):
        if k == scratch.words[word] or not rules.is_action_per_group:
            # two draws, as in the official code: first whether it becomes [MASK], then which of the other two
            rest = 1 - rules.mask_share
            if draw_unit(scratch.state) < rules.mask_share:
                action = MASKED
            elif draw_unit(scratch.state) * rest < rest - rules.random_share:
                action = KEPT
            else:
                action = REPLACED
        position = scratch.tokens[k]
        scratch.groups[position] = group
        scratch.sizes[position] = end - word
        scratch.actions[position] = action
        if action == REPLACED:
            scratch.random_ids[position] = ordinary_ids[draw_below(scratch.state, len(ordinary_ids))]
