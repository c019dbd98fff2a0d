"""Inspecting batches: examples show what happened to each token, statistics count it."""

import numpy as np
import pytest
from toy_corpus import FIRST, MASK, build_corpus, build_stream, random_documents, unmask

from litebert.batches.inspection import measure_batches, read_examples
from litebert.batches.options import BatchOptions, SegmentOptions

CORPUS = build_corpus(random_documents(200))


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_example_shows_what_happened_to_each_token(is_packed: bool) -> None:
    batch = BatchOptions(sequences=12, is_packed=is_packed)
    rows = build_stream(CORPUS, segments=SegmentOptions(max_length=64, short_rate=0.6), batch=batch).rows(0)
    examples = read_examples(rows)
    assert len(examples) == 12
    assert sum(len(group.positions) for example in examples for group in example.groups) == len(rows.targets.labels)
    for example, label in zip(examples, rows.plan.sequences.labels, strict=True):
        actions = {
            place: action
            for group in example.groups
            for place, action in zip(group.positions, group.actions, strict=True)
        }
        assert example.label == label
        for place, (before, after) in enumerate(zip(example.original_ids, example.token_ids, strict=True)):
            action = actions.get(place, "untouched")
            assert (after == MASK) == (action == "masked")
            assert after == before or action in ("masked", "random")


def test_statistics_are_those_of_the_batches() -> None:
    stream = build_stream(CORPUS)
    found = measure_batches(stream, 5)
    rows = [stream.rows(step) for step in range(5)]
    assert found.num_sequences == 80
    assert found.label_counts == tuple(np.bincount(np.concatenate([r.plan.sequences.labels for r in rows])).tolist())
    assert found.num_targets == sum(found.action_counts) == sum(len(r.targets.labels) for r in rows)
    text = sum(int((unmask(r) >= FIRST).sum()) for r in rows)
    assert found.masked_share == pytest.approx(found.num_targets / text)
    assert found.padding_efficiency == pytest.approx(
        sum(int(r.plan.sequences.lengths.sum()) for r in rows) / sum(r.token_ids.size for r in rows)
    )
    groups = sum(len(example.groups) for r in rows for example in read_examples(r))
    assert sum(found.group_counts) == groups
