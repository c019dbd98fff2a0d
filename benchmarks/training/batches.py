"""The batches of benchmarks/train.py: random tokens, real lengths."""

import pydoc_data.topics
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from litebert.batches.batch import Batch
from litebert.text.sentences import split_sentences

MLM_RATE = 0.15
LENGTH = 128


def make_full_batch(batch_size: int, length: int, vocab_size: int) -> Batch:
    """Rows without padding."""
    return lay_out([[length]] * batch_size, length, vocab_size)


def make_real_batches(vocab_size: int, *, num_batches: int = 2, batch_size: int = 32) -> dict[str, list[Batch]]:
    """The same sequences of real lengths, batched in three ways: padded in given order, sorted by length, packed."""
    lengths = draw_real_lengths(num_batches * batch_size)
    as_they_come = [lengths[start : start + batch_size] for start in range(0, len(lengths), batch_size)]
    in_order = sorted(lengths)
    by_length = [in_order[start : start + batch_size] for start in range(0, len(lengths), batch_size)]
    packed = pack(lengths)
    rows_a_batch = -(-len(packed) // num_batches)
    return {
        "padded": [lay_out([[n] for n in part], max(part), vocab_size) for part in as_they_come],
        "sorted": [lay_out([[n] for n in part], max(part), vocab_size) for part in by_length],
        "packed": [
            lay_out(packed[start : start + rows_a_batch], LENGTH, vocab_size)
            for start in range(0, len(packed), rows_a_batch)
        ],
    }


def draw_real_lengths(count: int) -> list[int]:
    """Lengths in tokens of [CLS] sentence [SEP] sentence [SEP] from the documentation that comes with Python."""
    text = " ".join(pydoc_data.topics.topics[topic] for topic in sorted(pydoc_data.topics.topics))
    sentences = [
        len(re.findall(r"\w+|[^\w\s]", sentence)) for sentence in split_sentences(" ".join(text.split())[:60_000])
    ]
    pairs = [first + second + 3 for first, second in zip(sentences[::2], sentences[1::2], strict=False)]
    lengths = [min(length, LENGTH) for length in pairs][:count]
    assert len(lengths) == count, f"{len(lengths)} sequences where {count} are wanted"
    return lengths


def pack(lengths: Sequence[int]) -> list[list[int]]:
    """Put each sequence into the first row with enough room, the longest first."""
    rows: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        row = next((row for row in rows if sum(row) + length <= LENGTH), None)
        if row is None:
            rows.append(row := [])
        row.append(length)
    return rows


def lay_out(rows: Sequence[Sequence[int]], width: int, vocab_size: int) -> Batch:
    """Random tokens in rows that hold sequences of these lengths."""
    generator = torch.Generator().manual_seed(0)
    sequence_ids = torch.zeros(len(rows), width, dtype=torch.long)
    position_ids, segment_ids = sequence_ids.clone(), sequence_ids.clone()
    first, masked = [], []
    for row, lengths in enumerate(rows):
        column = 0
        for ordinal, length in enumerate(lengths, start=1):
            place, start = slice(column, column + length), row * width + column
            sequence_ids[row, place] = ordinal
            position_ids[row, place] = torch.arange(length)
            segment_ids[row, place] = (torch.arange(length) > length // 2).long()
            first.append(start)
            chosen = torch.randperm(length - 1, generator=generator)[: max(1, round(MLM_RATE * length))]
            masked.append(start + 1 + chosen.sort().values)
            column += length
    token_ids = torch.randint(5, vocab_size, sequence_ids.shape, generator=generator) * (sequence_ids > 0)
    is_packed = any(len(lengths) > 1 for lengths in rows)
    positions = torch.cat(masked)
    return Batch(
        token_ids=token_ids,
        segment_ids=segment_ids,
        mask=sequence_ids > 0,
        position_ids=position_ids if is_packed else None,
        sequence_ids=sequence_ids if is_packed else None,
        first_tokens=torch.tensor(first),
        mlm_positions=positions,
        mlm_labels=token_ids.view(-1)[positions],
        sentence_labels=torch.randint(0, 2, (len(first),), generator=generator),
        opens_document=torch.zeros(len(first), dtype=torch.bool),
    )


def pad_like_a_collator(batch: Batch) -> dict[str, Tensor]:
    """The batch in transformers' format: labels everywhere, -100 where nothing is predicted."""
    labels = torch.full(batch.token_ids.shape, -100)
    labels.view(-1)[batch.mlm_positions] = batch.mlm_labels
    assert batch.sentence_labels is not None
    return {
        "input_ids": batch.token_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.mask.long(),
        "labels": labels,
        "sentence_order_label": batch.sentence_labels,
    }
