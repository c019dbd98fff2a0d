"""The length of each stage of a recipe: a range of `train.steps`, even for runs limited by tokens or hours."""

import math
from typing import NamedTuple

from litebert.pretraining.recipe import Recipe
from litebert.training.options import TrainOptions


class Stretch(NamedTuple):
    """A stage as a range of `train.steps`."""

    recipe: Recipe  # in effect during the stage
    begin: int
    end: int

    def count_steps(self, train: TrainOptions, *, step_tokens: int, step_seconds: float) -> int:
        """The number of steps; for a run limited by tokens or hours, estimated from the stage's share of them."""
        share = (self.end - self.begin) / train.steps
        if train.tokens:
            return math.ceil(share * train.tokens / step_tokens)
        if train.hours:
            return math.ceil(share * train.hours * 3600 / step_seconds)
        return self.end - self.begin


def list_stretches(recipe: Recipe) -> list[Stretch]:
    """The stages of a recipe in order, including the one before the first change."""
    begins = [0, *(stage.at for stage in recipe.stages)]
    ends = [*begins[1:], recipe.train.steps]
    return [Stretch(recipe.at(begin), begin, end) for begin, end in zip(begins, ends, strict=True)]
