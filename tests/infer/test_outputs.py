"""Batches by length: every group once, within the limit, and little padding whatever the lengths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.groups import Group, TokenSequence
from litebert.infer.outputs import plan_batches


def group_of(length: int) -> Group:
    return Group((TokenSequence(np.zeros(length, dtype=np.int32), length),))


@given(st.lists(st.integers(2, 512), max_size=200), st.integers(1, 5000))
def test_every_group_is_in_one_batch_within_the_limit(lengths: list[int], batch_tokens: int) -> None:
    batches = list(plan_batches([group_of(n) for n in lengths], batch_tokens))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) <= batch_tokens


def test_little_is_padded() -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(2.9, 0.6, 128), 4, 128).astype(int).tolist()
    batches = list(plan_batches([group_of(n) for n in lengths], 4096))
    padded = sum(len(batch) * max(lengths[n] for n in batch) for batch in batches)
    assert padded < 1.12 * sum(lengths)
    assert len(batches) < 16
