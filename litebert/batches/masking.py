"""Choosing what a model must predict: n-grams, whole words, tokens or spans, and what is put in their place.

The four kinds are one algorithm with two facts: what a word is, and how likely a group of n words is. Our choice
draws a number of groups that covers the rate on average, each group's n from p(n), and puts each where it fits, so
that the share of masked tokens and the shares of n are both what the recipe says. The official choice fills a fixed
budget instead, and drops or shortens what does not fit (`fills_budget`).
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.batches.masking_kernels import ChoiceRules, Scratch, choose_freely, choose_within_budget, find_words
from litebert.batches.randomness import draw_unit
from litebert.core.compiled import compiled
from litebert.core.errors import ConfigError

_MAX_GROUP = 127  # words of a group are counted in 8 bits
ACTIONS = ("masked", "random", "kept")


@dataclass(frozen=True, kw_only=True)
class MaskingOptions:
    """What is hidden, and how. The last four are quirks of the official ALBERT data (see data/google.py)."""

    kind: Literal["ngram", "whole-word", "token", "span"] = "ngram"
    token_share: float = 0.0  # of the sequences: single tokens are hidden there, whatever the kind is
    rate: float = 0.15
    final_rate: float | None = None  # reached in a straight line over rate_steps; None: the rate stays
    rate_steps: int = 0
    max_ngram: int = 3  # p(n) is (1/n) / sum of 1/k
    span_stop_rate: float = 0.2  # spans: p(n) is geometric, cut at max_span (SpanBERT)
    max_span: int = 10
    mask_share: float = 0.8  # become [MASK]; random_share become another token; the rest stay
    random_share: float = 0.1
    replace_per: Literal["token", "ngram"] = "token"
    copies: int | None = None  # None: new in every pass (dynamic); K: K masks of the text in turn (static; BERT: 10)
    fills_budget: bool = False
    max_predictions: int | None = None  # only with fills_budget
    may_straddle: bool = False  # may a group go on behind a [SEP]?
    random_from_all: bool = False  # may a random token be [PAD], [CLS], ...?

    def __post_init__(self) -> None:
        names = ("token_share", "rate", "final_rate", "mask_share", "random_share")
        for name, share in ((name, getattr(self, name) or 0.0) for name in names):
            if not 0 <= share <= 1:
                raise ConfigError(f"masking.{name} = {share} is not a share between 0 and 1")
        if self.mask_share + self.random_share > 1:
            raise ConfigError(f"masking.mask_share + masking.random_share = {self.mask_share + self.random_share} > 1")
        if (self.final_rate is None) != (self.rate_steps == 0) or self.rate_steps < 0:
            raise ConfigError("masking.final_rate and masking.rate_steps go together: set both or neither")
        if self.final_rate is not None and self.copies is not None:
            raise ConfigError("masking.copies makes static masks, and masking.final_rate changes them with the step")
        if self.max_predictions is not None and not self.fills_budget:
            raise ConfigError("masking.max_predictions caps the official budget: it needs masking.fills_budget = true")
        counts = (self.max_ngram, self.max_span, self.copies, self.max_predictions)
        if any(count is not None and count < 1 for count in counts):
            raise ConfigError("masking: max_ngram, max_span, copies and max_predictions are at least 1")
        if max(self.max_ngram, self.max_span) > _MAX_GROUP:
            raise ConfigError(f"masking: max_ngram and max_span are at most {_MAX_GROUP} words")
        if not 0 < self.span_stop_rate < 1:
            raise ConfigError(f"masking.span_stop_rate = {self.span_stop_rate} is not between 0 and 1")

    def rate_at(self, step: int) -> float:
        """The share of tokens that is masked in the batch of this step."""
        if self.final_rate is None:
            return self.rate
        return self.rate + (self.final_rate - self.rate) * min(step / self.rate_steps, 1.0)

    def group_probabilities(self) -> NDArray[np.float64]:
        """p(n) for n = 1, 2, ...: how many words a group has."""
        if self.kind == "ngram":
            weights = 1 / np.arange(1, self.max_ngram + 1, dtype=np.float64)
        elif self.kind == "span":
            weights = (1 - self.span_stop_rate) ** np.arange(self.max_span, dtype=np.float64)
        else:
            weights = np.ones(1)
        return np.asarray(weights / weights.sum())


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


@cache
def _summarise_groups(options: MaskingOptions) -> tuple[NDArray[np.float64], float]:
    """The cumulated p(n), and how many words a group has on average."""
    probabilities = options.group_probabilities()
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
