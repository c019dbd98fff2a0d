"""The most probable pieces of the vocabulary for each `[MASK]` of a text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from litebert.core.errors import ConfigError, DataError
from litebert.inference.session import Session
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, TokenSequence
from litebert.text.tokenizer import Tokenizer

MASK = "[MASK]"
# Any word works: it holds the position while the surrounding text is encoded, and never reaches the model.
_STAND_IN = "the"


class Guess(NamedTuple):
    """A piece of the vocabulary and its probability."""

    piece: str
    probability: float
    token_id: int


def fill_mask(session: Session, tokenizer: Tokenizer, text: str, top_k: int = 5) -> list[list[Guess]]:
    """The `top_k` most probable pieces for each `[MASK]` of a text, the best first."""
    return fill_gaps(session, tokenizer, [encode_gaps(tokenizer, text)], top_k)[0]


def fill_gaps(
    session: Session, tokenizer: Tokenizer, groups: Sequence[Group], top_k: int = 5
) -> list[list[list[Guess]]]:
    """For each text, as `encode_gaps` gives it, the `top_k` most probable pieces for each of its `[MASK]`s."""
    check_top_k(tokenizer, top_k)

    def guess(batch: GroupBatch, chosen: Sequence[Group]) -> list[list[list[Guess]]]:
        logits = session.run("mlm", batch.to_inputs(mask_id=tokenizer.mask_id))["logits"]  # (M, V)
        guesses = iter(_rank(logits, tokenizer, top_k))
        return [[next(guesses) for _ in range(group.about)] for group in chosen]

    return session.answer(groups, guess)


def check_top_k(tokenizer: Tokenizer, top_k: int) -> None:
    """Raise if `top_k` exceeds the vocabulary; special tokens are never predicted."""
    possible = tokenizer.vocab_size - len(tokenizer.special_ids)
    if not 1 <= top_k <= possible:
        raise ConfigError(
            "out-of-range",
            f"top_k must be between 1 and {possible:,} (the vocabulary size), got {top_k}",
            option="top_k",
        )


def encode_gaps(tokenizer: Tokenizer, text: str, max_length: int = 2**31) -> Group:
    """The input for a text with masks. A text that is too long is an error: truncation might remove a mask."""
    body, places = encode_masked(tokenizer, text)
    if len(body) > max_length - 2:
        raise DataError(
            "text-too-long",
            f"the text has {len(body)} tokens, but the model reads at most {max_length - 2}: shorten it around {MASK}",
        )
    token_ids = np.array([tokenizer.cls_id, *body, tokenizer.sep_id], dtype=np.int32)
    return Group((TokenSequence(token_ids, len(token_ids)),), about=len(places))


def _rank(logits: Tensor, tokenizer: Tokenizer, top_k: int) -> list[list[Guess]]:
    """The best pieces by the logits (M, V) of masks."""
    logits = logits[:, : tokenizer.vocab_size]  # a model's table may be padded to a round size
    logits[:, sorted(tokenizer.special_ids)] = -torch.inf
    best = logits.topk(top_k)
    # only for the best: all probabilities would be another (M, V) matrix
    probabilities = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return [
        [Guess(*guess) for guess in zip(tokenizer.pieces(ids), some, ids, strict=True)]
        for ids, some in zip(best.indices.tolist(), probabilities.tolist(), strict=True)
    ]


def show_guess(tokenizer: Tokenizer, guess: Guess) -> str:
    """A guess as readable text, without the vocabulary's word-boundary marks."""
    return tokenizer.decode([guess.token_id]).strip().removeprefix("##") or guess.piece


def count_masks(tokenizer: Tokenizer, text: str) -> int:
    """How many masks a text has."""
    return len(_split_at_masks(tokenizer, text)) - 1


def encode_masked(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """The ids of a text with the mask id for each `[MASK]`, and the masks' positions; no special tokens are added.

    The tokenizer's own mask token, such as RoBERTa's `<mask>`, is accepted too.

    The tokenizer would split the mask token into letters and brackets. A stand-in word is therefore encoded instead,
    so that the surrounding pieces are those of normal text, and its pieces are replaced by one mask.
    """
    parts = _split_at_masks(tokenizer, text)
    if len(parts) == 1:
        raise DataError("no-mask", f"'{text}' contains no {MASK}: write {MASK} in place of the word to predict")
    whole = _STAND_IN.join(parts)
    ends = np.cumsum([len(part) + len(_STAND_IN) for part in parts[:-1]]).tolist()
    stand_ins = [range(end - len(_STAND_IN), end) for end in ends]
    encoding = tokenizer.encode_with_offsets(whole)
    token_ids: list[int] = []
    places: list[int] = []
    for token_id, (start, end) in zip(encoding.token_ids, encoding.offsets, strict=True):
        # byte-level pieces include the space before them
        start += len(whole[start:end]) - len(whole[start:end].lstrip())
        number = _find_stand_in(start, end, stand_ins)
        if number is None:
            token_ids.append(token_id)
        elif not (stand_ins[number].start <= start and end <= stand_ins[number].stop):
            raise DataError("no-mask", f"'{text}' has a {MASK} inside a word: put spaces around {MASK}")
        elif number == len(places):  # the first of its pieces; the others are dropped
            places.append(len(token_ids))
            token_ids.append(tokenizer.mask_id)
    return token_ids, places


def _split_at_masks(tokenizer: Tokenizer, text: str) -> list[str]:
    return text.replace(tokenizer.pieces([tokenizer.mask_id])[0], MASK).split(MASK)


def _find_stand_in(start: int, end: int, stand_ins: list[range]) -> int | None:
    """The number of the stand-in that a piece touches; a piece without characters (a bare space mark) counts too."""
    for number, stand_in in enumerate(stand_ins):
        if start < stand_in.stop and (end > stand_in.start or start == end == stand_in.start):
            return number
    return None
