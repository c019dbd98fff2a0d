"""Masking: choosing which tokens a model must predict (n-grams, whole words, tokens or spans).

The four kinds are one algorithm with two parameters: what a word is, and how likely a group of n words is. By default
the number of groups reaches the rate on average and each group is placed where it fits, so that the share of masked
tokens and the shares of n are both as specified. The official algorithm fills a fixed budget instead, and drops or
shortens groups that do not fit (`fills_budget`).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from litebert.batches.masking_kernels import KeyedSpans, MaskRules, Scratch, Targets, Vocabulary, mask_sequences
from litebert.batches.options import MaskingOptions

ACTIONS = ("masked", "random", "kept")  # the names of MASKED, REPLACED, KEPT


def list_vocabulary(vocab_size: int, special_ids: frozenset[int], mask_id: int, options: MaskingOptions) -> Vocabulary:
    """The ids that a random replacement may have."""
    ids = np.arange(vocab_size)
    is_ordinary = options.random_from_all | ~np.isin(ids, sorted(special_ids))
    return Vocabulary(mask_id, ids[is_ordinary])


def mask_tokens(
    token_ids: NDArray[np.int64],
    word_codes: NDArray[np.uint8],
    spans: KeyedSpans,
    options: MaskingOptions,
    vocabulary: Vocabulary,
    *,
    rate: float,
) -> Targets:
    """Choose and replace tokens in place; `word_codes` are 1 where a word begins and 2 at special tokens."""
    cumulative, mean_words = _group_sizes(options)
    rules = MaskRules(
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
    single_tokens = rules._replace(splits_words=True, mean_words=1.0), np.ones(1)
    most, longest = int(spans.lengths.sum()), int(spans.lengths.max(initial=0))
    targets = Targets(
        positions=np.empty(most, np.int64),
        labels=np.empty(most, np.int64),
        groups=np.empty(most, np.int32),
        sizes=np.empty(most, np.int8),
        actions=np.empty(most, np.int8),
    )
    scratch = Scratch(
        state=np.zeros(1, np.uint64),
        tokens=np.empty(longest, np.int64),
        words=np.empty(longest + 1, np.int64),
        segment_ends=np.empty(longest, np.int64),
        order=np.empty(longest, np.int64),
        groups=np.empty(longest, np.int32),
        sizes=np.empty(longest, np.int8),
        actions=np.empty(longest, np.int8),
        random_ids=np.empty(longest, np.int64),
    )
    kinds = (rules, cumulative), single_tokens
    flat = token_ids.reshape(-1), word_codes.reshape(-1)
    count = mask_sequences(*flat, spans, kinds, options.token_share, vocabulary, scratch, targets)
    return Targets._make([column[:count] for column in targets])


@cache
def _group_sizes(options: MaskingOptions) -> tuple[NDArray[np.float64], float]:
    """The cumulative p(n) of the group sizes n = 1, 2, ..., and the mean of n."""
    if options.kind == "ngram":
        weights = 1 / np.arange(1, options.max_ngram + 1, dtype=np.float64)
    elif options.kind == "span":
        weights = (1 - options.span_stop_rate) ** np.arange(options.max_span, dtype=np.float64)
    else:
        weights = np.ones(1)
    probabilities = weights / weights.sum()
    return np.cumsum(probabilities), float(probabilities @ np.arange(1, len(probabilities) + 1))
