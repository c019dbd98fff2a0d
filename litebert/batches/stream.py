"""The stream of training batches: a pure function of (corpora, options, seed, step, rank, world size).

Resuming needs no saved state, and step one million costs no more than step one: the plan of an epoch follows from its
number, and is kept while its steps are read.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TypeVar

from litebert.batches.batch import Batch, build_batch
from litebert.batches.epoch import EpochPlan, EpochPlanner
from litebert.batches.masking import list_vocabulary
from litebert.batches.options import DataOptions, StreamOptions
from litebert.batches.row_kernels import SpecialIds
from litebert.batches.rows import RowPlan, Rows, RowWriter, Text, plan_rows
from litebert.batches.segments import outline_shards
from litebert.core.compiled import show_compiling
from litebert.core.errors import ConfigError, DataError
from litebert.corpus.shards import Corpus, Split, open_corpus
from litebert.text.tokenizer import Tokenizer, load_tokenizer

T = TypeVar("T")

_PLANS_KEPT = 2  # at the end of an epoch, worker threads read two of them
_AHEAD_PER_WORKER = 2


class Stream:
    """Batches by step. It caches the plans of the last epochs, which does not change what a batch is."""

    def __init__(
        self,
        corpora: Sequence[Corpus],
        tokenizer: Tokenizer,
        options: StreamOptions,
        *,
        weights: Sequence[float] = (),
    ) -> None:
        self.options = options
        self.special = SpecialIds(tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id)
        outlines = [outline_shards(corpus.shards) for corpus in corpora]
        self.planner = EpochPlanner(outlines, [str(corpus.path) for corpus in corpora], weights, options)
        self._writer = RowWriter(
            texts=[Text(corpus.shards, outline) for corpus, outline in zip(corpora, outlines, strict=True)],
            special=self.special,
            vocabulary=list_vocabulary(tokenizer.vocab_size, tokenizer.special_ids, tokenizer.mask_id, options.masking),
            masking=options.masking,
            separates_documents=options.segments.format == "full-sentences",
        )
        self._plans: OrderedDict[int, EpochPlan] = OrderedDict()
        self._lock = Lock()
        # Epochs differ slightly in length, because segmentation is random. All count as long as the first, so that the
        # epoch of a step can be computed: a longer one leaves out its last batches, a shorter one repeats its first.
        with show_compiling():
            self.steps_per_epoch = self.plan_epoch(0).num_batches
            self.rows(0)  # compiles the remaining functions, before the clock of a run starts

    def batch(self, step: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """This rank's share of the batch of a step; the shares of all ranks together are what one rank alone gets."""
        return build_batch(self.rows(step, rank=rank, world_size=world_size))

    def rows(self, step: int, *, rank: int = 0, world_size: int = 1) -> Rows:
        """The same as numpy arrays, with the masked tokens and why each was chosen."""
        plan = self.plan_step(step).take_share(rank, world_size)
        return self._writer.write(plan, rate=self.options.masking.rate_at(step))

    def micro_batches(self, step: int, *, micro_rows: int = 0, rank: int = 0, world_size: int = 1) -> list[Batch]:
        """This rank's share of a step as micro-batches of at most `micro_rows` rows (0: one micro-batch).

        All ranks get the same number of micro-batches, none of them empty. Where rows do not divide evenly, a
        micro-batch of one row may therefore have two.
        """
        plan = self.plan_step(step)
        share = plan.take_share(rank, world_size)
        batch = build_batch(self._writer.write(share, rate=self.options.masking.rate_at(step)))
        needed = -(-plan.num_rows // (micro_rows * world_size)) if micro_rows else 1
        per_rank = max(1, min(needed, plan.num_rows // world_size))
        numbers = range(rank * per_rank, (rank + 1) * per_rank + 1)  # among the micro-batches of all ranks
        return batch.split([plan.num_rows * k // (world_size * per_rank) - share.first_row for k in numbers])

    def iter_micro_batches(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        micro_rows: int = 0,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 1,
    ) -> Iterator[list[Batch]]:
        """The micro-batches of steps start..stop-1 (None: without end), prepared in advance by `workers` threads."""
        steps = count(start) if stop is None else range(start, stop)
        make = partial(self.micro_batches, micro_rows=micro_rows, rank=rank, world_size=world_size)
        return _prefetch(make, steps, workers)

    def plan_step(self, step: int) -> RowPlan:
        """Which sequences the batch of a step has on all ranks, and where they are in its rows."""
        plan = self.plan_epoch(step // self.steps_per_epoch)
        sequences = plan.batch(step % self.steps_per_epoch % plan.num_batches)
        return plan_rows(sequences, self.options.batch, self.options.segments.max_length)

    def plan_epoch(self, epoch: int) -> EpochPlan:
        """The batches of one epoch, planned when first needed."""
        with self._lock:
            if epoch not in self._plans:
                self._plans[epoch] = self.planner.plan_epoch(epoch)
            self._plans.move_to_end(epoch)
            while len(self._plans) > _PLANS_KEPT:
                self._plans.popitem(last=False)
            return self._plans[epoch]


def _prefetch(make: Callable[[int], T], steps: Iterable[int], workers: int) -> Iterator[T]:
    """`make(step)` for each step in order, computed in advance by threads; without workers, on demand."""
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
    """Open the corpora of a recipe, which must share a tokenizer and contain text. Nothing is planned yet."""
    if not data.corpora:
        raise ConfigError("no-corpus", "data.corpora is empty: name the corpus to read, such as data.corpora=my/corpus")
    corpora = tuple(open_corpus(Path(path), split) for path in data.corpora)
    for corpus in corpora:
        if corpus.tokenizer_fingerprint != corpora[0].tokenizer_fingerprint:
            raise DataError(
                "tokenizer-mismatch",
                f"{corpus.path} and {corpora[0].path} were built with different tokenizers; rebuild one of them",
            )
        if not corpus.num_documents:
            change = "smaller" if split == "train" else "larger"
            raise DataError(
                "empty-split",
                f"{corpus.path} has no document in its {split} split; rebuild it with a {change} validation share, "
                "or from more documents",
            )
    return corpora
