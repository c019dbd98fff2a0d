"""How long each stage of a recipe is: a part of the scale of `train.steps`, whatever the run is counted by."""

import math
from typing import NamedTuple

from litebert.pretraining.recipe import Recipe
from litebert.training.options import TrainOptions


class Stretch(NamedTuple):
    """A stage as a part of the scale of `train.steps`."""

    recipe: Recipe  # that its steps are made with
    begin: int
    end: int

    def count_steps(self, train: TrainOptions, *, step_tokens: int, step_seconds: float) -> int:
        """How many steps it has; of a run by tokens or by the clock, as many as its share of those takes."""
        share = (self.end - self.begin) / train.steps
        if train.tokens:
            return math.ceil(share * train.tokens / step_tokens)
        if train.hours:
            return math.ceil(share * train.hours * 3600 / step_seconds)
        return self.end - self.begin


def list_stretches(recipe: Recipe) -> list[Stretch]:
    """The stages of a recipe in their order, the one before the first change too."""
    begins = [0, *(stage.at for stage in recipe.stages)]
    ends = [*begins[1:], recipe.train.steps]
    return [Stretch(recipe.at(begin), begin, end) for begin, end in zip(begins, ends, strict=True)]
