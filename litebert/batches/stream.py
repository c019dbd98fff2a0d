"""The stream of training batches: a pure function of (corpora, options, seed, step, rank, world size).

Nothing about the data has to be saved to go on exactly where a run stopped, and step one million costs what step one
does: an epoch's plan follows from its number, and it is kept while its steps are asked for.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from litebert.batches.batch import Batch, build_batch
from litebert.batches.epoch import EpochPlan, EpochPlanner, SequenceTable
from litebert.batches.masking import Sequences, list_vocabulary, mask_tokens
from litebert.batches.options import DataOptions, StreamOptions
from litebert.batches.rows import (
    Canvas,
    Layout,
    Rows,
    SpecialIds,
    Text,
    blank_canvas,
    draw_sequences,
    lay_out,
    take_part,
)
from litebert.batches.segments import HasOffsets, outline_shards
from litebert.core.compiled import compiling_shown
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import Corpus, Split, open_corpus
from litebert.text.tokenizer import load_tokenizer

T = TypeVar("T")

_PLANS_KEPT = 2  # at the end of an epoch, loader threads work on two
_AHEAD_PER_WORKER = 2


class HasShards(Protocol):
    """What of a corpus the stream reads."""

    @property
    def path(self) -> Path: ...
    @property
    def shards(self) -> Sequence["HasTextAndOffsets"]: ...


class HasTextAndOffsets(HasOffsets, Protocol):
    @property
    def token_ids(self) -> NDArray[np.generic]: ...
    @property
    def word_starts(self) -> NDArray[np.uint8]: ...


class HasIds(Protocol):
    """What of a tokenizer the stream reads."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def special_ids(self) -> frozenset[int]: ...
    @property
    def pad_id(self) -> int: ...
    @property
    def cls_id(self) -> int: ...
    @property
    def sep_id(self) -> int: ...
    @property
    def mask_id(self) -> int: ...


class Stream:
    """Batches by step. It keeps the plans of the last epochs, and nothing that changes what a batch is."""

    def __init__(
        self,
        corpora: Sequence[HasShards],
        tokenizer: HasIds,
        options: StreamOptions,
        *,
        weights: Sequence[float] = (),
    ) -> None:
        outlines = [outline_shards(tuple(corpus.shards)) for corpus in corpora]
        crosses = options.segments.format == "full-sentences"
        self.options = options
        self._texts = [
            Text(
                tuple(corpus.shards),
                outline.shard_starts,
                outline.sentence_starts[outline.document_starts[:-1]] if crosses else np.empty(0, np.int64),
            )
            for corpus, outline in zip(corpora, outlines, strict=True)
        ]
        self.special = SpecialIds(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id)
        self._vocabulary = list_vocabulary(
            tokenizer.vocab_size, tokenizer.special_ids, tokenizer.mask_id, options.masking
        )
        self._planner = EpochPlanner(
            outlines=outlines,
            names=[str(corpus.path) for corpus in corpora],
            weights=weights,
            options=options,
        )
        self._plans: OrderedDict[int, EpochPlan] = OrderedDict()
        self._lock = Lock()
        # Epochs differ a little in length, as chance cuts their text; all count as long as the first, so that the
        # epoch of a step can be computed. A longer one leaves out its last batches, a shorter one repeats its first.
        with compiling_shown():
            self.steps_per_epoch = self.plan_epoch(0).num_batches
            self.rows(0)  # compiles what is left, so that a run's clock starts after

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The part of this step's batch that belongs to a rank; the parts of all ranks are the batch of one.

        Accumulating gradients, a micro-batch is a rank too: `rank * micro_batches + number` of all of them.
        """
        return build_batch(self.rows(step, rank=rank, world_size=world_size))

    def iter_batches(
        self, start: int = 0, stop: int | None = None, *, rank: int = 0, world_size: int = 1, workers: int = 1
    ) -> Iterator[Batch]:
        """The batches of steps start..stop-1 (None: without end), made ahead by `workers` threads."""
        steps = count(start) if stop is None else range(start, stop)
        return _make_ahead(lambda step: self.batch(step, rank=rank, world_size=world_size), steps, workers)

    def iter_parts(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        micro_rows: int = 0,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 1,
    ) -> Iterator[list[Batch]]:
        """Each step's batch as the parts of at most `micro_rows` rows that a rank computes (0: one part a rank).

        All ranks have as many parts, none of them empty: parts of one row, where rows do not divide, may have two.
        """

        def make_parts(step: int) -> list[Batch]:
            num_rows = self._lay_out(step).num_rows
            wanted = -(-num_rows // (micro_rows * world_size)) if micro_rows else 1
            parts_per_rank = max(1, min(wanted, num_rows // world_size))
            first, total = rank * parts_per_rank, world_size * parts_per_rank
            return [self.batch(step, rank=first + part, world_size=total) for part in range(parts_per_rank)]

        return _make_ahead(make_parts, count(start) if stop is None else range(start, stop), workers)

    def rows(self, step: int, *, rank: int = 0, world_size: int = 1) -> Rows:
        """The same as numpy arrays, with what was chosen to be predicted and why."""
        sequences, layout = self._sequences(step), self._lay_out(step)
        if world_size > 1 or self.options.batch.is_packed:
            layout, chosen = take_part(layout, rank, world_size)
            sequences = sequences.take(chosen)
        canvas = self._draw(sequences, layout)
        targets = mask_tokens(
            canvas.token_ids,
            canvas.word_codes,
            Sequences(layout.starts, layout.lengths, sequences.mask_keys),
            self.options.masking,
            self._vocabulary,
            rate=self.options.masking.rate_at(step),
        )
        shape = layout.num_rows, layout.width
        return Rows(
            token_ids=canvas.token_ids.reshape(shape),
            segment_ids=canvas.segment_ids.reshape(shape),
            layout=layout,
            targets=targets,
            labels=sequences.labels,
            is_lead=sequences.is_lead,
            is_packed=self.options.batch.is_packed,
        )

    def _sequences(self, step: int) -> SequenceTable:
        plan = self.plan_epoch(step // self.steps_per_epoch)
        return plan.batch(step % self.steps_per_epoch % plan.num_batches)

    def _lay_out(self, step: int) -> Layout:
        return lay_out(self._sequences(step).lengths, self.options.batch, self.options.segments.max_length)

    def _draw(self, sequences: SequenceTable, layout: Layout) -> Canvas:
        canvas = blank_canvas(layout, self.special.pad_id)
        if len(self._texts) == 1:
            draw_sequences(self._texts[0], sequences.ranges, layout.starts, self.special, canvas)
            return canvas
        for corpus, text in enumerate(self._texts):
            own = sequences.corpora == corpus
            draw_sequences(text, sequences.ranges[own], layout.starts[own], self.special, canvas)
        return canvas

    def plan_epoch(self, epoch: int) -> EpochPlan:
        """The batches of one epoch, planned when first asked for."""
        with self._lock:
            if epoch not in self._plans:
                self._plans[epoch] = self._planner.plan_epoch(epoch)
            self._plans.move_to_end(epoch)
            while len(self._plans) > _PLANS_KEPT:
                self._plans.popitem(last=False)
            return self._plans[epoch]


def _make_ahead(make: Callable[[int], T], steps: Iterable[int], workers: int) -> Iterator[T]:
    """What `make` gives for each step, in order, made ahead by threads; without workers, when asked for."""
    if workers == 0:
        yield from map(make, steps)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="litebert-batches")
    pending: deque[Future[T]] = deque()
    try:
        for step in steps:
            pending.append(pool.submit(make, step))
            if len(pending) > _AHEAD_PER_WORKER * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def open_stream(
    data: DataOptions, options: StreamOptions, *, split: Split = "train"
) -> tuple[Stream, tuple[Corpus, ...]]:
    """Open the corpora of a recipe and the stream of their batches."""
    corpora = open_corpora(data, split)
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    return Stream(corpora, tokenizer, options, weights=data.weights), corpora


def open_corpora(data: DataOptions, split: Split = "train") -> tuple[Corpus, ...]:
    """Open the corpora of a recipe, which must share a tokenizer and hold text; nothing is read or planned yet."""
    if not data.corpora:
        raise ConfigError("data.corpora is empty: name the corpus to read, such as data.corpora=my/corpus")
    corpora = tuple(open_corpus(Path(path), split) for path in data.corpora)
    for corpus in corpora:
        if corpus.tokenizer_fingerprint != corpora[0].tokenizer_fingerprint:
            raise DataError(
                f"{corpus.path} and {corpora[0].path} were made with different tokenizers; build one of them again"
            )
        if not corpus.num_documents:
            change = "smaller" if split == "train" else "larger"
            remedy = f"build it with a {change} --valid-share, or from more documents"
            raise DataError(f"{corpus.path} has no document in its {split} split; {remedy}")
    return corpora
