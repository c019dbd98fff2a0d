"""Which heads learned nothing: on held-out text they are no better than the most frequent answer."""

import math
from collections.abc import Mapping, Sequence

import torch

from litebert.batches.batch import Batch

_SURE = 1.645  # standard errors above the most frequent answer, of which luck reaches one in twenty
_NAMES = {"mlm": "masked words", "sentence": "the sentence task"}


def find_at_chance(metrics: Mapping[str, float], batches: Sequence[Batch]) -> dict[str, str]:
    """The heads that are at chance, each with a sentence about it; `metrics` were measured on these batches."""
    labels = {"mlm": [batch.mlm_labels for batch in batches]}
    if all(batch.sentence_labels is not None for batch in batches):
        labels["sentence"] = [batch.sentence_labels for batch in batches if batch.sentence_labels is not None]
    found: dict[str, str] = {}
    for head, parts in labels.items():
        answers = torch.cat(parts)
        if f"{head}_accuracy" not in metrics or not len(answers):
            continue
        chance = float(answers.bincount().max()) / len(answers)
        needed = chance + _SURE * math.sqrt(chance * (1 - chance) / len(answers))
        accuracy = metrics[f"{head}_accuracy"]
        if accuracy <= needed:
            found[head] = (
                f"{_NAMES[head]} is not above chance: accuracy {accuracy:.3f} on {len(answers):,} validation examples "
                f"(majority class {chance:.3f}; significant above {needed:.3f}); do not rely on this head"
            )
    return found
