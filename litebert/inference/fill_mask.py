"""What a model would write in the place of `[MASK]`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from litebert.core.errors import ConfigError, DataError
from litebert.inference.outputs import BATCH_COST, BATCH_TOKENS, answer_in_batches
from litebert.model.reading import Reader
from litebert.tasks.asking import to_inputs
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, TokenSequence
from litebert.text.tokenizer import Tokenizer

MASK = "[MASK]"
# Any word of its own does: it keeps the place while the text around it is encoded, and never reaches the model.
_STAND_IN = "the"


class Guess(NamedTuple):
    """A piece of the vocabulary and how probable the model finds it."""

    piece: str
    probability: float
    token_id: int


def fill_mask(model: Reader, tokenizer: Tokenizer, text: str, top_k: int = 5) -> list[list[Guess]]:
    """`fill_masks` for one text."""
    return fill_masks(model, tokenizer, [text], top_k)[0]


def fill_masks(
    model: Reader,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    top_k: int = 5,
    *,
    max_length: int = 2**31,
    batch_tokens: int = BATCH_TOKENS,
    batch_cost: int = BATCH_COST,
) -> list[list[list[Guess]]]:
    """For each text the `top_k` most probable pieces for each of its `[MASK]`s, the best first."""
    check_top_k(tokenizer, top_k)

    def guess(batch: GroupBatch, chosen: Sequence[Group]) -> list[list[list[Guess]]]:
        logits = model.read("mlm", to_inputs(batch, mask_id=tokenizer.mask_id))["logits"]  # (M, V)
        guesses = iter(_rank(logits, tokenizer, top_k))
        return [[next(guesses) for _ in range(group.about)] for group in chosen]

    groups = [encode_gaps(tokenizer, text, max_length) for text in texts]
    return answer_in_batches(groups, guess, pad_id=tokenizer.pad_id, batch_tokens=batch_tokens, batch_cost=batch_cost)


def check_top_k(tokenizer: Tokenizer, top_k: int) -> None:
    """Refuse to guess more pieces than there are; special tokens are no guesses."""
    possible = tokenizer.vocab_size - len(tokenizer.special_ids)
    if not 1 <= top_k <= possible:
        raise ConfigError(f"top_k = {top_k}: the vocabulary has {possible:,} pieces to choose from")


def encode_gaps(tokenizer: Tokenizer, text: str, max_length: int) -> Group:
    """The input for a text with gaps; a text too long is refused and not cut, since a gap might be cut away."""
    body, places = encode_masked(tokenizer, text)
    if len(body) > max_length - 2:
        raise DataError(
            f"the text has {len(body)} tokens, and the model reads {max_length - 2}: shorten it around the {MASK}"
        )
    token_ids = np.array([tokenizer.cls_id, *body, tokenizer.sep_id], dtype=np.int32)
    return Group((TokenSequence(token_ids, len(token_ids)),), about=len(places))


def _rank(logits: Tensor, tokenizer: Tokenizer, top_k: int) -> list[list[Guess]]:
    """The best pieces by the logits (M, V) of masks."""
    logits = logits[:, : tokenizer.vocab_size].float()  # a model may have more rows, as a round number of them
    logits[:, sorted(tokenizer.special_ids)] = -torch.inf
    best = logits.topk(top_k)
    # only of the best: all probabilities would be another matrix of the vocabulary's width
    probabilities = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return [
        [Guess(*guess) for guess in zip(tokenizer.pieces(ids), some, ids, strict=True)]
        for ids, some in zip(best.indices.tolist(), probabilities.tolist(), strict=True)
    ]


def show_guess(tokenizer: Tokenizer, guess: Guess) -> str:
    """A guess as a person reads it, without the vocabulary's mark of where words begin."""
    return tokenizer.decode([guess.token_id]).strip().removeprefix("##") or guess.piece


def count_masks(tokenizer: Tokenizer, text: str) -> int:
    """The gaps of a text."""
    return len(_split_at_masks(tokenizer, text)) - 1


def encode_masked(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """The ids of a text with the mask's id for each `[MASK]`, and where those stand; no special token is added.

    The tokenizer's own mark, such as RoBERTa's `<mask>`, may be written as well.

    The tokenizer never sees the mark, in which it would find letters and brackets. A stand-in is encoded with the text,
    so that the pieces around it are those of a text with a word there, and its pieces become one mask.
    """
    parts = _split_at_masks(tokenizer, text)
    if len(parts) == 1:
        raise DataError(f"'{text}' has no {MASK}: write it in the place of the word to guess")
    stand_ins = list(_locate_stand_ins(parts))
    whole = _STAND_IN.join(parts)
    encoding = tokenizer.encode_with_offsets(whole)
    token_ids: list[int] = []
    places: list[int] = []
    for token_id, (start, end) in zip(encoding.token_ids, encoding.offsets, strict=True):
        start += len(whole[start:end]) - len(whole[start:end].lstrip())  # byte-level pieces own the space before them
        number = _find_stand_in(start, end, stand_ins)
        if number is None:
            token_ids.append(token_id)
        elif not (stand_ins[number].start <= start and end <= stand_ins[number].stop):
            raise DataError(f"a {MASK} of '{text}' stands inside a word: leave a space around it")
        elif number == len(places):  # the first of its pieces; the others are dropped
            places.append(len(token_ids))
            token_ids.append(tokenizer.mask_id)
    return token_ids, places


def _split_at_masks(tokenizer: Tokenizer, text: str) -> list[str]:
    return text.replace(tokenizer.pieces([tokenizer.mask_id])[0], MASK).split(MASK)


def _locate_stand_ins(parts: list[str]) -> Iterator[range]:
    end = 0
    for part in parts[:-1]:
        start = end + len(part)
        end = start + len(_STAND_IN)
        yield range(start, end)


def _find_stand_in(start: int, end: int, stand_ins: list[range]) -> int | None:
    """The number of the stand-in that a piece touches; a piece without characters (a bare space mark) counts too."""
    for number, stand_in in enumerate(stand_ins):
        if start < stand_in.stop and (end > stand_in.start or start == end == stand_in.start):
            return number
    return None
