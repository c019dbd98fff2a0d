"""The stream: a batch depends only on its step and rank."""

import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refuses
from scipy import stats
from toy_corpus import (
    FIRST,
    ToyCorpus,
    build_corpus,
    build_options,
    build_stream,
    random_documents,
    read_sequences,
    unmask,
)

from litebert.batches.batch import Batch
from litebert.batches.epoch import EpochPlanner
from litebert.batches.options import BatchOptions, DataOptions, MaskingOptions, SegmentOptions
from litebert.batches.segments import outline_shards
from litebert.batches.stream import Stream, open_corpora
from litebert.core.errors import ConfigError

CORPUS = build_corpus(random_documents(150), num_shards=3)
KINDS: list[dict[str, Any]] = [
    {},
    {"batch": BatchOptions(sequences=17, bucket=1)},
    {"batch": BatchOptions(tokens=900)},
    {"batch": BatchOptions(sequences=24, is_packed=True)},
    {
        "batch": BatchOptions(tokens=900, is_packed=True),
        "segments": SegmentOptions(format="sentence-pair", max_length=64),
    },
    {"segments": SegmentOptions(format="full-sentences", task="none", max_length=64)},
    {"segments": SegmentOptions(task="nsp", max_length=64), "masking": MaskingOptions(copies=2)},
]


def equal(one: Batch, other: Batch) -> bool:
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Batch)]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def join(parts: list[Batch]) -> Batch:
    """The batch of one rank from the parts of several: rows below each other, flat positions moved down."""
    above = np.cumsum([0, *(part.token_ids.numel() for part in parts)]).tolist()
    rows_above = np.cumsum([0, *(len(part.token_ids) for part in parts)]).tolist()
    assert [part.first_row for part in parts] == rows_above[:-1]
    joined: dict[str, Any] = {"first_row": 0}
    for field in [field for field in fields(Batch) if field.name not in joined]:
        values = [getattr(part, field.name) for part in parts]
        if field.name in ("first_tokens", "mlm_positions"):
            values = [value + moved for value, moved in zip(values, above[:-1], strict=True)]
        joined[field.name] = None if values[0] is None else torch.cat(values)
    return Batch(**joined)


@pytest.mark.parametrize("sections", KINDS)
def test_a_batch_asked_for_directly_is_the_one_reached_by_iteration(sections: dict[str, Any]) -> None:
    stop = 2 * build_stream(CORPUS, **sections).steps_per_epoch + 3
    reached = [batch for (batch,) in build_stream(CORPUS, **sections).iter_micro_batches(0, stop, workers=0)]
    for step in (0, 1, stop // 2, stop - 1):
        assert equal(build_stream(CORPUS, **sections).batch(step), reached[step])


@pytest.mark.parametrize("sections", KINDS)
def test_the_number_of_workers_changes_nothing(sections: dict[str, Any]) -> None:
    stream = build_stream(CORPUS, **sections)
    steps = range(3, stream.steps_per_epoch + 5)
    alone = [stream.batch(step) for step in steps]
    for workers in (1, 4):
        again = build_stream(CORPUS, **sections).iter_micro_batches(steps.start, steps.stop, workers=workers)
        others = [batch for (batch,) in again]
        assert len(others) == len(alone)
        assert all(map(equal, alone, others))


@pytest.mark.parametrize("sections", KINDS)
@pytest.mark.parametrize("world_size", [2, 4])
def test_the_parts_of_all_ranks_are_the_batch_of_one(sections: dict[str, Any], world_size: int) -> None:
    stream = build_stream(CORPUS, **sections)
    for step in (0, stream.steps_per_epoch):
        parts = [stream.batch(step, rank=rank, world_size=world_size) for rank in range(world_size)]
        assert equal(join(parts), stream.batch(step))
        rows = [len(part.token_ids) for part in parts]
        assert max(rows) - min(rows) <= 1


@pytest.mark.parametrize("sections", KINDS)
@pytest.mark.parametrize("rank", [0, 1])
def test_micro_batches_are_the_rows_of_the_rank_cut_in_order(sections: dict[str, Any], rank: int) -> None:
    stream = build_stream(CORPUS, **sections)
    micro_batches = next(stream.iter_micro_batches(2, 3, micro_rows=3, rank=rank, world_size=2, workers=0))
    assert len(micro_batches) > 1
    share = stream.batch(2, rank=rank, world_size=2)
    moved = [replace(batch, first_row=batch.first_row - share.first_row) for batch in micro_batches]
    assert equal(join(moved), replace(share, first_row=0))
    num_micro_batches = 2 * len(micro_batches)  # of both ranks: the same as if each were a rank of its own
    for number, batch in enumerate(micro_batches, start=rank * len(micro_batches)):
        assert equal(batch, stream.batch(2, rank=number, world_size=num_micro_batches))


@pytest.mark.parametrize("sections", KINDS)
def test_origins_name_the_text_of_each_sequence(sections: dict[str, Any]) -> None:
    other = build_corpus(random_documents(40, seed=1), first_id=FIRST + len(CORPUS.document_of))
    stream = build_stream(CORPUS, other, weights=(1.0, 2.0), **sections)
    step = stream.steps_per_epoch + 1  # of the second epoch
    origins = stream.batch(step).origins
    assert origins is not None
    assert set(origins[:, 0].tolist()) == {0, 1}
    for sequence, (corpus, segmentation, number) in zip(
        read_sequences(stream.rows(step)), origins.tolist(), strict=True
    ):
        first, first_stop, second, second_stop = (
            stream.planner.plan_segmentation(corpus, segmentation).ranges[number] + FIRST
        )
        base = len(CORPUS.document_of) if corpus else 0
        text = [*range(first + base, first_stop + base), *range(second + base, second_stop + base)]
        assert sequence[sequence >= FIRST].tolist() == text


@pytest.mark.parametrize("micro_rows", [0, 1, 2, 4])
@pytest.mark.parametrize("num_rows", [2, 9, 12])
def test_every_rank_computes_the_same_number_of_micro_batches(num_rows: int, micro_rows: int) -> None:
    stream = build_stream(CORPUS, batch=BatchOptions(sequences=num_rows))
    parts = [next(stream.iter_micro_batches(0, 1, micro_rows=micro_rows, rank=rank, world_size=2)) for rank in range(2)]
    assert len(parts[0]) == len(parts[1])
    assert equal(join([*parts[0], *parts[1]]), stream.batch(0))
    rows = [len(part.token_ids) for part in (*parts[0], *parts[1])]
    does_divide = num_rows % 2 == 0 or micro_rows != 1
    assert max(rows) <= (micro_rows or num_rows) + (0 if does_divide else 1)


def test_a_batch_of_fewer_rows_than_processes_is_refused_by_their_number() -> None:
    stream = build_stream(CORPUS, batch=BatchOptions(sequences=3))
    with refuses(ConfigError, "too-few-rows"):
        next(stream.iter_micro_batches(0, 1, micro_rows=1, rank=0, world_size=4))


def test_another_seed_or_epoch_gives_other_batches() -> None:
    stream = build_stream(CORPUS)
    assert not equal(stream.batch(0), stream.batch(stream.steps_per_epoch))
    assert not equal(stream.batch(0), build_stream(CORPUS, seed=2).batch(0))


def test_an_epoch_holds_every_sequence_of_a_pass_but_the_last_few() -> None:
    corpus = build_corpus([[5, 5]] * 403)  # one pair a document
    stream = build_stream(corpus, batch=BatchOptions(sequences=20))
    seen = [
        int(sequence[sequence >= FIRST].min() - FIRST) // 10
        for step in range(stream.steps_per_epoch)
        for sequence in read_sequences(stream.rows(step))
    ]
    assert stream.steps_per_epoch == 20
    assert len(seen) == len(set(seen)) == 400


def test_a_batch_that_would_hold_the_corpus_over_and_over_is_refused() -> None:
    corpus = build_corpus([[5, 5]] * 20)
    with refuses(ConfigError, "batch-too-large"):
        build_stream(corpus, batch=BatchOptions(sequences=1_000_000))


def test_sequences_come_in_random_order() -> None:
    corpus = build_corpus([[5, 5]] * 2000)
    rows = build_stream(corpus, batch=BatchOptions(sequences=1000)).rows(0)
    documents = [int(sequence[1] - FIRST) // 10 for sequence in read_sequences(rows)]
    assert abs(stats.spearmanr(np.arange(1000), documents).statistic) < 0.15


def test_a_far_step_costs_what_a_near_one_does() -> None:
    build_stream(CORPUS).batch(0)  # compiles
    elapsed = {}
    for step in (1, 10**6, 10**9):
        started_at = time.perf_counter()
        build_stream(CORPUS).batch(step)
        elapsed[step] = time.perf_counter() - started_at
    assert max(elapsed.values()) < 20 * elapsed[1] + 0.2


def test_corpora_are_mixed_by_weight() -> None:
    small, large = build_corpus([[5, 5]] * 100), build_corpus([[5, 5]] * 900, first_id=FIRST + 1000)

    def share_of_small(weights: tuple[float, ...]) -> float:
        stream = build_stream(small, large, weights=weights, batch=BatchOptions(sequences=50))
        first = [unmask(stream.rows(step)).reshape(50, -1)[:, 1] for step in range(stream.steps_per_epoch)]
        return float((np.concatenate(first) < FIRST + 1000).mean())

    assert share_of_small(()) == pytest.approx(0.1)
    assert share_of_small((3.0, 1.0)) == pytest.approx(0.75)


@pytest.mark.parametrize("weights", [(1, 19), (19, 1), (1, 1)])
@pytest.mark.parametrize(
    "batch", [BatchOptions(tokens=20_000), BatchOptions(sequences=300)], ids=["tokens", "sequences"]
)
def test_an_epoch_by_weight_fills_a_batch(weights: tuple[float, ...], batch: BatchOptions) -> None:
    long, short = build_corpus([[20, 20]] * 200), build_corpus([[2, 2]] * 200, first_id=FIRST + 8000)
    stream = build_stream(long, short, weights=weights, batch=batch)
    assert stream.steps_per_epoch >= 1
    assert stream.batch(0).mask.any()


def test_a_weighted_corpus_continues_where_the_last_epoch_ended() -> None:
    small, large = build_corpus([[5, 5]] * 100), build_corpus([[5, 5]] * 900, first_id=FIRST + 1000)
    stream = build_stream(small, large, weights=(9, 1), batch=BatchOptions(sequences=50))
    seen: list[int] = []
    for step in range(9 * stream.steps_per_epoch):  # nine epochs of 100 sequences are one pass over the large one
        first = unmask(stream.rows(step)).reshape(50, -1)[:, 1]
        seen += ((first[first >= FIRST + 1000] - FIRST - 1000) // 10).tolist()
    assert len(seen) == len(set(seen)) == 900


def test_an_epoch_shorter_than_a_batch_is_repeated_until_it_fills_one() -> None:
    stream = build_stream(build_corpus([[5, 5]] * 3), batch=BatchOptions(sequences=8))
    assert stream.steps_per_epoch == 1
    assert stream.batch(0).num_sequences == 8


def test_batches_by_tokens_have_about_that_many_in_every_format() -> None:
    corpus = build_corpus(random_documents(2000))
    sizes = {}
    for layout in ("segment-pair", "sentence-pair"):
        options = SegmentOptions(format=layout, max_length=128)  # type: ignore[arg-type]
        stream = build_stream(corpus, segments=options, batch=BatchOptions(tokens=4000))
        batches = [stream.batch(step) for step in range(10)]
        assert all(3800 < int(batch.mask.sum()) <= 4000 for batch in batches)
        sizes[layout] = np.mean([batch.num_sequences for batch in batches])
    assert sizes["sentence-pair"] > 1.5 * sizes["segment-pair"]


def efficiency(stream: Stream) -> float:
    rows = [stream.rows(step) for step in range(stream.steps_per_epoch)]
    return float(np.mean([r.plan.sequences.lengths.sum() / r.token_ids.size for r in rows]))


def test_buckets_and_packing_save_padding() -> None:
    corpus = build_corpus(random_documents(1500))
    segments = SegmentOptions(format="sentence-pair", max_length=96)
    plain, bucketed, packed = (
        efficiency(build_stream(corpus, segments=segments, batch=BatchOptions(sequences=32, **options)))  # type: ignore[arg-type]
        for options in ({"bucket": 1}, {"bucket": 16}, {"is_packed": True})
    )
    assert plain < 0.7
    assert bucketed > 0.85
    assert packed > 0.9


def test_packed_rows_number_their_sequences_and_positions() -> None:
    segments = SegmentOptions(max_length=64, short_rate=0.7)
    batch = build_stream(CORPUS, segments=segments, batch=BatchOptions(sequences=24, is_packed=True)).batch(0)
    assert batch.sequence_ids is not None
    assert batch.position_ids is not None
    assert len(batch.token_ids) < batch.num_sequences == 24
    assert torch.equal(batch.mask, batch.sequence_ids > 0)
    flat = batch.position_ids.flatten()
    assert (flat[batch.first_tokens] == 0).all()
    begins = batch.sequence_ids.diff(dim=1, prepend=torch.zeros(len(batch.mask), 1, dtype=torch.int64)) > 0
    assert begins.flatten().nonzero().flatten().tolist() == batch.first_tokens.tolist()
    steps = batch.position_ids[:, 1:] - batch.position_ids[:, :-1]
    assert (steps[batch.mask[:, 1:] & ~begins[:, 1:]] == 1).all()


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    with refuses(ConfigError, "too-few-rows"):
        build_stream(CORPUS, batch=BatchOptions(sequences=3)).batch(0, rank=0, world_size=4)


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: BatchOptions(), "conflicting-options"),
        (lambda: BatchOptions(sequences=1, tokens=1), "conflicting-options"),
        (lambda: BatchOptions(sequences=1, bucket=0), "out-of-range"),
        (lambda: open_corpora(DataOptions(corpora=())), "no-corpus"),
        (lambda: DataOptions(corpora=("a", "b"), weights=(1.0,)), "conflicting-options"),
        (lambda: DataOptions(corpora=("a",), weights=(0.0,)), "out-of-range"),
        (lambda: DataOptions(corpora=("a",), workers=-1), "out-of-range"),
        (lambda: build_stream(CORPUS, batch=BatchOptions(tokens=10)), "conflicting-options"),
    ],
)
def test_impossible_batches_are_refused(build: Any, code: str) -> None:
    with refuses(ConfigError, code):
        build()


def test_a_reader_that_stops_early_leaves_no_thread_behind() -> None:
    import threading

    batches = build_stream(CORPUS).iter_micro_batches(workers=2)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("litebert-batches")]


def test_token_ids_of_two_and_four_bytes_give_the_same_batches() -> None:
    narrow = ToyCorpus(
        tuple(
            type(s)(s.token_ids.astype(np.uint16), s.word_starts, s.sentence_offsets, s.document_offsets)
            for s in CORPUS.shards
        ),  # type: ignore[arg-type]
        CORPUS.documents,
        CORPUS.is_word_start,
    )
    assert equal(build_stream(narrow).batch(2), build_stream(CORPUS).batch(2))


def masks_by_sequence(epoch: int, segments: SegmentOptions, masking: MaskingOptions) -> dict[tuple[int, ...], int]:
    """The sequences of an epoch by where they lie in the text, each with the generator of its masks."""
    options = build_options(segments=segments, masking=masking, batch=BatchOptions(sequences=1, bucket=1))
    table = EpochPlanner([outline_shards(CORPUS.shards)], ["toy"], (), options).plan_epoch(epoch).sequences
    return dict(zip(map(tuple, table.ranges.tolist()), table.mask_keys.tolist(), strict=True))


def test_static_masks_keep_their_segmentation_unless_copies_are_set() -> None:
    dynamic, static = MaskingOptions(), MaskingOptions(copies=1)
    always_new, once = SegmentOptions(task="nsp", max_length=64), SegmentOptions(task="nsp", max_length=64, copies=1)
    assert masks_by_sequence(0, always_new, static) == masks_by_sequence(1, once, static)
    first, second = (masks_by_sequence(epoch, once, dynamic) for epoch in (0, 1))
    assert first.keys() == second.keys()
    assert not set(first.values()) & set(second.values())
    first, second = (masks_by_sequence(epoch, always_new, dynamic) for epoch in (0, 1))
    assert len(first.keys() & second.keys()) < len(first) / 2
