"""Checks whether a vocabulary fits a model's token embeddings."""

from collections import Counter

from litebert.text.tokenizer import Tokenizer


def note_vocabulary(tokenizer: Tokenizer, num_rows: int) -> tuple[str, ...]:
    """Notes about a tokenizer that does not fit an embedding table of `num_rows`; empty if it does."""
    notes: list[str] = []
    if tokenizer.vocab_size != num_rows:
        notes.append(f"the tokenizer has {tokenizer.vocab_size:,} pieces, but the model has {num_rows:,} rows")
    counts = Counter(tokenizer.pieces(range(tokenizer.vocab_size)))
    lost = counts.pop("", 0)  # of duplicate lines, all ids but the last have an empty piece
    lost += sum(count - 1 for count in counts.values())
    if lost:
        notes.append(
            f"{lost:,} of {tokenizer.vocab_size:,} ids are unreachable: the vocabulary has duplicate or empty pieces"
        )
    return tuple(notes)
