"""Batches by length: every group once, within the limit, and little padding whatever the lengths."""

from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from litebert.inference.outputs import InSlices, plan_batches
from litebert.model.reading import ReadHead, ReadInputs
from litebert.tasks.groups import Group, TokenSequence


def group_of(length: int) -> Group:
    return Group((TokenSequence(np.zeros(length, dtype=np.int32), length),))


@given(st.lists(st.integers(2, 512), max_size=200), st.integers(1, 5000))
def test_every_group_is_in_one_batch_within_the_limit(lengths: list[int], batch_tokens: int) -> None:
    batches = list(plan_batches([group_of(n) for n in lengths], batch_tokens))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) <= batch_tokens


@given(st.lists(st.integers(2, 40), min_size=1, max_size=9), st.integers(0, 60))
def test_no_other_batches_of_neighbours_in_length_cost_less(lengths: list[int], batch_cost: int) -> None:
    batches = list(plan_batches([group_of(n) for n in lengths], 4096, batch_cost))
    found = sum(batch_cost + len(batch) * max(lengths[n] for n in batch) for batch in batches)
    assert found == cheapest(sorted(lengths, reverse=True), batch_cost)


def cheapest(falling: list[int], batch_cost: int) -> int:
    """By trying every way to cut the row."""
    ways = product((False, True), repeat=len(falling) - 1)
    return min(
        sum(batch_cost + falling[start] * (end - start) for start, end in pairwise([0, *cuts, len(falling)]))
        for cuts in ([at for at, is_cut in enumerate(way, 1) if is_cut] for way in ways)
    )


def test_the_more_a_batch_costs_the_fewer_there_are() -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(2.9, 0.6, 128), 4, 128).astype(int).tolist()
    counts = [len(list(plan_batches([group_of(n) for n in lengths], 4096, cost))) for cost in (0, 8, 48, 10**6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == len(set(lengths))
    assert counts[-1] == -(-128 * max(lengths) // 4096)


class Echo:
    """A reader whose output is its input, and who remembers how much it was given at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def read(self, head: ReadHead, inputs: ReadInputs) -> Mapping[str, Tensor]:
        assert head == "conditional_span"
        assert inputs.allowed is not None
        self.sizes.append(inputs.token_ids.numel())
        return {"logits": inputs.token_ids + inputs.segment_ids, "sum": (inputs.mask & inputs.allowed).sum(1)}


def test_a_group_that_is_larger_than_a_batch_is_read_in_slices() -> None:
    token_ids = torch.arange(23 * 7).reshape(23, 7)
    mask = token_ids % 3 > 0
    inputs = ReadInputs(token_ids, token_ids % 2, mask, token_ids % 5 > 0)
    whole, sliced = Echo(), Echo()
    expected = whole.read("conditional_span", inputs)
    found = InSlices(sliced, 35).read("conditional_span", inputs)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert max(sliced.sizes) == 35
    InSlices(narrow := Echo(), 3).read("conditional_span", inputs)
    assert narrow.sizes == [7] * 23
