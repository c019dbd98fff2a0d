"""`litebert.SearchIndex`: exact semantic search for the passages nearest to a query, by one matrix product.

index.json      the model, the options and the segments; sealed with a checksum
000001.*        segments (segment.py)

With vectors of width 128, a million passages take 140 MB in int8.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError
from litebert.core.sealed import build_record, read_sealed, write_sealed
from litebert.search.segment import Passage, Precision, Segment, SegmentRecord

if TYPE_CHECKING:
    from litebert.inference.predictor import Predictor

INDEX_FILE = "index.json"
_CANDIDATES = 5  # passages that a reranker scores per requested passage
# Embedded when an index is built, and by every model that searches it: another vector means another model
_PROBE = "The same text gives the same vector, or the model is another one."
_SAME = 0.98  # cosine; int8 and other engines stay above


@dataclass(frozen=True)
class IndexRecord:
    """The root file: how the passages were embedded, and their segments."""

    model: str  # the path or name that was given
    probe: tuple[float, ...]  # the model's vector of a fixed text
    precision: Precision
    passage_tokens: int
    segments: tuple[SegmentRecord, ...] = ()
    version: int = 1

    @property
    def num_passages(self) -> int:
        return sum(segment.num_passages - segment.num_removed for segment in self.segments)


@dataclass(frozen=True)
class Hit:
    """A search result; `score` is the cosine with the query, or the reranker's score."""

    score: float
    text: str
    document: str


class SearchIndex:
    """Semantic search over passages of text.

    index = litebert.SearchIndex("index")
    [hit.text for hit in index.search("Which book is about cats?", k=3)]
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, model: "str | os.PathLike[str] | Predictor | None" = None
    ) -> None:
        """Open an index; `model` replaces the recorded path, which may have moved, but must be the same model."""
        self.folder = Path(folder)
        self.record = read_index(self.folder)
        self._model = model

    def __len__(self) -> int:
        return self.record.num_passages

    def __repr__(self) -> str:
        return f"<SearchIndex {str(self.folder)!r}: {len(self):,} passages>"

    @cached_property
    def model(self) -> "Predictor":
        """The model that embeds queries; loaded when first used."""
        model = open_model(self._model or self.record.model)
        check_same_model(self.record, model, self.folder)
        return model

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments, with memory-mapped vectors; those that changed since they were last verified are verified."""
        segments = list_segments(self.folder, self.record)
        for segment in segments:
            segment.check()
        return segments

    def search(
        self, query: str, k: int = 5, *, reranker: "Predictor | None" = None, label: str | None = None
    ) -> list[Hit]:
        """The `k` passages nearest to a query, best first.

        A `reranker`, a model fine-tuned on (query, passage) pairs, selects them from five times as many: by its
        prediction if it is a regression model, by the probability of `label` if it is a classifier.
        """
        return self.search_batch([query], k, reranker=reranker, label=label)[0]

    def search_batch(
        self, queries: Sequence[str], k: int = 5, *, reranker: "Predictor | None" = None, label: str | None = None
    ) -> list[list[Hit]]:
        """`search` for many queries at once."""
        if k < 1:
            raise ConfigError("out-of-range", f"k must be 1 or more, got {k}", option="k")
        if not queries:
            return []
        found = self.search_vectors(embed(self.model, queries), k if reranker is None else _CANDIDATES * k)
        if reranker is None:
            return found
        return [rerank(reranker, query, hits, label)[:k] for query, hits in zip(queries, found, strict=True)]

    def search_vectors(self, vectors: NDArray[np.float32], k: int = 5) -> list[list[Hit]]:
        """The passages nearest to each of these unit vectors (N, H)."""
        scores = np.full((len(vectors), 0), -np.inf, np.float32)
        places = np.zeros((len(vectors), 0, 2), np.int64)  # segment and passage
        for number, segment in enumerate(self.segments):
            for start, block in segment.score(vectors):
                scores, places = _merge(scores, places, block.T, number, start, k)
        return [
            [self._read(float(score), place) for score, place in zip(*found, strict=True) if score > -np.inf]
            for found in zip(scores, places, strict=True)
        ]

    def _read(self, score: float, place: NDArray[np.int64]) -> Hit:
        (passage,) = self.segments[place[0]].read_passages([int(place[1])])
        return Hit(round(score, 6), passage.text, passage.document)

    def iter_passages(self) -> Iterable[Passage]:
        """All passages, in order."""
        for segment in self.segments:
            for _, passage in segment.iter_kept():
                yield passage


def _merge(
    scores: NDArray[np.float32],
    places: NDArray[np.int64],
    block: NDArray[np.float32],
    segment: int,
    start: int,
    k: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The best `k` of the results so far (N, k) and a block (N, rows); ties go to the earlier passage."""
    if block.shape[1] > k:
        # keep all that reach the k-th best score, so that ties are not broken arbitrarily
        least = np.partition(block, -k, axis=1)[:, -k]
        columns = np.flatnonzero((block >= least[:, None]).any(0))
        block, rows = block[:, columns], start + columns
    else:
        rows = np.arange(start, start + block.shape[1])
    here = np.stack([np.full(len(rows), segment), rows], axis=1)
    all_scores = np.concatenate([scores, block], axis=1)
    all_places = np.concatenate([places, np.broadcast_to(here, (len(block), *here.shape))], axis=1)
    best = np.argsort(-all_scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(all_scores, best, 1), np.take_along_axis(all_places, best[..., None], 1)


def rerank(model: "Predictor", query: str, hits: Sequence[Hit], label: str | None) -> list[Hit]:
    """The passages, sorted by the scores of a model for (query, passage) pairs."""
    if not hits:
        return []
    answers = model.classify([(query, hit.text) for hit in hits])
    labels = list(answers[0].probabilities)
    if labels and label not in labels:
        given = f"the reranking model has no label {label}" if label else "the reranking model is a classifier"
        raise ConfigError(
            "unknown-label",
            f"{given}: name the label that relevant passages have, one of {', '.join(labels)}",
            option="label",
        )
    scores = [answer.probabilities[label] if label and labels else float(answer.label) for answer in answers]
    order = sorted(range(len(hits)), key=lambda number: -scores[number])  # stable: ties keep the search order
    return [Hit(round(scores[number], 6), hits[number].text, hits[number].document) for number in order]


def read_index(folder: Path) -> IndexRecord:
    """Read the root file of an index."""
    file = folder / INDEX_FILE
    if not file.is_file():
        raise ConfigError(
            "missing-file", f"{folder} has no {INDEX_FILE}: is it an index? `litebert search index` makes one"
        )
    fix = "build the index again"
    record = build_record(IndexRecord, read_sealed(file, fix=fix), where=str(file), fix=fix)
    names = {segment.name for segment in record.segments}
    wrong = [
        *(f"segments.{key}" for segment in record.segments if (key := segment.find_contradiction())),
        *(["segments.name"] if len(names) < len(record.segments) else []),
        *([] if record.probe and np.isfinite(record.probe).all() else ["probe"]),
    ]
    if wrong:
        raise DataError("corrupt-file", f"{file} is corrupt: {wrong[0]} cannot be right; {fix}")
    return record


def list_segments(folder: Path, record: IndexRecord) -> list[Segment]:
    """The segments of an index, not opened yet."""
    return [Segment(folder, segment, len(record.probe), record.precision) for segment in record.segments]


def write_index(folder: Path, record: IndexRecord) -> None:
    """Write the root file atomically."""
    write_sealed(folder / INDEX_FILE, asdict(record))


def open_model(model: "str | os.PathLike[str] | Predictor") -> "Predictor":
    """The model itself, or the one loaded from a path."""
    from litebert.inference.predictor import Predictor, load

    return model if isinstance(model, Predictor) else load(model)


def embed(model: "Predictor", texts: Sequence[str], report_cut: Any = None) -> NDArray[np.float32]:
    """Unit vectors, even if the model does not normalize its own."""
    return model.embed(texts, normalize=True, report_cut=report_cut)


def make_probe(model: "Predictor") -> tuple[float, ...]:
    """The vector of a fixed text, which identifies a model."""
    return tuple(round(float(value), 5) for value in embed(model, [_PROBE])[0])


def check_same_model(record: IndexRecord, model: "Predictor", folder: Path) -> None:
    """Raise if the model's vectors are not those of the index."""
    probe = make_probe(model)
    likeness = float(np.dot(probe, record.probe)) if len(probe) == len(record.probe) else 0.0
    if likeness < _SAME:
        raise ConfigError(
            "wrong-model",
            f"{folder} was made with another model ({record.model}) than {model.checkpoint.path}: the vectors of a "
            f"fixed text have cosine {likeness:.2f}, not 1; use the model of the index, or build the index again",
            option="model",
        )
