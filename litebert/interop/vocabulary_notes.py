"""Whether a vocabulary and a model's token table belong together, as far as they tell."""

from collections import Counter

from litebert.text.tokenizer import Tokenizer


def note_vocabulary(tokenizer: Tokenizer, num_rows: int) -> tuple[str, ...]:
    """What a person should know about a tokenizer beside a table of `num_rows`; nothing where all is in order."""
    notes: list[str] = []
    if tokenizer.vocab_size != num_rows:
        notes.append(f"the tokenizer has {tokenizer.vocab_size:,} pieces, the model {num_rows:,} rows")
    counts = Counter(tokenizer.pieces(range(tokenizer.vocab_size)))
    lost = counts.pop("", 0)  # a line that a later one repeats has no piece any more
    lost += sum(count - 1 for count in counts.values())
    if lost:
        notes.append(
            f"{lost:,} of {tokenizer.vocab_size:,} ids have no piece of their own: the vocabulary repeats some"
        )
    return tuple(notes)
