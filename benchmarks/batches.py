"""Creating training batches: ours compared with the official algorithm in plain Python, planning, and share of a step.

The text is synthetic, with the sentence and document lengths of English Wikipedia. Runs of both are interleaved and the
median ratio is reported, because absolute speeds drift on a shared machine.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "batches"))
from official_data import PythonSource, make_pairs, mask

from litebert.batches.google import GOOGLE
from litebert.batches.options import BatchOptions, MaskingOptions, SegmentOptions, StreamOptions
from litebert.batches.random_kernels import hash_integers
from litebert.batches.segments import outline_shards, plan_segments
from litebert.batches.stream import Stream
from litebert.corpus.shards import offsets

VOCABULARY = 30_000
SPECIAL = set(range(5))
ROUNDS = 5


def synthesise(num_tokens: int, *, with_text: bool = True) -> Any:
    """A shard in memory: sentences of about 27 tokens, documents of about 13 sentences, both with a wide spread."""
    rng = np.random.default_rng(0)
    sentences = np.clip(rng.lognormal(3.1, 0.6, num_tokens // 26), 2, 400).astype(np.int64)
    documents = np.clip(rng.lognormal(2.1, 0.9, len(sentences) // 12), 1, 500).astype(np.int64)
    documents = documents[: np.searchsorted(np.cumsum(documents), len(sentences))]
    sentences = sentences[: documents.sum()]
    size = int(sentences.sum()) if with_text else 8
    return SimpleNamespace(
        token_ids=rng.integers(5, VOCABULARY, size).astype(np.uint16),
        word_starts=np.packbits(rng.random(size) < 0.8, bitorder="little"),
        sentence_offsets=offsets(sentences),
        document_offsets=offsets(documents),
    )


def make_stream(shard: Any, max_length: int, sequences: int, *, google: bool = False) -> Stream:
    tokenizer = SimpleNamespace(
        vocab_size=VOCABULARY, special_ids=frozenset(SPECIAL), pad_id=0, cls_id=2, sep_id=3, mask_id=4
    )
    options = StreamOptions(
        segments=SegmentOptions(max_length=max_length, **(GOOGLE["segments"] if google else {})),
        masking=MaskingOptions(**({**GOOGLE["masking"], "max_predictions": 77} if google else {})),
        batch=BatchOptions(sequences=sequences),
        seed=1,
    )
    corpus = SimpleNamespace(path=Path("synthetic"), shards=(shard,))
    return Stream([corpus], tokenizer, options)


def make_officially(documents: list[list[list[int]]], starts: list[bool], max_length: int, source: PythonSource) -> int:
    """Create padded instances of all documents as the official script does; returns their number."""
    count = 0
    for index in range(len(documents)):
        for pair in make_pairs(documents, index, source, max_length=max_length, task="sop"):
            token_ids = [2, *pair.first, 3, *pair.second, 3]
            begins = [starts[token] for token in token_ids]
            mask(token_ids, begins, source, special=SPECIAL, mask_id=4, vocab_size=VOCABULARY, max_predictions=77)
            padding = [0] * (max_length - len(token_ids))
            _ = token_ids + padding, [1] * len(token_ids) + padding
            _ = [0] * (len(pair.first) + 2) + [1] * (len(pair.second) + 1) + padding
            count += 1
    return count


def rate_of(run: Callable[[], int]) -> float:
    started_at = time.thread_time()
    count = run()
    return count / (time.thread_time() - started_at)


def compare(max_length: int, sequences: int) -> None:
    shard = synthesise(8_000_000)
    bounds, ids = shard.sentence_offsets.tolist(), shard.token_ids.tolist()
    documents = [
        [ids[bounds[s] : bounds[s + 1]] for s in range(first, stop)]
        for first, stop in zip(shard.document_offsets[:150], shard.document_offsets[1:151], strict=True)
    ]
    starts = (np.random.default_rng(1).random(VOCABULARY) < 0.8).tolist()
    source = PythonSource(1)
    ours = {name: make_stream(shard, max_length, sequences, google=name == "google") for name in ("default", "google")}

    def make_batches(stream: Stream) -> int:
        return sum(stream.batch(step).num_sequences for step in range(4096 // sequences))

    rates: dict[str, list[float]] = {"official": [], "default": [], "google": []}
    for stream in ours.values():
        make_batches(stream)
    for _ in range(ROUNDS):
        rates["official"].append(rate_of(lambda: make_officially(documents, starts, max_length, source)))
        for name, stream in ours.items():
            rates[name].append(rate_of(lambda stream=stream: make_batches(stream)))  # type: ignore[misc]
    line = (
        f"length {max_length}, batches of {sequences}: official in Python {median(rates['official']):,.0f} instances/s"
    )
    for name in ours:
        ratio = median(fast / slow for fast, slow in zip(rates[name], rates["official"], strict=True))
        line += f"; ours ({name}) {median(rates[name]):,.0f}/s, x{ratio:,.0f}"
    print(line)


def time_planning() -> None:
    shard = synthesise(100_000_000, with_text=False)
    outline = outline_shards((shard,))
    for task in ("sop", "nsp"):
        options = SegmentOptions(task=task, max_length=128)  # type: ignore[arg-type]
        plan_segments(outline, options, hash_integers(0))
        started_at = time.thread_time()
        plan = plan_segments(outline, options, hash_integers(1))
        elapsed = time.thread_time() - started_at
        num_bytes = sum(column.nbytes for column in vars(plan).values())
        print(
            f"planning a pass over {shard.sentence_offsets[-1]:,} tokens ({task}): {elapsed:.2f} s, "
            f"{len(plan):,} sequences, {num_bytes / 1e6:.0f} MB"
        )
    started_at = time.thread_time()
    stream = make_stream(shard, 128, 32)
    print(f"planning its first epoch, shuffled and cut into {stream.steps_per_epoch:,} batches: ", end="")
    print(f"{time.thread_time() - started_at:.2f} s")
    started_at = time.thread_time()
    stream.plan_epoch(1_000)
    print(f"planning epoch 1,000 of it: {time.thread_time() - started_at:.2f} s")


def share_of_a_step(preset_name: str, max_length: int) -> None:
    import torch
    from torch.nn import functional as F

    from litebert.model.model import build_model
    from litebert.model.presets import preset

    config = preset(preset_name)
    stream = make_stream(synthesise(2_000_000), max_length, 32)
    model = build_model(config, ["mlm"])
    batch = stream.batch(0)
    batch_seconds, step_seconds = [], []
    for step in range(6):
        started_at = time.thread_time()
        batch = stream.batch(step)
        batch_seconds.append(time.thread_time() - started_at)
        started_at = time.thread_time()
        hidden = model.encoder(batch.token_ids % config.vocab_size, batch.segment_ids, batch.mask).hidden
        logits = model.masked_lm_logits(hidden, batch.mlm_positions)
        F.cross_entropy(logits, batch.mlm_labels % config.vocab_size).backward()
        torch._foreach_mul_([p.grad for p in model.parameters() if p.grad is not None], 0.0)
        step_seconds.append(time.thread_time() - started_at)
    share = median(batch_seconds) / median(step_seconds)
    print(
        f"{preset_name}, 32 x {max_length}: batch {median(batch_seconds) * 1e3:.2f} ms, forward and backward "
        f"{median(step_seconds) * 1e3:.0f} ms, share {share:.2%}"
    )


if __name__ == "__main__":
    for length in (128, 512):
        for sequences in (32, 256):
            compare(length, sequences)
    time_planning()
    share_of_a_step("nano", 64)
    share_of_a_step("albert-tiny", 128)
