"""Groups in batches: nothing lost, little padded, and the same order for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.group_batch import build_group_batch, cut_micro_batches
from litebert.tasks.groups import Group, SequenceForm, TokenSequence, TuningPlan, share_room

FORM = SequenceForm(cls_id=2, sep_id=3, pad_id=0, max_length=12)


def cut_one_at_a_time(first: int, second: int, room: int) -> tuple[int, int]:
    """The official loop."""
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_a_pair_is_cut_as_by_the_official_loop(first: int, second: int, room: int) -> None:
    assert share_room(first, second, room) == cut_one_at_a_time(first, second, room)


def test_special_tokens_stand_around_one_text_and_between_two() -> None:
    assert FORM.join([10, 11]).token_ids.tolist() == [2, 10, 11, 3]
    pair = FORM.join([10, 11], [20])
    assert pair.token_ids.tolist() == [2, 10, 11, 3, 20, 3]
    assert pair.num_first == 4
    long = FORM.join(list(range(10, 30)), list(range(40, 60)))
    assert long.token_ids.tolist() == [2, 10, 11, 12, 13, 14, 3, 40, 41, 42, 43, 3]


def test_a_model_with_one_segment_has_two_separators_between_texts() -> None:
    form = SequenceForm(cls_id=0, sep_id=2, pad_id=1, max_length=12, num_segments=1)
    pair = form.join([10], [20])
    assert pair.token_ids.tolist() == [0, 10, 2, 2, 20, 2]
    assert pair.num_first == 6


def group_of(*lengths: int) -> Group:
    sequences = tuple(TokenSequence(np.full(length, 9, dtype=np.int32), min(length, 2)) for length in lengths)
    return Group(sequences, np.array(lengths))


def test_a_batch_has_the_rows_of_its_groups_in_order_and_their_targets_in_one_row() -> None:
    batch = build_group_batch([group_of(3, 5), group_of(4)], pad_id=1)
    assert batch.mask.sum(1).tolist() == [3, 5, 4]
    assert batch.token_ids[0].tolist() == [9, 9, 9, 1, 1]
    assert batch.segment_ids[0].tolist() == [0, 0, 1, 0, 0]
    assert batch.group_sizes.tolist() == [2, 1]
    assert batch.targets is not None
    assert batch.targets.tolist() == [3, 5, 4]


def test_micro_batches_hold_complete_groups_and_together_all_of_them() -> None:
    groups = [group_of(3, 3), group_of(4), group_of(5, 5, 5, 5), group_of(2)]
    parts = cut_micro_batches(groups, 3, pad_id=0)
    assert [part.group_sizes.tolist() for part in parts] == [[2, 1], [4], [1]]
    assert len(cut_micro_batches(groups, 0, pad_id=0)) == 1


@pytest.mark.parametrize("bucket_batches", [1, 4])
def test_an_epoch_reads_every_group_once_and_in_an_order_of_its_own(bucket_batches: int) -> None:
    widths = np.random.default_rng(0).integers(5, 60, 103)
    plan = TuningPlan(widths, batch_size=8, seed=5, bucket_batches=bucket_batches)
    first, again, second = plan.batches(0), plan.batches(0), plan.batches(1)
    assert sorted(np.concatenate(first)) == list(range(103))
    assert len(first) == plan.steps_per_epoch
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()


def test_sorting_inside_stretches_saves_most_of_the_padding() -> None:
    widths = np.random.default_rng(0).integers(5, 60, 1000)

    def padded(bucket_batches: int) -> int:
        plan = TuningPlan(widths, batch_size=16, seed=5, bucket_batches=bucket_batches)
        return sum(int((widths[batch].max() - widths[batch]).sum()) for batch in plan.batches(0))

    assert padded(16) < 0.2 * padded(1)
