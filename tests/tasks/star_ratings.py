"""A task of a user's own: ratings from 1 to N stars. The page "Extend litebert" shows this class."""
# ruff: noqa: ARG002 (the contract names arguments that a simple task does not need)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn import functional as F

from litebert.model.config import HeadSpec
from litebert.model.engine import Engine
from litebert.model.model import Model
from litebert.tasks.files.custom import read_labelled_texts
from litebert.tasks.files.reading import TableOptions
from litebert.tasks.finetuning import Chance, Dataset
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.kinds.classification import count_texts, read_pooled
from litebert.tasks.task import BatchLoss, Counts
from litebert.tasks.texts import TextExample, group_texts, join_texts
from litebert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class StarRatings:
    """N - 1 questions: is it more than 1 star, more than 2, ...? The output is their probabilities."""

    num_stars: int = 5
    name: str = "stars"
    metric: str = "within_one"  # the share of ratings that are wrong by at most one star

    def read(self, path: Path, options: TableOptions) -> Dataset:
        splits, notes = read_labelled_texts(path, options, lambda row, column: int(row.cells[column]))
        return Dataset.of(self, splits, notes)

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("classification", self.num_stars - 1),)

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        steps = np.arange(1, self.num_stars)
        targets = [None if e.label is None else (e.label > steps)[None].astype(np.float32) for e in examples]
        return group_texts(join_texts(examples, tokenizer, form), targets)

    def count(self, part: GroupBatch) -> dict[str, int]:
        return count_texts(part)

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        summed = F.binary_cross_entropy_with_logits(read_pooled(model, part), part.targets, reduction="sum")
        loss = summed / totals["groups"]
        return BatchLoss(loss, {"loss": loss.detach()})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Any]:
        logits = engine.run("classification", batch.to_inputs())["logits"].float()  # (S, N - 1)
        return [[round(p, 6) for p in row] for row in logits.sigmoid().tolist()]

    def combine(self, outputs: Sequence[Any]) -> Any:
        return np.mean(outputs, axis=0).tolist()

    def decide(self, output: Any) -> int:
        return 1 + sum(probability > 0.5 for probability in output)

    def score(self, outputs: Sequence[Any], examples: Sequence[TextExample]) -> dict[str, float]:
        wrong_by = np.array([abs(self.decide(o) - e.label) for o, e in zip(outputs, examples, strict=True)])
        return {"within_one": float((wrong_by <= 1).mean()), "exact": float((wrong_by == 0).mean())}

    def wrongness(self, output: Any, example: TextExample) -> float:
        return float(abs(self.decide(output) - example.label))

    def chance(self, examples: Sequence[TextExample]) -> Chance:
        ratings = np.array([example.label for example in examples])
        best = max(float((abs(ratings - star) <= 1).mean()) for star in range(1, self.num_stars + 1))
        return Chance(best, 1.645 * (best * (1 - best) / len(examples)) ** 0.5)
