"""The stream of training batches: a pure function of (corpora, options, seed, step, rank, world size).

Nothing about the data has to be saved to go on exactly where a run stopped, and step one million costs what step one
does: an epoch's plan follows from its number, and it is kept while its steps are asked for.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.core.errors import ConfigError, DataError
from litebert.data.batch import Batch, build_batch
from litebert.data.epoch import BatchOptions, EpochPlan, EpochPlanner
from litebert.data.masking import MaskingOptions, Sequences, list_vocabulary, mask_tokens
from litebert.data.rows import Rows, SpecialIds, Text, blank_canvas, draw_sequences, lay_out, take_part
from litebert.data.segments import HasOffsets, SegmentOptions, outline_shards
from litebert.data.shards import Corpus, Split, open_corpus

_PLANS_KEPT = 2  # at the end of an epoch, loader threads work on two
_AHEAD_PER_WORKER = 2


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which text is read."""

    corpora: tuple[str, ...]
    weights: tuple[float, ...] = ()  # share of sequences from each corpus; empty: each is read once an epoch
    workers: int = 1  # threads that make batches ahead; the batches do not depend on it

    def __post_init__(self) -> None:
        if not self.corpora:
            raise ConfigError("data.corpora is empty: name at least one corpus directory")
        if self.weights and len(self.weights) != len(self.corpora):
            raise ConfigError(f"data.weights has {len(self.weights)} numbers for {len(self.corpora)} data.corpora")
        if any(weight <= 0 for weight in self.weights):
            raise ConfigError(f"data.weights = {list(self.weights)}: each must be greater than 0")
        if self.workers < 0:
            raise ConfigError(f"data.workers = {self.workers} cannot be negative")


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


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """All that decides what is in a batch, apart from the text."""

    segments: SegmentOptions
    masking: MaskingOptions
    batch: BatchOptions
    seed: int

    def __post_init__(self) -> None:
        if 0 < self.batch.tokens < self.segments.max_length:
            raise ConfigError(
                f"batch.tokens = {self.batch.tokens} is less than one sequence of "
                f"segments.max_length = {self.segments.max_length}"
            )


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
        self._special = SpecialIds(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id)
        self._vocabulary = list_vocabulary(
            tokenizer.vocab_size, tokenizer.special_ids, tokenizer.mask_id, options.masking
        )
        self._planner = EpochPlanner(
            outlines=outlines,
            names=[str(corpus.path) for corpus in corpora],
            weights=weights,
            segments=options.segments,
            batch=options.batch,
            copies=options.masking.copies,
            seed=options.seed,
        )
        self._plans: OrderedDict[int, EpochPlan] = OrderedDict()
        self._lock = Lock()
        # Epochs differ a little in length, as chance cuts their text; all count as long as the first, so that the
        # epoch of a step can be computed. A longer one leaves out its last batches, a shorter one repeats its first.
        self.steps_per_epoch = self.plan_epoch(0).num_batches

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The part of this step's batch that belongs to a rank; the parts of all ranks are the batch of one."""
        return build_batch(self.rows(step, rank=rank, world_size=world_size))

    def iter_batches(
        self, start: int = 0, stop: int | None = None, *, rank: int = 0, world_size: int = 1, workers: int = 1
    ) -> Iterator[Batch]:
        """The batches of steps start..stop-1 (None: without end), made ahead by `workers` threads."""
        steps = iter(count(start) if stop is None else range(start, stop))
        if workers == 0:
            yield from (self.batch(step, rank=rank, world_size=world_size) for step in steps)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="litebert-batches")
        pending: deque[Future[Batch]] = deque()
        try:
            for step in steps:
                pending.append(pool.submit(self.batch, step, rank=rank, world_size=world_size))
                if len(pending) > _AHEAD_PER_WORKER * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def rows(self, step: int, *, rank: int = 0, world_size: int = 1) -> Rows:
        """The same as numpy arrays, with what was chosen to be predicted and why."""
        plan = self.plan_epoch(step // self.steps_per_epoch)
        number = step % self.steps_per_epoch % plan.num_batches
        whole = lay_out(plan.batch(number).lengths, self.options.batch, self.options.segments.max_length)
        layout, chosen = take_part(whole, rank, world_size)
        sequences = plan.batch(number).take(chosen)
        canvas = blank_canvas(layout, self._special.pad_id)
        for corpus in np.unique(sequences.corpora):
            own = sequences.corpora == corpus
            draw_sequences(self._texts[corpus], sequences.ranges[own], layout.starts[own], self._special, canvas)
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

    def plan_epoch(self, epoch: int) -> EpochPlan:
        """The batches of one epoch, planned when first asked for."""
        with self._lock:
            if epoch not in self._plans:
                self._plans[epoch] = self._planner.plan_epoch(epoch)
            self._plans.move_to_end(epoch)
            while len(self._plans) > _PLANS_KEPT:
                self._plans.popitem(last=False)
            return self._plans[epoch]


def open_stream(
    data: DataOptions, options: StreamOptions, *, split: Split = "train"
) -> tuple[Stream, tuple[Corpus, ...]]:
    """Open the corpora of a recipe, which must share a tokenizer, and the stream of their batches."""
    from litebert.text.tokenizer import load_tokenizer

    corpora = tuple(open_corpus(Path(path), split) for path in data.corpora)
    for corpus in corpora:
        if corpus.tokenizer_fingerprint != corpora[0].tokenizer_fingerprint:
            raise DataError(
                f"{corpus.path} and {corpora[0].path} were made with different tokenizers; build one of them again"
            )
        if not corpus.num_documents:
            raise DataError(f"{corpus.path} has no document in its {split} split; build it with a larger share")
    tokenizer = load_tokenizer(corpora[0].tokenizer_path)
    return Stream(corpora, tokenizer, options, weights=data.weights), corpora
