"""Random numbers from named integers: every document and sequence has its own generator, so order does not matter.

The generator is splitmix64 (Steele, Lea and Flood 2014): a counter, and a mixing function that passes the usual
statistical batteries. Because it is a counter, seeding is free, which millions of small generators need.
"""

import numpy as np
from numpy.typing import NDArray

from litebert.core.compiled import compiled

State = NDArray[np.uint64]  # one element: the counter

# numba turns uint64 with a Python int into float64: every constant is typed
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(bits) for bits in (11, 27, 30, 31, 32))
_UNIT = 2.0**-53


def hash_integers(*values: int) -> np.uint64:
    """A key from named integers such as (seed, corpus, pass); another order or number gives another key."""
    key = np.zeros(1, np.uint64)
    for value in values:
        key[0] = combine(key[0], np.uint64(value & 0xFFFFFFFFFFFFFFFF))
    return np.uint64(key[0])


@compiled
def mix(value: np.uint64) -> np.uint64:
    """Spread the bits of a counter over all 64."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@compiled
def combine(key: np.uint64, value: np.uint64) -> np.uint64:
    """A key derived from `key` and a number."""
    return mix(mix(key + _STEP) ^ (value * _STEP + _FIRST))


@compiled
def derive_keys(key: np.uint64, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """`combine` of a key with each of many numbers."""
    keys = np.empty(len(numbers), np.uint64)
    for k in range(len(numbers)):
        keys[k] = combine(key, np.uint64(numbers[k]))
    return keys


@compiled
def draw(state: State) -> np.uint64:
    """The next 64 random bits."""
    state[0] += _STEP
    return mix(state[0])


@compiled
def draw_unit(state: State) -> float:
    """Uniform in [0, 1)."""
    return (draw(state) >> _11) * _UNIT


@compiled
def draw_below(state: State, bound: int) -> int:
    """Uniform in 0..bound-1 for bounds below 2**32; by multiplication, biased by less than bound / 2**32."""
    value: int = np.int64(((draw(state) >> _32) * np.uint64(bound)) >> _32)  # type: ignore[assignment]
    return value


@compiled
def permute(key: np.uint64, count: int) -> NDArray[np.int64]:
    """The numbers 0..count-1 in an order that depends on `key`; numpy's own may change from one version to the next."""
    state = np.zeros(1, np.uint64)
    state[0] = key
    numbers = np.arange(count)
    shuffle(state, numbers, count)
    return numbers


@compiled
def shuffle(state: State, values: NDArray[np.int64], count: int) -> None:
    """Shuffle the first `count` values in place (Fisher-Yates, from the end)."""
    for last in range(count - 1, 0, -1):
        other = draw_below(state, last + 1)
        values[last], values[other] = values[other], values[last]
