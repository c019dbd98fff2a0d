"""Batches by length: every group once, within the limit, and little padding whatever the lengths."""

from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from litebert.inference.engines.graphs import EngineName
from litebert.inference.session import Interrupted, Session, plan_batches
from litebert.model.engine import HeadInputs, HeadName
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
    """An engine whose output is its input, and which remembers how much it was given at once."""

    name: EngineName = "torch"
    batch_cost = 0

    def __init__(self, batch_tokens: int = 4096) -> None:
        self.sizes: list[int] = []
        self.batch_tokens = batch_tokens

    def can_exit(self, head: HeadName) -> bool:
        del head
        return False

    def run(self, head: HeadName, inputs: HeadInputs) -> Mapping[str, Tensor]:
        assert head == "conditional_span"
        assert inputs.allowed is not None
        self.sizes.append(inputs.token_ids.numel())
        return {"logits": inputs.token_ids + inputs.segment_ids, "sum": (inputs.mask & inputs.allowed).sum(1)}


def invent_windows() -> HeadInputs:
    token_ids = torch.arange(23 * 7).reshape(23, 7)
    return HeadInputs(token_ids, token_ids % 2, token_ids % 3 > 0, token_ids % 5 > 0)


def test_a_group_that_is_larger_than_a_batch_is_computed_in_slices() -> None:
    inputs, sliced, narrow = invent_windows(), Echo(35), Echo(3)
    expected = Echo().run("conditional_span", inputs)
    found = Session(sliced, pad_id=0).run("conditional_span", inputs)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert max(sliced.sizes) == 35
    Session(narrow, pad_id=0).run("conditional_span", inputs)
    assert narrow.sizes == [7] * 23


def test_a_session_stops_between_slices_when_nobody_waits() -> None:
    engine = Echo(35)
    with pytest.raises(Interrupted):
        Session(engine, pad_id=0, is_wanted=lambda: len(engine.sizes) < 2).run("conditional_span", invent_windows())
    assert len(engine.sizes) == 2
