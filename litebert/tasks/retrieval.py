"""Comparing texts by their vectors: cosines of pairs, and the rank at which a search finds the right text.

A vector is a list of numbers, compared by the cosine, or a mapping from words to weights, compared by the product: the
BM25 baseline has one of those per text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Side = Sequence[float] | Mapping[str, float]
_ROWS = 1024  # queries that are compared at once


def compare_each(first: Sequence[Side], second: Sequence[Side]) -> NDArray[np.float64]:
    """The similarity of each of N vectors with its partner (N,)."""
    if isinstance(first[0], Mapping):
        return np.array([_multiply(one, other) for one, other in zip(first, second, strict=True)])
    return np.asarray((_normalize(first) * _normalize(second)).sum(1), dtype=np.float64)


def find_ranks(
    first: Sequence[Side],
    second: Sequence[Side],
    texts: Sequence[tuple[str, str]],
    others: Mapping[str, Side] | None = None,
) -> NDArray[np.int64]:
    """For each pair, the rank (from 1) of its second text among all distinct second texts and `others`.

    Texts are the same if their strings are. The other partners of the same first text are left out: they are right too.
    Of equally close texts the right one comes last, so that a model without an opinion does not look good.
    """
    candidates: dict[str, Side] = {text: vector for (_, text), vector in zip(texts, second, strict=True)}
    candidates |= {text: vector for text, vector in (others or {}).items() if text not in candidates}
    numbers = {text: number for number, text in enumerate(candidates)}
    partners: dict[str, list[int]] = {}
    for asking, found in texts:
        partners.setdefault(asking, []).append(numbers[found])
    search = _build_search(list(candidates.values()))
    ranks = np.zeros(len(texts), dtype=np.int64)
    for start in range(0, len(texts), _ROWS):
        scores = search(first[start : start + _ROWS])  # (rows, candidates)
        for row, (asking, found) in enumerate(texts[start : start + _ROWS]):
            right = scores[row, numbers[found]]
            rivals = scores[row] >= right
            rivals[partners[asking]] = False
            if asking != found and asking in numbers:  # a text is always closest to itself
                rivals[numbers[asking]] = False
            ranks[start + row] = 1 + int(rivals.sum())
    return ranks


def _build_search(candidates: Sequence[Side]) -> Callable[[Sequence[Side]], NDArray[np.float64]]:
    """A function from queries to their similarity with each candidate."""
    if not isinstance(candidates[0], Mapping):
        normal = _normalize(candidates)
        return lambda queries: _normalize(queries) @ normal.T
    postings: dict[str, tuple[list[int], list[float]]] = {}
    for number, vector in enumerate(candidates):
        assert isinstance(vector, Mapping)
        for word, weight in vector.items():
            places, weights = postings.setdefault(word, ([], []))
            places.append(number)
            weights.append(weight)
    arrays = {word: (np.array(places), np.array(weights)) for word, (places, weights) in postings.items()}

    def search(queries: Sequence[Side]) -> NDArray[np.float64]:
        scores = np.zeros((len(queries), len(candidates)))
        for row, query in enumerate(queries):
            assert isinstance(query, Mapping)
            for word, weight in query.items():
                if word in arrays:
                    places, weights = arrays[word]
                    scores[row, places] += weight * weights
        return scores

    return search


def _normalize(vectors: Sequence[Any]) -> NDArray[np.float64]:
    matrix = np.asarray(vectors, dtype=np.float64)
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12))


def _multiply(one: Any, other: Any) -> float:
    return float(sum(weight * other[word] for word, weight in one.items() if word in other))
