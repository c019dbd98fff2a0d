"""Several questions at once, where `Predictor` answers one: gaps, orders and choices, in batches of like length."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from litebert.core.errors import DataError
from litebert.data.group_batch import GroupBatch, build_group_batch
from litebert.data.groups import Group, TokenSequence
from litebert.infer.answering import Choice, read_choice
from litebert.infer.fill_mask import MASK, Guess, encode_masked
from litebert.infer.outputs import BATCH_TOKENS, plan_batches
from litebert.infer.predictor import Predictor
from litebert.tasks.choices import ChoiceExample
from litebert.tasks.texts import TextExample, join_texts

T = TypeVar("T")


def fill_masks(predictor: Predictor, texts: Sequence[str], top_k: int = 5) -> list[list[list[Guess]]]:
    """For each text what `Predictor.fill_mask` gives: the most probable pieces for each of its [MASK]s."""
    groups = [_mask_group(predictor, text) for text in texts]
    tokenizer, model = predictor.tokenizer, predictor.model
    hidden_ids = sorted(tokenizer.special_ids)

    def guess(batch: GroupBatch, chosen: Sequence[Group]) -> list[list[list[Guess]]]:
        hidden = model.encoder(batch.token_ids, batch.segment_ids, _mask_of(batch)).hidden
        width = batch.token_ids.shape[1]
        places = torch.tensor([row * width + place for row, group in enumerate(chosen) for place in group.about])
        logits = model.masked_lm_logits(hidden, places.to(hidden.device)).float()  # (M, V)
        logits[:, hidden_ids] = -torch.inf
        best = logits.softmax(-1).topk(min(top_k, tokenizer.vocab_size - len(hidden_ids)))
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        guesses = iter([list(map(Guess, tokenizer.pieces(ids), probabilities)) for ids, probabilities in rows])
        return [[next(guesses) for _ in group.about] for group in chosen]

    return _compute(predictor, groups, guess)


def order_texts(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """For each pair what `Predictor.order` gives: how probable it is that the second text follows the first."""
    examples = [TextExample(str(number), *pair) for number, pair in enumerate(pairs)]
    sequences = join_texts(examples, predictor.tokenizer, predictor.form())

    def order(batch: GroupBatch, _: Sequence[Group]) -> list[float]:
        pooled = predictor.model.encoder(batch.token_ids, batch.segment_ids, _mask_of(batch)).pooled
        probabilities: list[float] = predictor.model.heads["sentence"](pooled).float().softmax(-1)[:, 0].tolist()
        return probabilities

    return _compute(predictor, [Group((sequence,)) for sequence in sequences], order)


def choose_many(predictor: Predictor, examples: Sequence[ChoiceExample]) -> list[Choice]:
    """For each question what `Predictor.choose` gives."""
    outputs = predictor.predict(examples)
    return [read_choice(example.choices, output) for example, output in zip(examples, outputs, strict=True)]


def _mask_group(predictor: Predictor, text: str) -> Group:
    """The input for a text with gaps; a text too long is refused and not cut, since a gap might be cut away."""
    form = predictor.form()
    body, places = encode_masked(predictor.tokenizer, text)
    room = predictor.checkpoint.config.max_positions - form.num_special(is_pair=False)
    if len(body) > room:
        raise DataError(f"the text has {len(body)} tokens, and the model reads {room}: shorten it around the {MASK}")
    token_ids = np.array([form.cls_id, *body, form.sep_id], dtype=np.int32)
    return Group((TokenSequence(token_ids, len(token_ids)),), about=[place + 1 for place in places])


def _mask_of(batch: GroupBatch) -> Tensor | None:
    return None if bool(batch.mask.all()) else batch.mask  # attention is faster without


def _compute(
    predictor: Predictor, groups: Sequence[Group], compute: Callable[[GroupBatch, Sequence[Group]], list[T]]
) -> list[T]:
    """What `compute` gives for each group, in the groups' order."""
    found: dict[int, T] = {}
    for numbers in plan_batches(groups, BATCH_TOKENS):
        chosen = [groups[number] for number in numbers]
        batch = build_group_batch(chosen, predictor.tokenizer.pad_id).to(predictor.runtime.device)
        with torch.inference_mode():
            found |= zip(numbers, compute(batch, chosen), strict=True)
    return [found[number] for number in range(len(groups))]
