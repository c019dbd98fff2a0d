"""Choosing what a model must predict: n-grams, whole words, tokens or spans, and what is put in their place.

The four kinds are one algorithm with two facts: what a word is, and how likely a group of n words is. Our choice
draws a number of groups that covers the rate on average, each group's n from p(n), and puts each where it fits, so
that the share of masked tokens and the shares of n are both what the recipe says. The official choice fills a fixed
budget instead, and drops or shortens what does not fit (`fills_budget`).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.masking_kernels import ChoiceRules, Scratch, choose_freely, choose_within_budget, find_words
from litebert.batches.options import MaskingOptions
from litebert.batches.randomness import draw_unit
from litebert.core.compiled import compiled

ACTIONS = ("masked", "random", "kept")


class Vocabulary(NamedTuple):
    """What masking knows of a tokenizer."""

    mask_id: int
    ordinary_ids: NDArray[np.int64]  # what a random replacement is drawn from


def list_vocabulary(vocab_size: int, special_ids: frozenset[int], mask_id: int, options: MaskingOptions) -> Vocabulary:
    """The ids that a random replacement may be."""
    ids = np.arange(vocab_size)
    is_ordinary = options.random_from_all | ~np.isin(ids, sorted(special_ids))
    return Vocabulary(mask_id, ids[is_ordinary])


class Targets(NamedTuple):
    """What must be predicted (M tokens), by position, and why each was chosen."""

    positions: NDArray[np.int64]  # flat, as the sequences' starts
    labels: NDArray[np.int64]  # the token that stood there
    groups: NDArray[np.int32]  # which group of its sequence, from 1 in the order they were drawn
    sizes: NDArray[np.int8]  # how many words that group has
    actions: NDArray[np.int8]  # index into ACTIONS


Kind = tuple[ChoiceRules, NDArray[np.float64]]  # with the cumulated p(n)


class Sequences(NamedTuple):
    """Where sequences lie in a flat array of tokens, and the key of each one's generator."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    keys: NDArray[np.uint64]


def mask_tokens(
    token_ids: NDArray[np.int64],
    word_codes: NDArray[np.uint8],
    sequences: Sequences,
    options: MaskingOptions,
    vocabulary: Vocabulary,
    *,
    rate: float,
) -> Targets:
    """Choose and replace tokens in place; `word_codes` says what begins a word (1) and what is special (2)."""
    cumulated, mean_words = _summarise_groups(options)
    rules = ChoiceRules(
        rate=rate,
        mean_words=mean_words,
        splits_words=options.kind == "token",
        may_straddle=options.may_straddle,
        max_predictions=options.max_predictions or 2**31,
        mask_share=options.mask_share,
        random_share=options.random_share,
        is_action_per_group=options.replace_per == "ngram",
        fills_budget=options.fills_budget,
    )
    most = int(sequences.lengths.sum())
    targets = Targets(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.int8),
        np.empty(most, np.int8),
    )
    scratch = _scratch(int(sequences.lengths.max(initial=0)))
    flat = token_ids.reshape(-1), word_codes.reshape(-1)
    kinds = (rules, cumulated), (rules._replace(splits_words=True, mean_words=1.0), np.ones(1))
    count = _mask_sequences(*flat, sequences, kinds, options.token_share, vocabulary, scratch, targets)
    return Targets._make(values[:count] for values in targets)


def group_probabilities(options: MaskingOptions) -> NDArray[np.float64]:
    """p(n) for n = 1, 2, ...: how many words a group has."""
    if options.kind == "ngram":
        weights = 1 / np.arange(1, options.max_ngram + 1, dtype=np.float64)
    elif options.kind == "span":
        weights = (1 - options.span_stop_rate) ** np.arange(options.max_span, dtype=np.float64)
    else:
        weights = np.ones(1)
    return np.asarray(weights / weights.sum())


@cache
def _summarise_groups(options: MaskingOptions) -> tuple[NDArray[np.float64], float]:
    """The cumulated p(n), and how many words a group has on average."""
    probabilities = group_probabilities(options)
    return np.cumsum(probabilities), float(probabilities @ np.arange(1, len(probabilities) + 1))


def _scratch(most: int) -> Scratch:
    return Scratch(
        np.zeros(1, np.uint64),
        np.empty(most, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.int8),
        np.empty(most, np.int8),
        np.empty(most, np.int64),
    )


@compiled
def _mask_sequences(
    token_ids: NDArray[np.int64],
    word_codes: NDArray[np.uint8],
    sequences: Sequences,
    kinds: tuple[Kind, Kind],
    token_share: float,
    vocabulary: Vocabulary,
    scratch: Scratch,
    targets: Targets,
) -> int:
    """Mask one sequence after another by the first kind, or by the second if it is one of the share."""
    count = 0
    for row in range(len(sequences.starts)):
        start, length = sequences.starts[row], sequences.lengths[row]
        scratch.state[0] = sequences.keys[row]
        rules, cumulated = kinds[0]
        if token_share > 0 and draw_unit(scratch.state) < token_share:
            rules, cumulated = kinds[1]
        num_words = find_words(word_codes[start : start + length], rules, scratch)
        if num_words:
            # a flag and not a function that is passed in: numba would compile that anew in every process
            if rules.fills_budget:
                choose_within_budget(num_words, length, rules, cumulated, vocabulary.ordinary_ids, scratch)
            else:
                choose_freely(num_words, rules, cumulated, vocabulary.ordinary_ids, scratch)
            count = _write_targets(token_ids, start, length, vocabulary.mask_id, scratch, targets, count)
    return count


@compiled
def _write_targets(
    token_ids: NDArray[np.int64],
    start: int,
    length: int,
    mask_id: int,
    scratch: Scratch,
    targets: Targets,
    count: int,
) -> int:
    """Replace the chosen tokens of one sequence and note them, from left to right."""
    for position in range(length):
        if scratch.groups[position] == 0:
            continue
        targets.positions[count] = start + position
        targets.labels[count] = token_ids[start + position]
        targets.groups[count] = scratch.groups[position]
        targets.sizes[count] = scratch.sizes[position]
        targets.actions[count] = scratch.actions[position]
        if scratch.actions[position] == 0:
            token_ids[start + position] = mask_id
        elif scratch.actions[position] == 1:
            token_ids[start + position] = scratch.random_ids[position]
        count += 1
    return count
