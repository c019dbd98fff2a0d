"""Randomness from named integers: the right generator, uniform, and different for every name."""

import numpy as np
from official_data import CounterSource
from official_data import combine as combine_slowly
from scipy import stats

from litebert.batches.random_kernels import combine, draw, draw_below, draw_unit, hash_integers, mix, shuffle


def test_the_mixer_is_splitmix64() -> None:
    # the first outputs of the published generator for seed 1234567
    state = np.array([1234567], np.uint64)
    assert [int(draw(state)) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_draws_equal_a_second_implementation() -> None:
    state, source = np.array([42], np.uint64), CounterSource(42)
    assert [int(draw(state)) for _ in range(5)] == [source.next() for _ in range(5)]
    assert [draw_unit(state) for _ in range(5)] == [source.unit() for _ in range(5)]
    assert [draw_below(state, 7) for _ in range(50)] == [source.below(7) for _ in range(50)]
    assert int(combine(np.uint64(5), np.uint64(9))) == combine_slowly(5, 9)


def test_first_draws_of_neighbouring_keys_are_even_and_unrelated() -> None:
    key = hash_integers(1)
    firsts = np.array([draw_unit(np.array([combine(key, np.uint64(k))], np.uint64)) for k in range(20_000)])
    assert stats.kstest(firsts, "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(firsts[1:], firsts[:-1])[0, 1]) < 0.03


def test_keys_depend_on_the_order_and_number_of_integers() -> None:
    keys = {int(hash_integers(*names)) for names in [(), (0,), (0, 0), (1, 2), (2, 1), (12,), (-1,), (1, 2, 0)]}
    assert len(keys) == 8
    assert int(mix(np.uint64(0))) == 0


def test_shuffles_are_even() -> None:
    state = np.array([3], np.uint64)
    counts = np.zeros((4, 4))
    for _ in range(8000):
        values = np.arange(4)
        shuffle(state, values, 4)
        counts[np.arange(4), values] += 1
    assert stats.chisquare(counts.flatten()).pvalue > 1e-6
