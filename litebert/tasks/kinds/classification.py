"""Classification, regression and multi-label classification of texts and text pairs, from the pooled vector."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from litebert.model.config import HeadSpec
from litebert.model.early_exit import read_every_layer, weigh_layers
from litebert.model.engine import Engine
from litebert.model.model import Model
from litebert.tasks import metrics
from litebert.tasks.finetuning import ONE_SIDED, Chance, Output, Rows, Tally
from litebert.tasks.group_batch import GroupBatch
from litebert.tasks.groups import Group, SequenceForm
from litebert.tasks.task import BatchLoss, Counts
from litebert.tasks.texts import TextExample, group_texts, join_texts, to_floats
from litebert.text.tokenizer import Tokenizer

SCORES = {
    "accuracy": metrics.accuracy,
    "f1": metrics.f1,  # of the positive label
    "macro_f1": metrics.macro_f1,
    "matthews": metrics.matthews,
}
# A label with less than this part of an even share of the rows is rare: accuracy would favour never predicting it
RARE = 0.5


@dataclass(frozen=True)
class Classification:
    """One of several labels; the output is their probabilities."""

    name: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...] = ("accuracy",)  # the first one selects the model
    class_weights: tuple[float, ...] = ()  # of each label in the loss; empty: equal
    num_texts: int = 0  # texts per example: 1, or 2 for pairs; 0: unknown
    exits: bool = False  # early exits: trained to answer after every layer
    positive: str = ""  # the positive label of F1; empty: the second

    @property
    def metric(self) -> str:
        return self.metrics[0]

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("classification", len(self.labels)),)

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        targets = [None if e.label is None else np.array(self.labels.index(e.label)) for e in examples]
        return group_texts(join_texts(examples, tokenizer, form, num_texts=self.num_texts), targets)

    def count(self, part: GroupBatch) -> dict[str, int]:
        return count_texts(part)

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        layers = _read_for_loss(model, part, self.exits)  # (1 or L, S, labels)
        targets = part.targets
        assert targets is not None, "nothing to learn from"
        weights = layers.new_tensor(self.class_weights) if self.class_weights else None
        loss_of = lambda logits: F.cross_entropy(logits, targets, weight=weights, reduction="sum")  # noqa: E731
        loss = weigh_layers(layers, loss_of) / totals["groups"]
        correct = (layers[-1].argmax(-1) == targets).sum()
        return BatchLoss(loss, {"loss": loss.detach(), "correct": correct})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "train_accuracy": sums["correct"] / totals["groups"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        del groups
        return [to_floats(row) for row in _ask(engine, batch).softmax(-1).cpu().numpy()]

    def combine(self, outputs: Sequence[Output]) -> Output:
        return to_floats(np.mean(outputs, axis=0))

    def decide(self, output: Output) -> str:
        return self.labels[int(np.argmax(output))]

    def score(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, float]:
        guesses = np.argmax(outputs, axis=1)
        truths = np.array([self.labels.index(example.label) for example in examples])
        return {name: self.measure(name, guesses, truths) for name in self.metrics}

    def measure(self, name: str, guesses: NDArray[np.int64], truths: NDArray[np.int64]) -> float:
        """Compute one of the scores from label indices."""
        if name == "f1" and self.positive:
            return metrics.f1(guesses, truths, self.labels.index(self.positive))
        return SCORES[name](guesses, truths)

    def tally(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> Tally:
        numbers = {label: number for number, label in enumerate(self.labels)}
        rows = [[numbers[self.decide(o)], numbers[e.label]] for o, e in zip(outputs, examples, strict=True)]
        scores = {name: partial(self._measure_rows, name, np.unique(rows)) for name in self.metrics}
        return Tally(np.array(rows), scores, frozenset({"accuracy"}))

    def _measure_rows(self, name: str, classes: NDArray[np.int64], rows: Rows) -> float:
        if name == "macro_f1":  # of the same classes in each draw: without its rare rows a draw would look perfect
            return metrics.macro_f1(rows[:, 0], rows[:, 1], classes)
        return self.measure(name, rows[:, 0], rows[:, 1])

    def describe(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, Any]:
        """The confusion matrix, and precision, recall and F1 per label."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        guesses = [numbers[self.decide(output)] for output in outputs]
        truths = [numbers[example.label] for example in examples]
        confusion = metrics.confusion_matrix(guesses, truths, len(self.labels))
        counts = zip(np.diag(confusion).tolist(), confusion.sum(0).tolist(), confusion.sum(1).tolist(), strict=True)
        labels = {label: metrics.precision_recall(*one) for label, one in zip(self.labels, counts, strict=True)}
        return {"confusion": confusion.tolist(), "labels": labels}

    def wrongness(self, output: Output, example: TextExample) -> float:
        truth = self.labels.index(example.label)
        return 0.0 if int(np.argmax(output)) == truth else -math.log(max(output[truth], 1e-7))

    def chance(self, examples: Sequence[TextExample]) -> Chance:
        """The score of always predicting the same label, the one that scores best."""
        truths = np.array([self.labels.index(example.label) for example in examples])
        present = sorted(set(truths.tolist()))
        score = max(self.measure(self.metric, np.full(len(truths), label), truths) for label in present)
        spread = 1.0 if self.metric == "matthews" else math.sqrt(score * (1 - score))
        return Chance(score, ONE_SIDED * spread / math.sqrt(len(examples)))


@dataclass(frozen=True)
class Regression:
    """Regression: the label is a number, and so is the output."""

    name: str
    low: float | None = None  # answers are clamped to this range
    high: float | None = None
    # The model predicts (value - center) / scale: a head would need many steps to reach values in the thousands.
    center: float = 0.0
    scale: float = 1.0
    num_texts: int = 0  # texts per example: 1, or 2 for pairs; 0: unknown
    exits: bool = False  # early exits: trained to answer after every layer
    metric: str = "pearson"  # or spearman

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("classification", 1),)

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        # scaled before the cast: float32 has seven digits, and a date or a price may need more
        scaled = [None if e.label is None else (e.label - self.center) / self.scale for e in examples]
        targets = [None if value is None else np.array(value, dtype=np.float32) for value in scaled]
        return group_texts(join_texts(examples, tokenizer, form, num_texts=self.num_texts), targets)

    def count(self, part: GroupBatch) -> dict[str, int]:
        return count_texts(part)

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        wanted = part.targets
        layers = _read_for_loss(model, part, self.exits).squeeze(-1)  # (1 or L, S)
        loss = weigh_layers(layers, lambda guesses: F.mse_loss(guesses, wanted, reduction="sum")) / totals["groups"]
        return BatchLoss(loss, {"loss": loss.detach()})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        del totals
        return {"loss": sums["loss"]}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        del groups
        scaled: list[float] = _ask(engine, batch).squeeze(-1).tolist()
        return [self._round(value * self.scale + self.center) for value in scaled]

    def combine(self, outputs: Sequence[Output]) -> Output:
        return self._round(float(np.mean(outputs)))

    def _round(self, number: float) -> float:
        """Rounded to a millionth of the scale, to keep files readable."""
        return round(number, 6 - math.floor(math.log10(self.scale)))

    def decide(self, output: Output) -> float:
        return float(np.clip(output, self.low, self.high)) if self.low is not None else float(output)

    def score(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, float]:
        truths = [example.label for example in examples]
        guesses = [self.decide(output) for output in outputs]
        return {
            "pearson": metrics.pearson(outputs, truths),
            "spearman": metrics.spearman(outputs, truths),
            "mae": metrics.mean_absolute_error(guesses, truths),
            "rmse": metrics.root_mean_squared_error(guesses, truths),
        }

    def tally(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> Tally:
        rows = [[o, self.decide(o), e.label] for o, e in zip(outputs, examples, strict=True)]
        scores: dict[str, Callable[[Rows], float]] = {
            "pearson": lambda rows: metrics.pearson(rows[:, 0], rows[:, 2]),
            "spearman": lambda rows: metrics.spearman(rows[:, 0], rows[:, 2]),
            "mae": lambda rows: metrics.mean_absolute_error(rows[:, 1], rows[:, 2]),
            "rmse": lambda rows: metrics.root_mean_squared_error(rows[:, 1], rows[:, 2]),
        }
        return Tally(np.array(rows, dtype=np.float64), scores)

    def wrongness(self, output: Output, example: TextExample) -> float:
        return abs(self.decide(output) - float(example.label))

    def chance(self, examples: Sequence[TextExample]) -> Chance:
        return Chance(0.0, ONE_SIDED / math.sqrt(len(examples)))


@dataclass(frozen=True)
class MultiLabel:
    """Multi-label classification; the output is the probability of each label, thresholded at 0.5."""

    name: str
    labels: tuple[str, ...]
    num_texts: int = 0  # texts per example: 1, or 2 for pairs; 0: unknown
    metric: str = "micro_f1"  # or exact_match

    @property
    def heads(self) -> tuple[HeadSpec, ...]:
        return (HeadSpec("classification", len(self.labels)),)

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer, form: SequenceForm) -> list[Group]:
        targets = [None if e.label is None else self._mark(e)[None].astype(np.float32) for e in examples]
        return group_texts(join_texts(examples, tokenizer, form, num_texts=self.num_texts), targets)

    def count(self, part: GroupBatch) -> dict[str, int]:
        return count_texts(part)

    def loss(self, model: Model, part: GroupBatch, totals: Counts) -> BatchLoss:
        assert part.targets is not None, "nothing to learn from"
        logits = read_pooled(model, part)  # (S, labels)
        summed = F.binary_cross_entropy_with_logits(logits, part.targets, reduction="sum")
        loss = summed / (totals["groups"] * len(self.labels))
        correct = ((logits > 0) == part.targets.bool()).sum()
        return BatchLoss(loss, {"loss": loss.detach(), "correct": correct})

    def summarize(self, sums: Mapping[str, float], totals: Counts) -> dict[str, float]:
        return {"loss": sums["loss"], "train_accuracy": sums["correct"] / (totals["groups"] * len(self.labels))}

    def predict(self, engine: Engine, batch: GroupBatch, groups: Sequence[Group]) -> list[Output]:
        del groups
        return [to_floats(row) for row in _ask(engine, batch).sigmoid().cpu().numpy()]

    def combine(self, outputs: Sequence[Output]) -> Output:
        return to_floats(np.mean(outputs, axis=0))

    def decide(self, output: Output) -> list[str]:
        return [label for label, probability in zip(self.labels, output, strict=True) if probability > 0.5]

    def score(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, float]:
        return self._score(np.array(outputs) > 0.5, self._mark_all(examples))

    def _score(self, guesses: NDArray[np.bool_], truths: NDArray[np.bool_]) -> dict[str, float]:
        exact = float(np.mean((guesses == truths).all(1)))
        return {"micro_f1": metrics.micro_f1(guesses, truths), "exact_match": exact}

    def tally(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> Tally:
        answers = [set(self.decide(output)) for output in outputs]
        truths = [set(example.label) for example in examples]
        rows = [
            [*metrics.count_matches(answer, truth), answer == truth]
            for answer, truth in zip(answers, truths, strict=True)
        ]
        scores = {"micro_f1": metrics.f1_of_matches, "exact_match": lambda rows: float(rows[:, 3].mean())}
        return Tally(np.array(rows, dtype=np.float64), scores, frozenset({"exact_match"}))

    def describe(self, outputs: Sequence[Output], examples: Sequence[TextExample]) -> dict[str, Any]:
        """Precision, recall and F1 per label."""
        answers, wanted = [self.decide(output) for output in outputs], [example.label for example in examples]
        pairs = list(zip(answers, wanted, strict=True))
        return {
            "labels": {
                label: metrics.precision_recall(
                    sum(label in one and label in other for one, other in pairs),
                    sum(label in one for one in answers),
                    sum(label in other for other in wanted),
                )
                for label in self.labels
            }
        }

    def wrongness(self, output: Output, example: TextExample) -> float:
        truth, probabilities = self._mark(example), np.array(output)
        if ((probabilities > 0.5) == truth).all():
            return 0.0
        return float(-np.log(np.maximum(np.where(truth, probabilities, 1 - probabilities), 1e-7)).sum())

    def chance(self, examples: Sequence[TextExample]) -> Chance:
        """The score of predicting the same labels for every text: the n most frequent ones, with the best n."""
        truths = self._mark_all(examples)
        order = np.argsort(-truths.sum(0), kind="stable")
        constant = [np.tile(np.isin(np.arange(len(order)), order[:n]), (len(truths), 1)) for n in range(len(order) + 1)]
        best = max(self._score(guess, truths)[self.metric] for guess in constant)
        return Chance(best, ONE_SIDED * math.sqrt(best * (1 - best) / len(examples)))

    def _mark(self, example: TextExample) -> NDArray[np.bool_]:
        return np.array([label in example.label for label in self.labels])

    def _mark_all(self, examples: Sequence[TextExample]) -> NDArray[np.bool_]:
        return np.array([self._mark(example) for example in examples])


def read_pooled(model: Model, batch: GroupBatch) -> Tensor:
    """The logits (S, labels) of the classification head; the last layer computes only [CLS]."""
    pooled = model.encoder.pool_sequences(batch.token_ids, batch.segment_ids, batch.mask)
    logits: Tensor = model.heads["classification"](pooled)
    return logits


def _read_for_loss(model: Model, batch: GroupBatch, exits: bool) -> Tensor:
    """The logits (L, S, labels) of every layer, or (1, S, labels) of the last."""
    if not exits:
        return read_pooled(model, batch)[None]
    return read_every_layer(model, batch.token_ids, batch.segment_ids, batch.mask)


def _ask(engine: Engine, batch: GroupBatch) -> Tensor:
    """The logits (S, labels) as an engine computes them."""
    return engine.run("classification", batch.to_inputs())["logits"].float()


def count_texts(part: GroupBatch) -> dict[str, int]:
    """The number of groups, which divides the loss, and of tokens, which measures speed."""
    return {"groups": part.num_groups, "tokens": int(part.mask.sum()), "positions": part.mask.numel()}


def choose_metric(examples: Sequence[TextExample], labels: Sequence[str]) -> str:
    """Accuracy if labels are about equally frequent; macro-F1 if one is rare, so that all labels count alike."""
    counts = Counter(example.label for example in examples)
    rarest = min(counts[label] for label in labels)
    return "macro_f1" if rarest < RARE * len(examples) / len(labels) else "accuracy"


def balanced_weights(examples: Sequence[TextExample], labels: Sequence[str]) -> tuple[float, ...]:
    """Weights that give every label the same total weight, with mean 1 over the examples."""
    counts = Counter(example.label for example in examples)
    return tuple(len(examples) / (len(labels) * counts[label]) if counts[label] else 0.0 for label in labels)
