"""What benchmarks/learning.py feeds its contender is what it says: the same pairs, masked as the library does."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from learners.theirs import Batches, Setting, rate_at

from litebert.core.runtime import Ranks

SETTING = Setting(batch=64, length=32, learning_rate=2e-3, warmup_share=0.25)


@pytest.fixture(scope="module")
def batches(tiny_corpus: Path) -> Batches:
    return Batches(tiny_corpus, SETTING, seed=1, ranks=Ranks())


def test_the_rate_climbs_to_its_peak_and_ends_at_nothing() -> None:
    assert [rate_at(share, SETTING) for share in (0, 0.125, 0.25, 0.625, 1, 1.01)] == pytest.approx(
        [0, 1e-3, 2e-3, 1e-3, 0, 0]
    )


def test_fifteen_percent_of_the_text_is_asked_for_and_half_of_the_pairs_are_swapped(batches: Batches) -> None:
    made = [batches.make(step) for step in range(20)]
    is_target = np.concatenate([batch["labels"].numpy().ravel() for batch in made]) >= 0
    num_text = sum(int(batch["attention_mask"].sum()) - 3 * len(batch["labels"]) for batch in made)
    spread = (0.15 * 0.85 / num_text) ** 0.5
    assert is_target.sum() / num_text == pytest.approx(0.15, abs=4 * spread)
    swapped = np.concatenate([batch["sentence_order_label"].numpy() for batch in made])
    assert swapped.mean() == pytest.approx(0.5, abs=4 * 0.5 / len(swapped) ** 0.5)


def test_what_is_asked_for_stood_in_our_own_text(batches: Batches) -> None:
    batch = batches.make(3)
    rows = batches.stream.rows(3)
    ours, theirs = rows.token_ids.copy().reshape(-1), batch["input_ids"].numpy().copy()
    ours[rows.targets.positions] = rows.targets.labels
    labels = batch["labels"].numpy()
    theirs[labels >= 0] = labels[labels >= 0]
    width = theirs.shape[1]  # no wider than its longest row
    assert np.array_equal(theirs, ours.reshape(rows.token_ids.shape)[:, :width])
    assert rows.plan.sequences.lengths.max() == width
    assert np.array_equal(batch["sentence_order_label"].numpy(), rows.plan.sequences.labels)


def test_two_processes_share_the_rows_of_one_batch(tiny_corpus: Path, batches: Batches) -> None:
    parts = [Batches(tiny_corpus, SETTING, seed=1, ranks=Ranks(rank, rank, 2)).make(3) for rank in range(2)]
    order = np.concatenate([part["sentence_order_label"].numpy() for part in parts])
    assert np.array_equal(order, batches.make(3)["sentence_order_label"].numpy())
