"""What a model would write in the place of `[MASK]`."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.model.reading import Reader, ReadInputs
from litebert.text.tokenizer import Tokenizer

MASK = "[MASK]"
# Any word of its own does: it keeps the place while the text around it is encoded, and never reaches the model.
_STAND_IN = "the"


class Guess(NamedTuple):
    """A piece of the vocabulary and how probable the model finds it."""

    piece: str
    probability: float


def fill_mask(model: Reader, tokenizer: Tokenizer, text: str, top_k: int = 5) -> list[list[Guess]]:
    """The `top_k` most probable pieces for each `[MASK]` of a text, the best first."""
    body, _ = encode_masked(tokenizer, text)
    token_ids = torch.tensor([[tokenizer.cls_id, *body, tokenizer.sep_id]])
    is_real = torch.ones_like(token_ids, dtype=torch.bool)
    inputs = ReadInputs(token_ids, torch.zeros_like(token_ids), is_real, mask_id=tokenizer.mask_id)
    logits = model.read("mlm", inputs)["logits"]  # (M, V)
    return rank_guesses(logits, tokenizer, top_k)


def rank_guesses(logits: Tensor, tokenizer: Tokenizer, top_k: int) -> list[list[Guess]]:
    """The best pieces by the logits (M, V) of masks; special tokens are no guesses."""
    logits = logits.float()
    logits[:, sorted(tokenizer.special_ids)] = -torch.inf
    best = logits.softmax(-1).topk(top_k)
    return [
        [Guess(*guess) for guess in zip(tokenizer.pieces(ids), probabilities, strict=True)]
        for ids, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def encode_masked(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """The ids of a text with the mask's id for each `[MASK]`, and where those stand; no special token is added.

    The tokenizer's own mark, such as RoBERTa's `<mask>`, may be written as well.

    The tokenizer never sees the mark, in which it would find letters and brackets. A stand-in is encoded with the text,
    so that the pieces around it are those of a text with a word there, and its pieces become one mask.
    """
    parts = text.replace(tokenizer.pieces([tokenizer.mask_id])[0], MASK).split(MASK)
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
