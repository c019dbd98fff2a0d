"""The official ALBERT data algorithm in plain Python: what `compat = "google"` must equal.

Written against a `Source` of randomness, so that the same draws can be fed to both: Python's own generator for
comparing in distribution, or ours for comparing exactly.
"""

import random
from dataclasses import dataclass
from typing import Any, Protocol

Sentence = list[int]
Document = list[Sentence]
_MASK64 = 2**64 - 1


class Source(Protocol):
    def unit(self) -> float: ...
    def below(self, bound: int) -> int: ...
    def shuffle(self, values: list[Any]) -> None: ...


class PythonSource:
    """Python's own generator, its methods as they are: a wrapper around each would slow the benchmark down."""

    def __init__(self, seed: int) -> None:
        generator = random.Random(seed)
        self.unit = generator.random
        self.below = generator.randrange
        self.shuffle = generator.shuffle


class CounterSource:
    """splitmix64 in plain integers, written a second time from its definition."""

    def __init__(self, state: int) -> None:
        self._state = state

    def next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK64
        return mix(self._state)

    def unit(self) -> float:
        return (self.next() >> 11) / 2**53

    def below(self, bound: int) -> int:
        return (self.next() >> 32) * bound >> 32

    def shuffle(self, values: list[Any]) -> None:
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]


def mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK64
    return value ^ value >> 31


def combine(key: int, value: int) -> int:
    """The key of one thing among many, as litebert.batches.random_kernels has it."""
    spread = (value * 0x9E3779B97F4A7C15 + 0xBF58476D1CE4E5B9) & _MASK64
    return mix(mix((key + 0x9E3779B97F4A7C15) & _MASK64) ^ spread)


@dataclass(frozen=True)
class Pair:
    first: list[int]
    second: list[int]
    label: int


def make_pairs(
    documents: list[Document], index: int, source: Source, *, max_length: int, task: str, short_rate: float = 0.1
) -> list[Pair]:
    """The pairs of one document."""
    document = documents[index]
    most = max_length - 3
    target = most
    if source.unit() < short_rate:
        target = 2 + source.below(most - 1)
    pairs, chunk, length, position = [], [], 0, 0
    while position < len(document):
        chunk.append(document[position])
        length += len(document[position])
        if position == len(document) - 1 or length >= target:
            cut = 1 if len(chunk) == 1 else 1 + source.below(len(chunk) - 1)
            first = [token for sentence in chunk[:cut] for token in sentence]
            second: list[int] = []
            if len(chunk) == 1 or (task == "nsp" and source.unit() < 0.5):
                label = 1
                other = index
                for _ in range(10):
                    other = source.below(len(documents))
                    if other != index:
                        break
                start = source.below(len(documents[other]))
                for sentence in documents[other][start:]:
                    second += sentence
                    if len(second) >= target - len(first):
                        break
                position -= len(chunk) - cut
            else:
                second = [token for sentence in chunk[cut:] for token in sentence]
                label = 0
                if task == "sop" and source.unit() < 0.5:
                    label, first, second = 1, second, first
            _trim(first, second, most, source)
            pairs.append(Pair(first, second, label))
            chunk, length = [], 0
        position += 1
    return pairs


def _trim(first: list[int], second: list[int], most: int, source: Source) -> None:
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        del longer[0 if source.unit() < 0.5 else -1]


@dataclass(frozen=True)
class Masked:
    token_ids: list[int]
    positions: list[int]
    labels: list[int]
    group_sizes: list[int]  # words of each group, in the order they were drawn
    groups: list[list[int]]  # the positions of each


def mask(
    token_ids: list[int],
    is_word_start: list[bool],
    source: Source,
    *,
    special: set[int],
    mask_id: int,
    vocab_size: int,
    rate: float = 0.15,
    max_predictions: int = 20,
    max_ngram: int = 3,
) -> Masked:
    """N-gram masking of one sequence."""
    words: list[list[int]] = []
    for position, token in enumerate(token_ids):
        if token in special:
            continue
        if words and not is_word_start[position]:
            words[-1].append(position)
        else:
            words.append([position])
    weights = [1 / n for n in range(1, max_ngram + 1)]
    shares = [weight / sum(weights) for weight in weights]
    budget = min(max_predictions, max(1, round(len(token_ids) * rate)))
    starts = [[words[word : word + n] for n in range(1, max_ngram + 1)] for word in range(len(words))]
    source.shuffle(starts)
    output, covered, labels = list(token_ids), set(), {}
    groups, sizes = [], []
    for windows in starts:
        if len(labels) >= budget:
            break
        n = _draw_size(shares, source)
        chosen = [position for part in windows[n - 1] for position in part]
        while len(labels) + len(chosen) > budget and n > 1:
            n -= 1
            chosen = [position for part in windows[n - 1] for position in part]
        if len(labels) + len(chosen) > budget or covered & set(chosen):
            continue
        covered |= set(chosen)
        groups.append(chosen)
        sizes.append(len(windows[n - 1]))
        for position in chosen:
            labels[position] = token_ids[position]
            if source.unit() < 0.8:
                output[position] = mask_id
            elif source.unit() >= 0.5:
                output[position] = source.below(vocab_size)
    positions = sorted(labels)
    return Masked(output, positions, [labels[position] for position in positions], sizes, groups)


def _draw_size(shares: list[float], source: Source) -> int:
    point = source.unit()
    for n, upto in enumerate(_cumulate(shares), start=1):
        if point < upto:
            return n
    return len(shares)


def _cumulate(shares: list[float]) -> list[float]:
    return [sum(shares[: n + 1]) for n in range(len(shares))]
