"""Several questions at once, where `Predictor` answers one: gaps, orders and choices, in batches of like length."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from litebert.core.errors import DataError
from litebert.data.group_batch import GroupBatch, build_group_batch
from litebert.data.groups import Group, TokenSequence
from litebert.infer.answering import Choice, read_choice
from litebert.infer.fill_mask import MASK, Guess, encode_masked, rank_guesses
from litebert.infer.outputs import BATCH_TOKENS, plan_batches
from litebert.infer.predictor import Predictor
from litebert.tasks.asking import to_inputs
from litebert.tasks.choices import ChoiceExample
from litebert.tasks.texts import TextExample, join_texts

T = TypeVar("T")


def fill_masks(predictor: Predictor, texts: Sequence[str], top_k: int = 5) -> list[list[list[Guess]]]:
    """For each text what `Predictor.fill_mask` gives: the most probable pieces for each of its [MASK]s."""
    groups = [_mask_group(predictor, text) for text in texts]
    tokenizer = predictor.tokenizer
    top_k = min(top_k, tokenizer.vocab_size - len(tokenizer.special_ids))

    def guess(batch: GroupBatch, chosen: Sequence[Group]) -> list[list[list[Guess]]]:
        logits = predictor.engine.read("mlm", to_inputs(batch, mask_id=tokenizer.mask_id))["logits"]  # (M, V)
        guesses = iter(rank_guesses(logits, tokenizer, top_k))
        return [[next(guesses) for _ in range(group.about)] for group in chosen]

    return _compute(predictor, groups, guess)


def order_texts(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """For each pair what `Predictor.order` gives: how probable it is that the second text follows the first."""
    examples = [TextExample(str(number), *pair) for number, pair in enumerate(pairs)]
    sequences = join_texts(examples, predictor.tokenizer, predictor.form())

    def order(batch: GroupBatch, _: Sequence[Group]) -> list[float]:
        logits = predictor.engine.read("sentence", to_inputs(batch))["logits"]  # (S, 2)
        probabilities: list[float] = logits.float().softmax(-1)[:, 0].tolist()
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
    return Group((TokenSequence(token_ids, len(token_ids)),), about=len(places))


def _compute(
    predictor: Predictor, groups: Sequence[Group], compute: Callable[[GroupBatch, Sequence[Group]], list[T]]
) -> list[T]:
    """What `compute` gives for each group, in the groups' order."""
    found: dict[int, T] = {}
    for numbers in plan_batches(groups, BATCH_TOKENS):
        chosen = [groups[number] for number in numbers]
        batch = build_group_batch(chosen, predictor.tokenizer.pad_id)
        found |= zip(numbers, compute(batch, chosen), strict=True)
    return [found[number] for number in range(len(groups))]
